"""The command that prints metrics, for a collector that reads files."""

from __future__ import annotations

import sys

from cyclopts import App

from concordance.adapters.environment import process_environment, read_configuration
from concordance.index import Index
from concordance.metrics import index_metrics

app = App()


@app.command
def metrics() -> int:
    """Print coverage, ages and what waits for a vector, in Prometheus' text form.

    `concordance http` gives the same at /metrics, with what it counts of requests.
    """
    environ = process_environment()
    configuration = read_configuration(environ, need_projects=False)
    with Index.open(configuration, environment=environ) as index:
        sys.stdout.write(index_metrics(index).decode())
    return 0
