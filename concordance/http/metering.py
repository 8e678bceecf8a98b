"""What the server counts of its requests and answers, in Prometheus' form.

What belongs here: counters of this process. Labels are few and fixed: no path, project or key that
a caller chose is one. What is asked of the index is `concordance.metrics`' work.
"""

from __future__ import annotations

from collections.abc import Callable

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest

from concordance.models import Answer

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
_METHODS = ("GET", "HEAD", "POST")
_OTHER = "other"
# From what a search by words alone takes to the deadline of an answer.
_SECONDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)


class Meter:
    """The counters of one server."""

    def __init__(self, routes: frozenset[str], at_work: Callable[[], int]) -> None:
        self._routes = routes
        self._registry = CollectorRegistry()
        self._requests = Counter(
            "concordance_http_requests",
            "Requests, by route and status.",
            ("route", "method", "status"),
            registry=self._registry,
        )
        self._seconds = Histogram(
            "concordance_http_request_seconds",
            "How long requests took, refused ones among them.",
            ("route",),
            buckets=_SECONDS,
            registry=self._registry,
        )
        Gauge(
            "concordance_http_requests_at_work",
            "Requests that are being answered.",
            registry=self._registry,
        ).set_function(at_work)
        self._answers = Counter(
            "concordance_answers",
            "Answers, by whether they found something and looked at everything.",
            ("outcome",),
            registry=self._registry,
        )
        self._steps = Histogram(
            "concordance_answer_step_seconds",
            "How long the steps of an answer took.",
            ("step",),
            buckets=_SECONDS,
            registry=self._registry,
        )
        for outcome in ("found", "empty", "degraded"):
            self._answers.labels(outcome)

    def count(self, path: str, method: str, status: int | str, seconds: float) -> None:
        """Note a request; what callers made up counts as `other`."""
        route = path if path in self._routes else _OTHER
        verb = method if method in _METHODS else _OTHER
        self._requests.labels(route, verb, str(status)).inc()
        self._seconds.labels(route).observe(seconds)

    def note(self, answer: Answer) -> None:
        """Note an answer: what it came to, and how long its steps took."""
        outcome = "degraded" if answer.degraded else "found" if answer.hits else "empty"
        self._answers.labels(outcome).inc()
        for step, milliseconds in answer.milliseconds.items():
            self._steps.labels(step).observe(milliseconds / 1_000)

    def exposition(self) -> bytes:
        """All of it, as text."""
        return generate_latest(self._registry)
