"""An evaluation as a flow: its result as JSON, and artifacts that can be looked at."""

from __future__ import annotations

import gc
from pathlib import Path

from flows.evaluate import evaluate
from tasks import shared
from tests.conftest import IndexMaker
from tests.flows.conftest import artifacts
from tests.postgres.sets import manuals


def test_the_flow_leaves_a_table_and_a_page(make_index: IndexMaker, tmp_path: Path) -> None:
    shared.adopt_index(make_index())
    found = evaluate(manuals(tmp_path / "my.Set", 5))
    assert found["name"] == "my.Set"
    assert found["questions"] == 5
    key = found["project"].replace(".", "-")
    assert "nDCG@10" in str(artifacts(key)[0].data)
    page = str(artifacts(f"{key}-page")[0].data)
    assert page.startswith("# my.Set")
    assert "█" in page
    gc.collect()


def test_a_folder_without_a_set_fails_with_its_name(make_index: IndexMaker, tmp_path: Path) -> None:
    shared.adopt_index(make_index())
    state = evaluate(tmp_path / "nowhere", return_state=True)
    assert state.is_failed()
    assert "nowhere" in (state.message or "")
