"""A planted key reaches no log line, artifact, state or result that Prefect keeps."""

from __future__ import annotations

import asyncio
import logging
from pathlib import Path

import pytest
from prefect.client.orchestration import get_client
from prefect.client.schemas.filters import LogFilter

from concordance.models import SearchRequest
from concordance.settings import SessionSource
from flows.reindex import reindex
from flows.search import search
from tasks import shared
from tests.conftest import IndexMaker
from tests.postgres.test_secrets import every_key, leaks, plant


def test_what_prefect_keeps_holds_no_key(
    make_index: IndexMaker, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    project = plant(tmp_path)
    gone = SessionSource(path=tmp_path / f"no logs {every_key()[0]}")
    other = project.model_copy(update={"slug": "q", "sessions": (gone,)})
    shared.adopt_index(make_index(project, other))
    state = reindex(return_state=True)
    answer = search(SearchRequest(text="brew", threshold=0.0))

    async def kept() -> list[tuple[str, str]]:
        async with get_client() as client:
            logs = await client.read_logs(LogFilter(), limit=200)
            runs = await client.read_flow_runs()
            tasks = await client.read_task_runs()
            artifacts = await client.read_artifacts()
        return [
            (kind, str(one))
            for kind, found in (
                ("log", logs),
                ("flow run", runs),
                ("task run", tasks),
                ("artifact", artifacts),
            )
            for one in found
        ]

    told = asyncio.run(kept())
    assert {"flow run", "task run"} <= {kind for kind, _ in told}
    assert answer["hits"]
    told += [("state", repr(state)), ("answer", repr(answer)), ("line", caplog.text)]
    assert "[secret: " in caplog.text
    assert leaks(every_key(), told) == []
