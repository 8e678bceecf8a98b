from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from concordance.adapters.postgres.database import Database
from tests.postgres.place import Place, open_place
from tests.postgres.rows import Shelf


@pytest.fixture
def shelf(database: Database) -> Shelf:
    """The rows of one tenant, and ways to make them."""
    return Shelf(database)


@pytest.fixture(scope="session")
def shared_state() -> Iterator[Path]:
    """Where root keeps the copy of the binaries: one for all places, as it is large."""
    # Not pytest's own folder: it is closed to the user that the server runs as.
    top = Path(tempfile.mkdtemp(prefix="cpg-", dir="/tmp"))
    top.chmod(0o755)
    yield top / "state"
    shutil.rmtree(top)


@pytest.fixture
def place(shared_state: Path) -> Iterator[Place]:
    with open_place(shared_state) as made:
        yield made
