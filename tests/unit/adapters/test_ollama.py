"""Embedding with Ollama, against a server on a real socket ."""

from __future__ import annotations

import threading
import time
from pathlib import Path

import numpy as np
import pytest

from concordance.adapters.embedding import Embedder, TextFailure, Vector, open_embedder
from concordance.adapters.ollama import PROBE, OllamaEmbedder
from concordance.errors import (
    BadEmbedding,
    DimensionsUnsupported,
    ModelMissing,
    ProviderBusy,
    ProviderError,
    ProviderTimeout,
    ProviderUnavailable,
    SettingsError,
    TextRefused,
)
from concordance.settings import Settings
from tests.fake_ollama import Asked, FakeModel, FakeOllama
from tests.fake_ollama_faults import Fault


def open_ollama(
    fake: FakeOllama, model: str = "nomic-embed-text", timeout: float = 20
) -> OllamaEmbedder:
    return OllamaEmbedder(model, url=fake.url, timeout_seconds=timeout)


def passages(number: int) -> list[str]:
    return [f"passage {i} on backup and restore" for i in range(number)]


def failures(results: list[Vector | TextFailure]) -> dict[int, str]:
    return {i: r.reason for i, r in enumerate(results) if isinstance(r, TextFailure)}


def warm(fake: FakeOllama, embedder: OllamaEmbedder) -> None:
    """Let the embedder ask for its space, so that a test counts only what comes after."""
    embedder.space()
    fake.forget()


# --- the space -------------------------------------------------------------------------------


def test_the_space_is_asked_for_once(fake: FakeOllama, embedder: OllamaEmbedder) -> None:
    space = embedder.space()
    assert embedder.space() is space
    assert fake.paths == ["GET /api/tags", "POST /api/embed"]
    assert space.model == "nomic-embed-text:latest"
    assert space.digest == fake.models["nomic-embed-text:latest"].digest("nomic-embed-text:latest")
    assert space.dimensions == 64
    assert (space.document_prefix, space.query_prefix) == ("search_document: ", "search_query: ")


def test_a_name_with_and_without_its_tag_is_one_space(fake: FakeOllama) -> None:
    short, long = open_ollama(fake), open_ollama(fake, "nomic-embed-text:latest")
    assert short.space().fingerprint == long.space().fingerprint
    assert (short.name, long.name) == (
        "ollama/nomic-embed-text",
        "ollama/nomic-embed-text:latest",
    )
    short.close()
    long.close()


def test_a_new_version_under_the_same_tag_is_another_space(fake: FakeOllama) -> None:
    before = open_ollama(fake)
    one = before.space()
    fake.models["nomic-embed-text:latest"] = FakeModel(version="2")
    after = open_ollama(fake)
    assert after.space().digest != one.digest
    assert after.space().fingerprint != one.fingerprint
    before.close()
    after.close()


def test_a_missing_model_is_named_before_any_text_is_sent(fake: FakeOllama) -> None:
    embedder = open_ollama(fake, "nomic-embed-txt")
    with pytest.raises(ModelMissing, match="ollama pull nomic-embed-txt"):
        embedder.embed_documents(passages(200))
    assert fake.paths == ["GET /api/tags"]
    with pytest.raises(ModelMissing, match="ollama pull nomic-embed-txt"):
        embedder.embed_query("where", deadline_seconds=5)
    embedder.close()


def test_a_model_that_is_removed_meanwhile_ends_the_call(
    fake: FakeOllama, embedder: OllamaEmbedder
) -> None:
    warm(fake, embedder)
    fake.models.clear()
    with pytest.raises(ModelMissing):
        embedder.embed_documents(passages(100))
    assert fake.calls == 1


def test_too_wide_a_model_is_refused_before_any_work(fake: FakeOllama) -> None:
    fake.models["wide:latest"] = FakeModel(dimensions=4_001)
    embedder = open_ollama(fake, "wide")
    with pytest.raises(DimensionsUnsupported, match="4001"):
        embedder.embed_documents(passages(50))
    assert fake.inputs == [PROBE]
    embedder.close()


def test_the_widest_model_is_taken(fake: FakeOllama) -> None:
    fake.models["wide:latest"] = FakeModel(dimensions=4_000)
    embedder = open_ollama(fake, "wide")
    assert embedder.space().dimensions == 4_000
    embedder.close()


# --- what works ------------------------------------------------------------------------------


def test_passages_come_back_in_order_and_of_unit_length(
    fake: FakeOllama, embedder: OllamaEmbedder
) -> None:
    texts = passages(70)
    together = embedder.embed_documents(texts)
    assert not failures(together)
    for place in (0, 31, 32, 69):
        (alone,) = embedder.embed_documents([texts[place]])
        assert isinstance(alone, np.ndarray)
        assert alone.dtype == np.float32
        assert np.array_equal(alone, np.asarray(together[place]))
        assert np.linalg.norm(alone) == pytest.approx(1.0, abs=1e-6)


def test_batches_are_of_32_and_nothing_is_cut_in_silence(
    fake: FakeOllama, embedder: OllamaEmbedder
) -> None:
    warm(fake, embedder)
    embedder.embed_documents(passages(70))
    assert [len(asked.inputs) for asked in fake.embeds] == [32, 32, 6]
    assert {asked.body["truncate"] for asked in fake.embeds} == {False}
    assert {asked.body["keep_alive"] for asked in fake.embeds} == {"10m"}


def test_no_texts_and_empty_texts_cost_no_request(
    fake: FakeOllama, embedder: OllamaEmbedder
) -> None:
    warm(fake, embedder)
    assert embedder.embed_documents([]) == []
    assert failures(embedder.embed_documents(["", " \n"])).keys() == {0, 1}
    assert fake.calls == 0
    assert failures(embedder.embed_documents(["one", "", "three"])).keys() == {1}


def test_lone_surrogates_can_be_sent(fake: FakeOllama, embedder: OllamaEmbedder) -> None:
    assert not failures(embedder.embed_documents(["a\ud800b"]))
    embedder.embed_query("a\udfffb", deadline_seconds=5)


def test_each_role_has_the_prefix_of_its_model(fake: FakeOllama) -> None:
    fake.models["all-minilm:latest"] = FakeModel()
    for model, document, query in [
        ("nomic-embed-text", "search_document: ", "search_query: "),
        ("all-minilm", "", ""),
    ]:
        embedder = open_ollama(fake, model)
        warm(fake, embedder)
        embedder.embed_documents(["how it works"])
        embedder.embed_query("what is it", deadline_seconds=5)
        assert fake.inputs == [f"{document}how it works", f"{query}what is it"]
        embedder.close()


def test_threads_can_share_an_embedder(fake: FakeOllama, embedder: OllamaEmbedder) -> None:
    texts = passages(40)
    expected = embedder.embed_documents(texts)
    seen: list[list[Vector | TextFailure]] = []
    threads = [
        threading.Thread(target=lambda: seen.append(embedder.embed_documents(texts)))
        for _ in range(6)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(seen) == 6
    assert all(np.array_equal(np.asarray(one), np.asarray(expected)) for one in seen)


# --- questions -------------------------------------------------------------------------------


def test_a_question_costs_one_request(fake: FakeOllama, embedder: OllamaEmbedder) -> None:
    warm(fake, embedder)
    vector = embedder.embed_query("restore the backup", deadline_seconds=5)
    assert vector.shape == (64,)
    assert np.linalg.norm(vector) == pytest.approx(1.0, abs=1e-6)
    assert fake.calls == 1
    near, far = embedder.embed_documents(["how to restore a backup", "merge a branch"])
    assert vector @ np.asarray(near) > vector @ np.asarray(far)


@pytest.mark.timeout(20)
@pytest.mark.parametrize(
    ("late", "soon"),
    [(Fault.hanging(), Fault.slow(0.1)), (Fault.trickling(600), Fault.trickling(0.1))],
    ids=["slow", "trickling"],
)
def test_a_question_keeps_its_deadline(
    fake: FakeOllama, embedder: OllamaEmbedder, late: Fault, soon: Fault
) -> None:
    warm(fake, embedder)
    fake.queue += [late, soon]
    with pytest.raises(ProviderTimeout):
        embedder.embed_query("where", deadline_seconds=0.3)
    embedder.embed_query("where", deadline_seconds=15)
    assert fake.calls == 2


def test_a_question_does_not_wait_for_passages(fake: FakeOllama, embedder: OllamaEmbedder) -> None:
    warm(fake, embedder)
    let_go = threading.Event()

    def held(asked: Asked) -> Fault | None:
        if len(asked.inputs) > 1:
            let_go.wait(20)
        return None

    fake.rule = held
    batch = threading.Thread(target=embedder.embed_documents, args=(passages(3),))
    batch.start()
    while not fake.calls:
        time.sleep(0.005)
    embedder.embed_query("where", deadline_seconds=15)
    assert batch.is_alive()
    let_go.set()
    batch.join()


@pytest.mark.parametrize(
    ("fault", "error"),
    [
        (Fault.zeros(), BadEmbedding),
        (Fault.nans(), BadEmbedding),
        (Fault.narrower(), BadEmbedding),
        (Fault.status(500), ProviderUnavailable),
        (Fault.status(400, "too long"), TextRefused),
        (Fault.busy(), ProviderBusy),
        (Fault.connection_reset(), ProviderUnavailable),
        (Fault.garbage(), ProviderUnavailable),
    ],
)
def test_a_question_that_fails_says_why(
    fake: FakeOllama, embedder: OllamaEmbedder, fault: Fault, error: type[ProviderError]
) -> None:
    warm(fake, embedder)
    fake.queue.append(fault)
    with pytest.raises(ProviderError) as raised:
        embedder.embed_query("where", deadline_seconds=5)
    assert type(raised.value) is error
    assert fake.calls == 1


def test_an_empty_question_is_refused(fake: FakeOllama, embedder: OllamaEmbedder) -> None:
    with pytest.raises(TextRefused):
        embedder.embed_query(" ", deadline_seconds=5)
    assert fake.paths == []


# --- where it is -----------------------------------------------------------------------------


def test_opening_asks_nothing(fake: FakeOllama, tmp_path: Path) -> None:
    settings = Settings(home=tmp_path, ollama_url=fake.url)
    embedder: Embedder = open_embedder("ollama/somebody/model:v2", settings)
    assert embedder.name == "ollama/somebody/model:v2"
    assert fake.paths == []
    embedder.close()


def test_loopback_is_never_asked_through_a_proxy(
    fake: FakeOllama, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    monkeypatch.delenv("NO_PROXY", raising=False)
    monkeypatch.delenv("no_proxy", raising=False)
    monkeypatch.setenv("OLLAMA_HOST", "http://127.0.0.1:9")
    for url in (fake.url, fake.url.replace("127.0.0.1", "localhost")):
        embedder = OllamaEmbedder("nomic-embed-text", url=url, timeout_seconds=5)
        assert embedder.space().dimensions == 64
        embedder.close()


@pytest.mark.parametrize("url", ["", "ftp://host", "http://", "http://host:port", "host:11434"])
def test_an_address_that_cannot_be_asked_is_refused(url: str) -> None:
    with pytest.raises(SettingsError, match="ollama_url"):
        OllamaEmbedder("nomic-embed-text", url=url, timeout_seconds=5)
