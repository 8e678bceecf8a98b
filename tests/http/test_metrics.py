"""Metrics: what is counted and asked, who may see it, and that alerts speak of what there is."""

from __future__ import annotations

import re
from datetime import timedelta
from pathlib import Path
from typing import Any

import httpx
import pytest
import yaml  # type: ignore[import-untyped]
from prometheus_client.parser import text_string_to_metric_families

from concordance.adapters.http_keys import digest_of
from concordance.errors import DatabaseUnavailable
from concordance.http.callers import Caller
from concordance.http.metering import CONTENT_TYPE
from concordance.index import Index
from concordance.metrics import index_metrics
from concordance.models import CoverageState, Scope
from tests.fake_ollama_faults import Fault
from tests.http.conftest import READS, Site
from tests.http.serving import Runs, Shared, client, keyed, serving
from tests.postgres.house import MARK

ROOT = Path(__file__).parents[2]
MEASURES = "key-of-operator"
Samples = dict[tuple[str, frozenset[tuple[str, str]]], float]


def samples(text: str) -> Samples:
    return {
        (sample.name, frozenset(sample.labels.items())): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }


def value(found: Samples, name: str, **labels: str) -> float:
    return found[f"concordance_{name}", frozenset(labels.items())]


def measuring(index: Index) -> dict[str, Caller]:
    key = digest_of(MEASURES)
    return {key: Caller("operator", index, may_reindex=False, bound=True, may_measure=True)}


@pytest.fixture(scope="module")
def metrics_text() -> dict[str, str]:
    """What a server told after some requests; kept for the tests of this file."""
    return {}


@pytest.fixture
def told(site: Site, metrics_text: dict[str, str]) -> str:
    if not metrics_text:
        callers = Shared(measuring(site.reader) | keyed(READS, site.reader))
        settings = site.house.owner.configuration.settings
        with serving(callers, settings, Runs()) as address, client(address, READS) as reader:
            for text in ("tea water kettle", "no such word as qwertz"):
                reader.post("/v1/search", json={"text": text, "fusion": "lexical"})
            site.house.provider.rule = lambda _: Fault.status(503, "down")
            reader.post("/v1/search", json={"text": "tea"})
            site.house.provider.rule = None
            reader.get(f"/v1/{MARK}")
            reader.request(MARK.upper(), "/v1/search")
            httpx.get(f"{address}/v1/coverage", trust_env=False)
            with client(address, MEASURES) as operator:
                response = operator.get("/metrics")
        assert response.status_code == 200, response.text
        assert response.headers["content-type"] == CONTENT_TYPE
        metrics_text["text"] = response.text
    return metrics_text["text"]


def test_requests_and_answers_are_counted(told: str) -> None:
    found = samples(told)
    for route, method, status, count in (
        ("/v1/search", "POST", "200", 3),
        ("/v1/coverage", "GET", "401", 1),
    ):
        labels = {"route": route, "method": method, "status": status}
        assert value(found, "http_requests_total", **labels) == count
    assert value(found, "http_request_seconds_count", route="/v1/search") == 4
    outcomes = [value(found, "answers_total", outcome=o) for o in ("found", "empty", "degraded")]
    assert outcomes == [1, 1, 1]
    assert value(found, "answer_step_seconds_count", step="total") == 3
    assert value(found, "http_requests_at_work") == 0


def test_what_a_caller_made_up_is_no_label(told: str) -> None:
    found = samples(told)
    assert MARK not in told.lower()
    assert value(found, "http_requests_total", route="other", method="GET", status="404") == 1
    assert (
        value(found, "http_requests_total", route="/v1/search", method="other", status="405") == 1
    )


def test_coverage_is_that_of_the_tables(site: Site, told: str) -> None:
    found = samples(told)
    covered = site.reader.coverage()
    for scope in Scope:
        mine = [c for c in covered if c.scope is scope]
        for state in CoverageState:
            count = sum(c.state is state for c in mine)
            assert value(found, "scopes", scope=scope.value, state=state.value) == count
        for status in ("indexed", "empty", "failed", "skipped"):
            count = sum(getattr(c, status) for c in mine)
            assert value(found, "documents", scope=scope.value, status=status) == count
        held = sum(c.chunks_with_vector for c in mine)
        assert value(found, "passages", scope=scope.value, status="with_vector") == held
        oldest = min(c.last_success.timestamp() for c in mine if c.last_success)
        assert value(found, "oldest_success_timestamp_seconds", scope=scope.value) == oldest
    assert value(found, "index_up") == 1
    assert value(found, "provider_failing") == 0
    assert value(found, "embedding_servers", state="used") == 1


def test_a_project_is_no_label(site: Site, told: str) -> None:
    for slug in {c.project for c in site.house.owner.coverage()}:
        assert f'"{slug}"' not in told


def test_metrics_need_a_key_that_may_read_them(site: Site) -> None:
    with client(site.address) as nobody, client(site.address, READS) as reader:
        assert nobody.get("/metrics").status_code == 401
        assert reader.get("/metrics").status_code == 403
    anybody = Caller("anybody", site.house.owner, may_reindex=True, bound=False, may_measure=True)
    settings = site.house.owner.configuration.settings
    with serving(Shared({}, anybody), settings, Runs()) as address, client(address) as here:
        assert here.get("/metrics").status_code == 200
        elsewhere = here.get("/metrics", headers={"Host": "concordance.example.org"})
        assert elsewhere.status_code == 421


def test_what_is_behind_is_told(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    index = site.house.owner
    covered = index.coverage()
    late = [
        c.model_copy(
            update={"chunks_with_vector": 0, "chunks_refused": 1, "embedding_error": "it is down"}
        )
        for c in covered
    ]
    monkeypatch.setattr(Index, "coverage", lambda *_: late)
    settings = index.configuration.settings.model_copy(update={"overdue_after_hours": 0.0})
    conf = index.configuration.model_copy(update={"settings": settings, "projects": ()})
    monkeypatch.setattr(Index, "configuration", conf)
    later = site.house.owner.now() + timedelta(days=300)
    monkeypatch.setattr(Index, "now", lambda _: later)
    found = samples(index_metrics(index).decode())
    docs = [c for c in covered if c.scope is Scope.DOCS]
    pending = sum(c.chunks - 1 for c in docs)
    assert value(found, "passages", scope="docs", status="pending") == pending > 0
    assert value(found, "provider_failing") == 1
    assert value(found, "scopes_overdue", scope="docs") == len(docs)


def test_a_database_that_is_away_is_told_of(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    def away(*_: object) -> None:
        raise DatabaseUnavailable("it is away")

    monkeypatch.setattr(Index, "coverage", away)
    assert samples(index_metrics(site.reader).decode()) == {
        ("concordance_index_up", frozenset()): 0
    }


# --- alerts ----------------------------------------------------------------------------------

# A metric, its selector, and what it is compared with there.
USED = re.compile(r"\b(concordance_[a-z_]+)(?:\{([^}]*)\})?")
MATCHED = re.compile(r'([a-z_]+)(=~|=)"([^"]*)"')


def rules() -> list[dict[str, Any]]:
    groups = yaml.safe_load((ROOT / "deployments" / "alerts.yaml").read_text("utf-8"))["groups"]
    return [rule for group in groups for rule in group["rules"]]


def test_every_metric_that_an_alert_names_is_exported_with_its_labels(told: str) -> None:
    found = samples(told)
    named = [
        (rule, name, selector) for rule in rules() for name, selector in USED.findall(rule["expr"])
    ]
    assert len(named) >= len(rules())
    for rule, name, selector in named:
        labels = [dict(of) for exported, of in found if exported == name]
        assert labels, f"{rule['alert']} names {name}"
        for label, operator, wanted in MATCHED.findall(selector):
            values = {of.get(label) for of in labels}
            one_of = wanted.split("|") if operator == "=~" else [wanted]
            if one_of == ["5.."]:
                assert "200" in values
            else:
                assert set(one_of) <= values, f"{rule['alert']}: {label} is none of {values}"
        for label in re.findall(r"\$labels\.(\w+)", str(rule["annotations"])):
            assert all(label in of for of in labels), f"{rule['alert']} shows {label}"


def test_every_metric_is_described_and_every_alert_says_what_to_do(told: str) -> None:
    page = (ROOT / "docs" / "metrics.md").read_text("utf-8")
    families = {family.name for family in text_string_to_metric_families(told)}
    exported = {name for name in families if not name.endswith("_created")}
    assert len(exported) > 10
    assert {name for name in exported if f"`{name}" not in page} == set()
    for rule in rules():
        assert rule["annotations"].keys() == {"summary", "action"}, rule["alert"]
        assert rule["labels"]["severity"] in {"page", "ticket"}
        assert f"`{rule['alert']}`" in page
