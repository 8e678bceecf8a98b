"""Two tenants, each with a login and a key, behind one server, for all tests of this folder."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

import httpx
import pytest

from concordance.index import Index
from tests.http.serving import Runs, Shared, client, keyed, serving
from tests.postgres.house import NEIGHBOUR, READER, House, open_house

READS, OTHER = "key-of-reports", "key-of-vault"
HERE = "tests/http/"


@dataclass
class Site:
    """A server, and what is behind it."""

    address: str
    house: House
    reader: Index
    other: Index
    runs: Runs


@contextmanager
def open_site(server_url: str, folder: Path) -> Iterator[Site]:
    with open_house(server_url, "http", folder) as house:
        # As by a key: the projects of the installation are not known to it.
        reader, other = house.open(READER), house.open(NEIGHBOUR)
        runs = Runs()
        callers = Shared(keyed(READS, reader) | keyed(OTHER, other, may_reindex=True))
        with serving(callers, house.owner.configuration.settings, runs) as address:
            yield Site(address, house, reader, other, runs)
        reader.close()
        other.close()


class _Kept:
    """What is open, until the last test of this folder is over: its logins are the server's."""

    def __init__(self) -> None:
        self.stack = ExitStack()
        self.site: Site | None = None

    def close(self) -> None:
        self.site = None
        self.stack.close()


_kept = _Kept()


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_teardown(nextitem: pytest.Item | None) -> None:
    """Close it before the Postgres server that it is on."""
    if nextitem is None or not nextitem.nodeid.startswith(HERE):
        _kept.close()


@pytest.fixture
def site(server_url: str, tmp_path_factory: pytest.TempPathFactory) -> Site:
    if _kept.site is None:
        folder = tmp_path_factory.mktemp("http")
        _kept.site = _kept.stack.enter_context(open_site(server_url, folder))
    return _kept.site


@pytest.fixture
def reader(site: Site) -> Iterator[httpx.Client]:
    with client(site.address, READS) as opened:
        yield opened
