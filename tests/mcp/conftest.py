"""Two tenants, each with a login and a key, behind one server, for the tests of a module."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.http.conftest import Site, open_site


@pytest.fixture(scope="module")
def site(server_url: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    with open_site(server_url, tmp_path_factory.mktemp("mcp")) as opened:
        yield opened
