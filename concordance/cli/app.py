"""All commands as one application."""

from __future__ import annotations

from importlib.metadata import version

from cyclopts import App

from concordance.cli import (
    asking,
    automations,
    demo,
    doctor,
    http,
    mcp,
    measuring,
    metrics,
    projects,
    purging,
    questions,
    records,
    running,
    statistics,
    tenants,
)

app = App(
    name="concordance",
    help="A searchable index over many projects' documentation, decisions and session logs, "
    "with citations that hold.",
    version=lambda: version("concordance"),
)
for part in (
    running.app,
    asking.app,
    records.app,
    measuring.app,
    purging.app,
    statistics.app,
    http.app,
    mcp.app,
    metrics.app,
    doctor.app,
    demo.app,
):
    app.command(part, name="*")
app.command(projects.app)
app.command(automations.app)
app.command(questions.app)
app.command(tenants.app)
app.command(http.keys)
