"""A nightly run over projects that did not change, as the command line would do it."""

from __future__ import annotations

import os
import time
from pathlib import Path

from benchmarks.setup import configuration
from concordance.adapters.environment import force_process_variables
from concordance.adapters.prefect_server import PREFECT_VARIABLES, PrefectServer
from concordance.index import Index
from concordance.settings import Configuration


def measure_night(folder: Path, paths: list[Path]) -> tuple[float, float]:
    """Seconds of the second run over these projects, and of a flow that does nothing."""
    conf = configuration(folder, paths)
    server = PrefectServer(conf.settings.home, os.environ)
    url = server.ensure().api_url
    force_process_variables(
        PREFECT_VARIABLES
        | {
            "PREFECT_API_URL": url,
            "PREFECT_HOME": str(server.folder),
            "PREFECT_LOGGING_HANDLERS_CONSOLE_LEVEL": "ERROR",
        }
    )
    try:
        return _measure(conf)
    finally:
        server.stop()


def _measure(conf: Configuration) -> tuple[float, float]:
    from prefect import flow  # noqa: PLC0415 - Prefect reads its settings on import

    from flows.reindex import reindex  # noqa: PLC0415 - likewise
    from tasks import shared  # noqa: PLC0415 - likewise

    @flow
    def nothing() -> None:
        """Prefect's own part."""

    shared.adopt_index(Index.open(conf, environment={"PATH": os.environ["PATH"]}))
    try:
        first = reindex(return_state=True)
        assert first.name == "Completed", first.message
        began = time.perf_counter()
        nothing()
        empty = time.perf_counter() - began
        began = time.perf_counter()
        second = reindex(return_state=True)
        assert second.name == "Completed", second.message
        return time.perf_counter() - began, empty
    finally:
        shared.close_shared()
