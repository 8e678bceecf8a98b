"""Coverage and the embedding provider as metrics in Prometheus' form.

What belongs here: figures that are asked of the index when they are wanted. No project is a label:
there may be thousands, and their names are a tenant's own. What a process counts of its requests is
`concordance.http.metering`'s matter; `deployments/alerts.yaml` says what to be told of.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import datetime

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.registry import Collector

from concordance.errors import DatabaseError
from concordance.index import Index
from concordance.indexing.overdue import overdue
from concordance.models import CoverageState, Scope, ScopeCoverage

_STATUSES: dict[str, Callable[[ScopeCoverage], int]] = {
    "indexed": lambda c: c.indexed,
    "empty": lambda c: c.empty,
    "failed": lambda c: c.failed,
    "skipped": lambda c: c.skipped,
}
_PASSAGES: dict[str, Callable[[ScopeCoverage], int]] = {
    "with_vector": lambda c: c.chunks_with_vector,
    "refused": lambda c: c.chunks_refused,
    "pending": lambda c: c.chunks - c.chunks_with_vector - c.chunks_refused,
}
_MOMENTS: dict[str, tuple[str, Callable[[ScopeCoverage], datetime | None]]] = {
    "success": ("brought up to date", lambda c: c.last_success),
    "complete": ("complete", lambda c: c.last_complete),
}


def index_metrics(index: Index) -> bytes:
    """What is indexed, how old it is and what waits, in Prometheus' text form.

    Where Postgres can't be asked, `concordance_index_up` is 0 and nothing else is told.
    """
    registry = CollectorRegistry()
    registry.register(_Figures(index))
    return generate_latest(registry)


class _Figures(Collector):
    """The figures of an index, asked for at each scrape."""

    def __init__(self, index: Index) -> None:
        self._index = index

    def describe(self) -> Iterator[GaugeMetricFamily]:
        """Nothing: to be asked for names alone is no reason to ask Postgres."""
        return iter(())

    def collect(self) -> Iterator[GaugeMetricFamily]:
        """Every figure."""
        try:
            covered = self._index.coverage()
        except DatabaseError:
            yield _gauge("index_up", "Whether Postgres could be asked.", {(): 0})
            return
        yield _gauge("index_up", "Whether Postgres could be asked.", {(): 1})
        yield from _sources(covered)
        yield from _ages(covered, self._limits(covered), self._index.now())
        yield from self._provider(covered)

    def _limits(self, covered: Sequence[ScopeCoverage]) -> dict[str, float]:
        configuration = self._index.configuration
        usual = configuration.settings.overdue_after_hours
        own = {p.slug: p.overdue_after_hours or usual for p in configuration.projects}
        return {c.project: usual for c in covered} | own

    def _provider(self, covered: Sequence[ScopeCoverage]) -> Iterator[GaugeMetricFamily]:
        failing = any(c.embedding_error is not None for c in covered)
        told = "Whether the last run that wanted vectors had none of the provider."
        yield _gauge("provider_failing", told, {(): int(failing)})
        servers, troubles = self._index.provider_servers()
        told = "Embedding servers, as this process knows them."
        states: dict[tuple[str, ...], float] = {
            ("used",): servers - len(troubles),
            ("left_out",): len(troubles),
        }
        yield _gauge("embedding_servers", told, states, "state")


def _sources(covered: Sequence[ScopeCoverage]) -> Iterator[GaugeMetricFamily]:
    yield _gauge(
        "scopes",
        "Scopes of projects, by what may be relied on.",
        {
            (scope.value, state.value): sum(c.scope is scope and c.state is state for c in covered)
            for scope in Scope
            for state in CoverageState
        },
        "scope",
        "state",
    )
    for name, told, kinds in (
        ("documents", "Files and sessions that were found.", _STATUSES),
        ("passages", "Passages; those of `pending` wait for a vector.", _PASSAGES),
    ):
        found = Counter[tuple[str, ...]]()
        for c in covered:
            for status, count in kinds.items():
                found[c.scope.value, status] += count(c)
        yield _gauge(name, told, found, "scope", "status")


def _ages(
    covered: Sequence[ScopeCoverage], limits: dict[str, float], now: datetime
) -> Iterator[GaugeMetricFamily]:
    for name, (told, moment) in _MOMENTS.items():
        oldest: dict[tuple[str, ...], float] = {}
        for c in covered:
            at = moment(c)
            if at is not None and c.state is not CoverageState.ABSENT:
                key = (c.scope.value,)
                oldest[key] = min(at.timestamp(), oldest.get(key, at.timestamp()))
        yield _gauge(
            f"oldest_{name}_timestamp_seconds",
            f"When the scope that waits longest was last {told}, in Unix time.",
            oldest,
            "scope",
        )
    late = Counter(str(one.scope.value) for one in overdue(covered, limits, now))
    yield _gauge(
        "scopes_overdue",
        "Scopes that were not brought up to date for longer than overdue_after_hours.",
        {(scope.value,): late[scope.value] for scope in Scope},
        "scope",
    )


def _gauge(
    name: str, told: str, values: Mapping[tuple[str, ...], float], *labels: str
) -> GaugeMetricFamily:
    family = GaugeMetricFamily(f"concordance_{name}", told, labels=labels)
    for of, value in sorted(values.items()):
        family.add_metric(of, value)
    return family
