from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from concordance.adapters.embedded_binaries import prepare
from concordance.adapters.postgres.database import Database
from concordance.index import Index
from concordance.settings import Project, SessionSource
from tests.conftest import IndexMaker
from tests.postgres.driver import reindex
from tests.postgres.place import Place, copy_data, open_place
from tests.postgres.rows import Shelf
from tests.postgres.shop import FILES
from tests.sources import GitSource


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


@pytest.fixture(scope="session")
def data_made_before(shared_state: Path) -> Path:
    """The data of a server that was started and stopped once."""
    with open_place(shared_state) as made:
        with made.server():
            pass
        return copy_data(made.location.data, shared_state.parent / "data")


@pytest.fixture
def new_place(shared_state: Path) -> Iterator[Place]:
    """A place where no server ever was."""
    with open_place(shared_state) as made:
        yield made


@pytest.fixture
def place(new_place: Place, data_made_before: Path) -> Place:
    """A place whose server has been initialised, which takes ten times as long as to start it."""
    prepare(new_place.location, new_place.state)
    copy_data(data_made_before, new_place.location.data)
    return new_place


@pytest.fixture
def logs(tmp_path: Path) -> Path:
    """Where a project's session logs lie."""
    return tmp_path / "logs"


@pytest.fixture
def open_logs(make_index: IndexMaker, tmp_path: Path, logs: Path) -> Callable[..., Index]:
    """Opens an index over a project with those logs; takes what a source of them may be given."""

    def made(**source: Any) -> Index:
        git = tmp_path / "source"
        if not git.exists():
            GitSource.make(git, {"README.md": "# Beacon\n\nText.\n"})
        sources = (SessionSource(path=logs, **source),)
        return make_index(Project(slug="p", path=git, sessions=sources))

    return made


@pytest.fixture
def source(tmp_path: Path) -> GitSource:
    """The small shop."""
    return GitSource.make(tmp_path / "source", FILES)


@pytest.fixture
def project(source: GitSource) -> Project:
    return Project(slug="p", path=source.path)


@pytest.fixture
def index(make_index: IndexMaker, project: Project) -> Index:
    """An index of the shop, up to date."""
    made = make_index(project)
    reindex(made)
    return made
