"""Two tenants, each with a login and a key, behind one server."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import pytest

from concordance.index import Index
from tests.http.serving import Runs, Shared, keyed, serving
from tests.postgres.house import NEIGHBOUR, House, open_house

READS, OTHER = "key-of-reports", "key-of-vault"


@dataclass
class Site:
    """A server, and what is behind it."""

    address: str
    house: House
    reader: Index
    other: Index
    runs: Runs


@pytest.fixture(scope="session")
def site(server_url: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    with open_house(server_url, "http", tmp_path_factory.mktemp("http")) as house:
        # As by a key: the projects of the installation are not known to it.
        reader, other = house.open("tenant_reader"), house.open(NEIGHBOUR)
        runs = Runs()
        callers = Shared(keyed(READS, reader) | keyed(OTHER, other, may_reindex=True))
        with serving(callers, house.owner.configuration.settings, runs) as address:
            yield Site(address, house, reader, other, runs)
        reader.close()
        other.close()
