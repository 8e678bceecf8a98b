"""An evaluation as a flow: its result as JSON, and artifacts that can be looked at."""

from __future__ import annotations

import gc
from pathlib import Path
from typing import cast

import pytest
from prefect.artifacts import Artifact

from flows.evaluate import evaluate
from tasks import shared
from tests.conftest import IndexMaker
from tests.postgres.sets import manuals


def data_of(key: str) -> str:
    found = cast("Artifact | None", Artifact.get(key))
    assert found is not None
    return str(found.data)


# Prefect leaves the clients that it made artifacts with to the garbage collector.
@pytest.mark.filterwarnings("ignore::ResourceWarning")
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_the_flow_leaves_a_table_and_a_page(make_index: IndexMaker, tmp_path: Path) -> None:
    shared.adopt_index(make_index())
    found = evaluate(manuals(tmp_path / "my.Set", 5))
    assert found["name"] == "my.Set"
    assert found["questions"] == 5
    key = found["project"].replace(".", "-")
    assert "nDCG@10" in data_of(key)
    page = data_of(f"{key}-page")
    assert page.startswith("# my.Set")
    assert "█" in page
    gc.collect()


def test_a_folder_without_a_set_fails_with_its_name(make_index: IndexMaker, tmp_path: Path) -> None:
    shared.adopt_index(make_index())
    state = evaluate(tmp_path / "nowhere", return_state=True)
    assert state.is_failed()
    assert "nowhere" in (state.message or "")
