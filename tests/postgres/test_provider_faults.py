"""What a run does when the provider is down, refuses a text, or dies on the way."""

from __future__ import annotations

import json
import threading
from pathlib import Path

import pytest

from concordance.errors import ProviderError
from concordance.index import Index
from concordance.indexing.vector_space import passage_text
from concordance.models import CoverageState, Scope
from concordance.settings import Project, SessionSource
from tests.conftest import IndexMaker
from tests.fake_ollama import Asked, FakeOllama
from tests.fake_ollama_faults import Fault
from tests.postgres.driver import (
    ask,
    covered,
    documents_of,
    fill,
    needs,
    passages_of,
    reindex,
)
from tests.postgres.shop import found, large_projects
from tests.sources import GitSource, event, write_log


def _with_logs(project: Project, path: Path) -> Project:
    return project.model_copy(update={"sessions": (SessionSource(path=path),)})


def test_a_provider_that_is_down_costs_the_vectors_alone_inc_4(
    make_index: IndexMaker, project: Project, source: GitSource, provider: FakeOllama
) -> None:
    index = make_index(project)
    provider.stop()
    reindex(index)
    said = covered(index)
    assert said.state is CoverageState.LEXICAL_ONLY
    assert said.chunks_with_vector == 0
    assert "Ollama" in said.reason
    assert needs(index) == "embed"
    assert found(index, "kettles")
    provider.restart()
    fill(index)
    assert covered(index).state is CoverageState.COMPLETE
    provider.stop()
    source.commit({"docs/guide.md": "# Guide\n\nHow to brew.\n\n## Water\n\nAnother.\n"})
    reindex(index)
    said = covered(index)
    assert (said.state, said.chunks - said.chunks_with_vector) == (CoverageState.PARTIAL, 1)
    provider.restart()
    provider.forget()
    fill(index)
    assert len(provider.inputs) == 1
    assert covered(index).state is CoverageState.COMPLETE
    assert needs(index) == "none"


def test_every_vector_is_of_the_text_that_stands_there_inc_4(
    index: Index, source: GitSource, provider: FakeOllama, database_url: str
) -> None:
    source.commit({"docs/guide.md": "# Guide\n\nAll new.\n\n## Water\n\nOther words here.\n"})
    reindex(index)
    model = provider.models["nomic-embed-text:latest"]
    titles = {d["name"]: d["title"] for d in documents_of(database_url)}
    for p in passages_of(database_url):
        text = passage_text(titles[p["name"]], p["heading_path"], p["content"])
        wanted = model.vector(f"search_document: {text}", model.digest("nomic-embed-text:latest"))
        assert json.loads(p["vector"]) == pytest.approx(wanted, abs=1e-5)
        assert "search_document" not in p["content"]


FIVE = "".join(f"## Part {n}\n\nText of part {n}.\n\n" for n in range(1, 6))


def test_a_text_that_is_refused_once_costs_one_call_in_the_next_run_inc_5(
    make_index: IndexMaker, tmp_path: Path, provider: FakeOllama
) -> None:
    source = GitSource.make(tmp_path / "five", {"docs/five.md": FIVE})
    index = make_index(Project(slug="p", path=source.path))

    def refuses(asked: Asked) -> Fault | None:
        return Fault.nan_error() if any("part 3" in t for t in asked.inputs) else None

    provider.rule = refuses
    reindex(index)
    said = covered(index)
    assert (said.chunks, said.chunks_with_vector, said.chunks_refused) == (5, 4, 1)
    assert said.state is CoverageState.PARTIAL
    assert "NaN" in said.reason
    provider.rule = None
    provider.forget()
    assert needs(index) == "embed"
    fill(index)
    assert provider.calls == 1
    assert covered(index).state is CoverageState.COMPLETE
    provider.forget()
    assert needs(index) == "none"
    fill(index)
    assert provider.calls == 0


VECTORS = """
select count(*) as n from embeddings e join chunks k on k.id = e.chunk_id
where k.event_id is not null
"""


def test_one_turn_that_the_model_cannot_take_is_given_up_after_bounded_tries_oll_3(
    make_index: IndexMaker, project: Project, logs: Path, provider: FakeOllama, database_url: str
) -> None:
    bad = "Let me look at the next part:"
    turns = [event("s", n, bad if n == 5 else f"turn number {n}") for n in range(12)]
    write_log(logs / "a.jsonl", turns)
    provider.rule = lambda asked: (
        Fault.nan_error() if any(bad in text for text in asked.inputs) else None
    )
    index = make_index(_with_logs(project, logs), embedding_attempts=2)
    reindex(index)
    said = covered(index, Scope.SESSION)
    # Two turns are embedded with the bad one before them, and have a vector without it meanwhile.
    assert (said.chunks, said.chunks_with_vector, said.chunks_refused) == (12, 9, 3)
    assert ask(database_url, VECTORS)[0]["n"] == 11
    second = fill(index)
    assert second is not None
    assert (second.refused, second.given_up) == (1, 3)
    provider.forget()
    third = fill(index)
    assert third is not None
    assert (third.pending, third.given_up, provider.calls) == (3, 3, 0)
    assert found(index, "look next", scopes=["session"]) == ["p:session s#s-5"]
    assert "NaN" in index.explain("p", "s").details[0]
    assert index.forgive_refused() == 3
    provider.rule = None
    fill(index)
    assert covered(index, Scope.SESSION).state is CoverageState.COMPLETE


def test_a_failure_that_passes_leaves_no_vector_of_less_than_the_text(
    make_index: IndexMaker, project: Project, logs: Path, provider: FakeOllama, database_url: str
) -> None:
    bad = "Let me look at the next part:"
    turns = [event("s", n, bad if n == 2 else f"turn number {n}") for n in range(6)]
    write_log(logs / "a.jsonl", turns)
    provider.rule = lambda asked: (
        Fault.nan_error() if any(bad in text for text in asked.inputs) else None
    )
    index = make_index(_with_logs(project, logs))
    reindex(index)
    provider.rule = None
    fill(index)
    assert covered(index, Scope.SESSION).state is CoverageState.COMPLETE
    by_steps = passages_of(database_url)
    index.forget("p")
    reindex(index)
    assert passages_of(database_url) == by_steps


def test_a_provider_that_dies_in_the_middle_keeps_what_it_gave(
    make_index: IndexMaker, tmp_path: Path, provider: FakeOllama
) -> None:
    parts = "".join(f"## Part {n}\n\nText of part {n}.\n\n" for n in range(200))
    source = GitSource.make(tmp_path / "many", {"docs/many.md": parts})
    index = make_index(Project(slug="p", path=source.path))
    provider.dies_after = 5  # one for the space, two requests of 32 for each claim
    reindex(index)
    said = covered(index)
    assert 0 < said.chunks_with_vector < said.chunks == 200
    assert said.state is CoverageState.PARTIAL
    provider.dies_after = None
    provider.forget()
    fill(index)
    assert len(provider.inputs) <= 200 - said.chunks_with_vector
    assert covered(index).state is CoverageState.COMPLETE


# --- a provider that is dead, and much to embed ----------------------------------------------


class Watch:
    """A clock of seconds that a test moves."""

    def __init__(self) -> None:
        self.now = 1_000.0

    def __call__(self) -> float:
        return self.now


@pytest.mark.timeout(60, func_only=True)
@pytest.mark.parametrize(
    ("fault", "most"),
    [
        (Fault.status(503, "overloaded"), 4),
        (Fault.busy("7200"), 2),
        (Fault.status(500, "overloaded"), 8),
        (Fault.connection_reset(), 4),
        (Fault.hanging(), 2),
    ],
    ids=["503", "429 for two hours", "500", "reset", "hanging"],
)
def test_a_provider_that_died_costs_a_run_a_few_requests_however_much_waits(
    make_index: IndexMaker, tmp_path: Path, provider: FakeOllama, fault: Fault, most: int
) -> None:
    projects = large_projects(tmp_path, projects=4, parts=60)
    index = make_index(*projects, embedding_timeout_seconds=0.5)
    watch = Watch()
    index._resources.breaker.monotonic = watch
    index.prepare_space()
    for project in projects:
        reindex(index, project.slug, embed=False)
    slugs = [project.slug for project in projects]
    assert sum(covered(index, slug=slug).chunks for slug in slugs) == 240
    provider.forget()
    provider.rule = lambda _: fault

    def run(slug: str) -> None:
        # As a task does: it tries again for what may pass.
        for _ in range(3):
            try:
                index.fill_vectors([slug], started=index.now())
            except ProviderError as error:
                index.note_embedding([slug], str(error))
            watch.now += 10

    for slug in slugs:
        run(slug)
    assert 0 < provider.calls <= most
    for slug in slugs:
        said = covered(index, slug=slug)
        assert (said.state, said.chunks_refused) == (CoverageState.LEXICAL_ONLY, 0)
        assert said.embedding_error, "and each knows why"
    provider.rule = None
    watch.now += 3_600
    fill_all = index.fill_vectors(slugs, started=index.now())
    assert (fill_all.embedded, fill_all.pending) == (240, 0), "back after an hour"


@pytest.mark.timeout(60, func_only=True)
def test_of_projects_that_ask_at_once_one_waits_for_a_provider_that_hangs(
    make_index: IndexMaker, tmp_path: Path, provider: FakeOllama
) -> None:
    projects = large_projects(tmp_path, projects=4, parts=5)
    index = make_index(*projects, embedding_timeout_seconds=0.5)
    watch = Watch()
    index._resources.breaker.monotonic = watch
    for project in projects:
        reindex(index, project.slug, embed=False)
    provider.rule = lambda _: Fault.hanging()
    with pytest.raises(ProviderError):
        index.prepare_space()
    watch.now += 60
    provider.forget()

    def run(slug: str) -> None:
        with pytest.raises(ProviderError):
            index.fill_vectors([slug], started=index.now())

    threads = [threading.Thread(target=run, args=(project.slug,)) for project in projects]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert provider.calls == 1


def test_a_reason_that_no_database_takes_is_kept_as_far_as_it_can_be(
    make_index: IndexMaker, tmp_path: Path, provider: FakeOllama
) -> None:
    source = GitSource.make(tmp_path / "five", {"docs/five.md": FIVE})
    index = make_index(Project(slug="p", path=source.path))
    provider.rule = lambda asked: (
        Fault.status(500, "part\0 \ud800\x1b[2J three\nis bad")
        if any("part 3" in text for text in asked.inputs)
        else None
    )
    reindex(index)
    said = covered(index)
    assert (said.chunks_with_vector, said.chunks_refused) == (4, 1)
    assert said.reason.endswith("part [2J three is bad")
    provider.rule = lambda _: Fault.status(503, "all\0 \ud800\x1b[2J is bad")
    source.commit({"docs/six.md": "# Six\n\nwords\n"})
    reindex(index)
    assert (covered(index).embedding_error or "").endswith("answered 503: all [2J is bad")
