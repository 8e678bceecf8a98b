"""Who may ask over HTTP, and that a key shows its tenant alone."""

from __future__ import annotations

import json

import httpx
import pytest

from concordance.adapters.http_keys import digest_of
from concordance.http.callers import Caller
from tests.http.conftest import OTHER, READS, Site
from tests.http.serving import Runs, Shared, client, problem_of, serving
from tests.postgres.house import MARK


def test_no_key_shows_anything_of_another_tenant(site: Site, reader: httpx.Client) -> None:
    seen = [
        reader.get("/v1/coverage"),
        reader.get("/v1/coverage", params={"project": "vault"}),
        reader.post("/v1/search", json={"text": "x", "projects": ["vault"]}),
        reader.get(f"/v1/{MARK}"),
    ]
    shown = [response.text.replace("no project 'vault'", "") for response in seen]
    for text in ("tea", MARK, "vault", f"docs/{MARK}.md", f"{MARK} queue"):
        for more in ({"threshold": 0, "top_k": 100}, {"fusion": "vector"}, {"path_prefix": "docs"}):
            answer = reader.post("/v1/search", json={"text": text} | more).json()
            del answer["request"]
            shown.append(json.dumps(answer))
    assert [text for text in shown if MARK in text or "vault" in text] == []
    with client(site.address, OTHER) as other:
        answer = other.post("/v1/search", json={"text": MARK, "fusion": "lexical"}).json()
        assert {hit["project"] for hit in answer["hits"]} == {"vault"}
        assert "shop" not in other.get("/v1/coverage").text


def test_a_project_of_another_tenant_s_is_one_that_nobody_has(
    site: Site, reader: httpx.Client
) -> None:
    def asked(slug: str) -> list[tuple[int, str]]:
        responses = [
            reader.get("/v1/coverage", params={"project": slug}),
            reader.post("/v1/search", json={"text": "tea", "projects": [slug]}),
        ]
        return [(r.status_code, r.text.replace(slug, "…")) for r in responses]

    assert asked("vault") == asked("nobody")
    with client(site.address, OTHER) as other:
        before = len(site.runs.asked)
        told = [other.post("/v1/reindex", json={"projects": [s]}) for s in ("shop", "nobody")]
        assert [problem_of(response) for response in told] == [(404, "unknown-project")] * 2
        assert told[0].text == told[1].text
        assert len(site.runs.asked) == before


@pytest.mark.parametrize(
    "authorization",
    [
        None,
        "Bearer",
        "Bearer wrong",
        f"Basic {READS}",
        READS,
        f"Bearer {digest_of(READS)}",
        f"Bearer {READS}x",
        "Bearer \xff",
    ],
)
def test_who_has_no_key_is_told_so_and_no_more(site: Site, authorization: str | None) -> None:
    given = [] if authorization is None else [(b"Authorization", authorization.encode("latin-1"))]
    headers = httpx.Headers(given)
    with client(site.address) as nobody:
        for response in (
            nobody.get("/v1/coverage", headers=headers),
            nobody.post("/v1/search", headers=headers, json={"text": "tea"}),
            nobody.post("/v1/reindex", headers=headers, content=b"{"),
            nobody.get("/v1/nowhere", headers=headers),
        ):
            assert problem_of(response) == (401, "no-key")
            assert response.headers["www-authenticate"].startswith("Bearer")
            assert READS not in response.text


def test_a_key_that_may_not_start_runs_is_refused(site: Site, reader: httpx.Client) -> None:
    before = len(site.runs.asked)
    assert problem_of(reader.post("/v1/reindex", json={})) == (403, "not-allowed")
    assert len(site.runs.asked) == before


def test_without_keys_this_machine_alone_is_answered(site: Site) -> None:
    anybody = Caller("anybody", site.house.owner, may_reindex=True, bound=False)
    runs = Runs()
    settings = site.house.owner.configuration.settings
    with serving(Shared({}, anybody), settings, runs) as address, client(address) as here:
        assert here.post("/v1/search", json={"text": "tea"}).json()["hits"]
        for host in ("localhost", "127.0.0.1:8000", "[::1]:8000"):
            assert here.get("/v1/coverage", headers={"Host": host}).status_code == 200
        for host in ("rebound.example.org", "127.0.0.1.example.org:80", "[::1", "", "[fe80::1]"):
            response = here.post("/v1/search", headers={"Host": host}, json={"text": "tea"})
            assert problem_of(response) == (421, "misdirected-request"), host
        assert here.post("/v1/reindex", json={"projects": ["shop"]}).status_code == 202
        assert here.post("/v1/reindex", json={}).status_code == 202
        assert runs.asked == [(["shop"], None, False), (None, None, False)]
        unknown = here.post("/v1/reindex", json={"projects": ["nobody"]})
        assert problem_of(unknown) == (404, "unknown-project")
        # What a page from elsewhere could send without asking: no JSON.
        for kind in ("text/plain", "application/x-www-form-urlencoded", "multipart/form-data"):
            sent = here.post("/v1/reindex", headers={"Content-Type": kind}, content=b"{}")
            assert problem_of(sent)[0] == 422
        assert problem_of(here.post("/v1/reindex"))[0] == 422
        assert len(runs.asked) == 2
