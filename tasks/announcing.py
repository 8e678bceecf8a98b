"""Events that automations wait for: a scope is overdue, the embedding provider fails.

What belongs here: Prefect's events. Their names stand in `deployments/automations.yaml` as well.
"""

from __future__ import annotations

from prefect import get_run_logger
from prefect.events.utilities import emit_event

from concordance.index import Index
from concordance.indexing.counting import counted
from concordance.problems import take_overdue
from tasks.presenting import not_failing

SCOPE_OVERDUE = "concordance.scope.overdue"
PROVIDER_FAILED = "concordance.provider.failed"
MOST_EVENTS = 200


def announce_overdue(index: Index) -> None:
    """Send an event for each scope that is overdue, the oldest first."""
    with not_failing("the events of scopes that are overdue"):
        found = take_overdue(index)
        tenant = index.configuration.settings.tenant
        for one in found[:MOST_EVENTS]:
            emit_event(
                SCOPE_OVERDUE,
                resource={
                    "prefect.resource.id": (
                        f"concordance.scope.{tenant}.{one.project}.{one.scope.value}"
                    ),
                    "prefect.resource.name": f"{one.project} {one.scope.value}",
                },
                payload={
                    "last_success": f"{one.last_success:%Y-%m-%d %H:%M} UTC",
                    "limit_hours": one.limit_hours,
                    "reason": one.reason[:1_000],
                },
            )
        if found:
            get_run_logger().warning(
                "%s not brought up to date for longer than allowed, the oldest is %s %s",
                counted(len(found), "scope"),
                found[0].project,
                found[0].scope.value,
            )


def announce_provider(index: Index, error: str | None) -> None:
    """Send an event where the embedding provider failed."""
    if error is None:
        return
    model = index.configuration.settings.embedding_model
    with not_failing("the event of the provider"):
        emit_event(
            PROVIDER_FAILED,
            resource={
                "prefect.resource.id": f"concordance.provider.{model}",
                "prefect.resource.name": model,
            },
            payload={"reason": error[:1_000]},
        )
