"""One model on several Ollama servers, on real sockets."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest

from concordance.adapters import ollama_spread
from concordance.adapters.embedding import TextFailure, Vector, open_embedder
from concordance.adapters.ollama import OllamaEmbedder
from concordance.adapters.ollama_hosts import OllamaHosts
from concordance.errors import (
    ModelMissing,
    ModelsDiffer,
    ProviderError,
    ProviderUnavailable,
    TextRefused,
)
from concordance.settings import Settings
from tests.fake_ollama import Asked, FakeModel, FakeOllama
from tests.fake_ollama_faults import Fault

MODEL = "nomic-embed-text:latest"
OTHER = FakeModel(version="2")


@pytest.fixture
def servers() -> Iterator[list[FakeOllama]]:
    made = [FakeOllama(), FakeOllama()]
    yield made
    for one in made:
        one.stop()


@pytest.fixture
def hosts(servers: list[FakeOllama]) -> Iterator[OllamaHosts]:
    opened = opened_at(*servers)
    yield opened
    opened.close()


def opened_at(*servers: FakeOllama, timeout: float = 20) -> OllamaHosts:
    return OllamaHosts(
        [OllamaEmbedder("nomic-embed-text", url=s.url, timeout_seconds=timeout) for s in servers]
    )


def passages(number: int) -> list[str]:
    return [f"passage {i} on backup and restore" for i in range(number)]


def sent(server: FakeOllama) -> list[str]:
    """The passages that a server was asked to embed."""
    return [text for text in server.inputs if text.startswith("search_document: passage")]


def shown(error: ProviderError | str) -> str:
    return str(error)


def test_one_address_is_one_server_and_several_are_hosts(
    servers: list[FakeOllama], tmp_path: Path
) -> None:
    both = ", ".join(server.url for server in servers)
    for url, kind in ((servers[0].url, OllamaEmbedder), (both, OllamaHosts)):
        embedder = open_embedder("ollama/nomic-embed-text", Settings(home=tmp_path, ollama_url=url))
        assert type(embedder) is kind
        assert (embedder.name, embedder.model) == (
            "ollama/nomic-embed-text",
            "ollama/nomic-embed-text:latest",
        )
        embedder.close()
    assert [server.paths for server in servers] == [[], []]


def test_all_servers_give_one_space_and_the_vectors_of_one(
    servers: list[FakeOllama], hosts: OllamaHosts
) -> None:
    alone = OllamaEmbedder("nomic-embed-text", url=servers[0].url, timeout_seconds=5)
    assert hosts.space() == alone.space()
    texts = passages(300)
    given, expected = hosts.embed_documents(texts), alone.embed_documents(texts)
    assert all(
        np.array_equal(np.asarray(a), np.asarray(b)) for a, b in zip(given, expected, strict=True)
    )
    alone.close()


def test_passages_are_spread_and_each_is_sent_once(
    servers: list[FakeOllama], hosts: OllamaHosts
) -> None:
    together = threading.Barrier(2)

    def meet(asked: Asked) -> Fault | None:
        # Neither server answers its first batch before the other has one.
        if len(asked.inputs) > 1 and not together.broken and together.n_waiting < 2:
            together.wait(10)
            together.abort()
        return None

    hosts.space()
    for server in servers:
        server.rule = lambda asked: suppressed(lambda: meet(asked))
    hosts.embed_documents(passages(256))
    first, second = (sent(server) for server in servers)
    assert first
    assert second
    assert sorted(first + second) == sorted(f"search_document: {text}" for text in passages(256))


def test_small_calls_do_not_all_go_to_the_first_server(
    servers: list[FakeOllama], hosts: OllamaHosts
) -> None:
    for text in passages(24):
        hosts.embed_documents([text])
    assert all(len(sent(server)) >= 6 for server in servers)
    # Nor does the first question of each process.
    assert {hosts._order(text)[0].name for text in passages(24)} == {h.name for h in hosts._hosts}


def suppressed(work: Callable[[], Fault | None]) -> Fault | None:
    try:
        return work()
    except threading.BrokenBarrierError:
        return None


def test_a_server_that_is_down_is_left_out_and_told_of(
    servers: list[FakeOllama], hosts: OllamaHosts
) -> None:
    assert hosts.troubles() == ()
    servers[0].stop()
    assert not failures(hosts.embed_documents(passages(200)))
    assert len(sent(servers[1])) == 200
    (trouble,) = hosts.troubles()
    assert trouble.startswith(f"Ollama at {servers[0].url} can't be reached: Connection refused")
    assert np.linalg.norm(hosts.embed_query("restore", deadline_seconds=5)) == pytest.approx(1)
    hosts.space(anew=True)


def test_a_server_that_dies_in_the_middle_costs_no_text(
    servers: list[FakeOllama], hosts: OllamaHosts
) -> None:
    hosts.space()
    servers[0].dies_after = 1
    texts = passages(300)
    given = hosts.embed_documents(texts)
    assert not failures(given)
    assert len(given) == 300
    assert len(hosts.troubles()) == 1


def test_a_server_that_is_back_is_asked_again(
    servers: list[FakeOllama], hosts: OllamaHosts
) -> None:
    servers[0].stop()
    hosts.space()
    servers[0].restart()
    for host in hosts._hosts:
        host.passages.monotonic = lambda: time.monotonic() + 120
    hosts.embed_documents(passages(300))
    assert sent(servers[0])
    assert hosts.troubles() == ()


def test_what_every_server_says_is_told_where_all_fail(
    servers: list[FakeOllama], hosts: OllamaHosts
) -> None:
    hosts.space()
    servers[0].stop()
    servers[1].rule = lambda _: Fault.status(503, "the queue is full")
    with pytest.raises(ProviderUnavailable) as raised:
        hosts.embed_documents(passages(10))
    assert "Connection refused" in shown(raised.value)
    assert "the queue is full" in shown(raised.value)
    with pytest.raises(ProviderUnavailable, match="the queue is full"):
        hosts.embed_query("restore", deadline_seconds=5)
    assert len(hosts.troubles()) == 2


def test_servers_with_other_models_are_refused_with_both_digests(
    servers: list[FakeOllama], hosts: OllamaHosts
) -> None:
    servers[1].models[MODEL] = OTHER
    with pytest.raises(ModelsDiffer) as raised:
        hosts.embed_documents(passages(10))
    for server in servers:
        digest = server.models[MODEL].digest("nomic-embed-text:latest")
        assert f"{server.url} has {digest[:12]}" in shown(raised.value)
        assert sent(server) == []


def test_a_model_that_is_pulled_anew_on_one_server_gives_no_vector(
    servers: list[FakeOllama], hosts: OllamaHosts
) -> None:
    agreed = hosts.space()
    servers[1].models[MODEL] = OTHER
    texts = passages(200)
    given = hosts.embed_documents(texts)
    alone = OllamaEmbedder("nomic-embed-text", url=servers[0].url, timeout_seconds=5)
    assert alone.space() == agreed
    assert all(
        np.array_equal(np.asarray(a), np.asarray(b))
        for a, b in zip(given, alone.embed_documents(texts), strict=True)
    )
    alone.close()
    assert len(hosts.troubles()) == 1
    with pytest.raises(ModelsDiffer):
        hosts.space(anew=True)


def test_a_server_that_was_down_is_compared_when_it_is_back(
    servers: list[FakeOllama], hosts: OllamaHosts
) -> None:
    servers[1].stop()
    servers[1].models[MODEL] = OTHER
    hosts.space()
    servers[1].restart()
    for host in hosts._hosts:
        host.passages.monotonic = lambda: time.monotonic() + 120
    assert not failures(hosts.embed_documents(passages(200)))
    assert sent(servers[1]) == []
    assert "other models under the name" in hosts.troubles()[0]


def test_a_server_without_the_model_is_left_out(
    servers: list[FakeOllama], hosts: OllamaHosts
) -> None:
    servers[1].models.clear()
    assert not failures(hosts.embed_documents(passages(100)))
    assert "ollama pull nomic-embed-text" in hosts.troubles()[0]
    servers[0].models.clear()
    with pytest.raises(ModelMissing):
        hosts.space(anew=True)


def test_a_batch_that_is_late_is_given_to_the_other_server(
    servers: list[FakeOllama], hosts: OllamaHosts, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ollama_spread, "LATE_SECONDS", 0.1)
    hosts.space()
    servers[0].rule = lambda asked: Fault.slow(30) if len(asked.inputs) > 1 else None
    for _ in range(2):  # the second call leaves out the server that still hangs
        assert not failures(hosts.embed_documents(passages(100)))
    assert servers[0].calls == 2  # for its space, and the batch that it hangs on


def test_a_question_goes_to_the_next_server_while_there_is_time(
    servers: list[FakeOllama], hosts: OllamaHosts
) -> None:
    hosts.space()
    for server in servers:
        server.forget()
    servers[0].rule = lambda _: Fault.slow(30)
    for _ in range(4):
        hosts.embed_query("restore", deadline_seconds=1)
    assert servers[0].calls == 1
    # That it was late for a question does not keep it from passages.
    assert hosts._hosts[0].passages.failing is None


def test_questions_go_round(servers: list[FakeOllama], hosts: OllamaHosts) -> None:
    hosts.space()
    for server in servers:
        server.forget()
    for _ in range(6):
        hosts.embed_query("restore", deadline_seconds=5)
    assert [server.calls for server in servers] == [3, 3]


def test_a_text_that_the_model_refuses_counts_against_no_server(
    servers: list[FakeOllama], hosts: OllamaHosts
) -> None:
    def refuse(asked: Asked) -> Fault | None:
        return Fault.status(400, "no") if any("bad" in text for text in asked.inputs) else None

    for server in servers:
        server.rule = refuse
    given = hosts.embed_documents(["bad", *passages(60)])
    assert failures(given) == {0: "no"}
    for text in ("bad", " "):
        with pytest.raises(TextRefused):
            hosts.embed_query(text, deadline_seconds=5)
    assert hosts.troubles() == ()


def failures(results: list[Vector | TextFailure]) -> dict[int, str]:
    return {i: r.reason for i, r in enumerate(results) if isinstance(r, TextFailure)}
