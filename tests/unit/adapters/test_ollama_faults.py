"""What the Ollama adapter makes of failures: one text's, or the server's."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime

import numpy as np
import pytest

from concordance.adapters.embedding import TextFailure, Vector
from concordance.adapters.ollama import PROBE, OllamaEmbedder
from concordance.errors import (
    BadEmbedding,
    ModelMissing,
    ProviderBusy,
    ProviderError,
    ProviderRefused,
    ProviderTimeout,
    ProviderUnavailable,
)
from tests.fake_ollama import Asked, FakeOllama
from tests.fake_ollama_faults import Fault

POISON = "Let me look at the next part:"


def passages(number: int) -> list[str]:
    return [f"passage {i} on backup and restore" for i in range(number)]


def failures(results: list[Vector | TextFailure]) -> dict[int, str]:
    return {i: r.reason for i, r in enumerate(results) if isinstance(r, TextFailure)}


def when_any(wanted: Callable[[str], bool], fault: Fault) -> Callable[[Asked], Fault | None]:
    return lambda asked: fault if any(wanted(text) for text in asked.inputs) else None


def warm(fake: FakeOllama, embedder: OllamaEmbedder) -> None:
    """Let the embedder ask for its space, so that a test counts only what comes after."""
    embedder.space()
    fake.forget()


# --- one text's fault ------------------------------------------------------------------------


@pytest.mark.parametrize("place", [0, 4, 31])
@pytest.mark.parametrize(
    "fault",
    [
        Fault.nan_error(),
        Fault.zeros(),
        Fault.nans(),
        Fault.fewer(),
        Fault.more(),
        Fault.narrower(),
        Fault.status(400),
    ],
    ids=["nan-500", "zeros", "nans", "fewer", "more", "narrower", "400"],
)
def test_a_text_that_spoils_its_batch_fails_alone(
    fake: FakeOllama, embedder: OllamaEmbedder, fault: Fault, place: int
) -> None:
    warm(fake, embedder)
    texts = passages(32)
    texts[place] = POISON
    fake.rule = when_any(lambda text: POISON in text, fault)
    assert failures(embedder.embed_documents(texts)).keys() == {place}
    assert fake.calls == 2 + 2 * 5


def test_a_failed_text_has_the_providers_words(fake: FakeOllama, embedder: OllamaEmbedder) -> None:
    fake.rule = when_any(lambda text: POISON in text, Fault.nan_error())
    results = embedder.embed_documents(["one", POISON])
    assert failures(results) == {1: "failed to encode response: json: unsupported value: NaN"}


def test_several_bad_texts_are_all_found(fake: FakeOllama, embedder: OllamaEmbedder) -> None:
    warm(fake, embedder)
    texts = passages(100)
    for place in (3, 4, 40, 99):
        texts[place] = f"{POISON} {place}"
    fake.rule = when_any(lambda text: POISON in text, Fault.nan_error())
    assert failures(embedder.embed_documents(texts)).keys() == {3, 4, 40, 99}
    assert fake.calls <= 4 + 1 + 4 * 2 * 5


def test_one_passing_fault_loses_nothing(fake: FakeOllama, embedder: OllamaEmbedder) -> None:
    warm(fake, embedder)
    fake.queue.append(Fault.status(500))
    assert not failures(embedder.embed_documents(passages(20)))
    assert fake.calls == 4


@pytest.mark.parametrize(
    "text",
    [
        "0123456789abcdef" * 250,
        "導入と設定の手引き。" * 400,
        f"Words, then {'ab' * 4_000} and words.",
    ],
    ids=["hex", "cjk", "mixed"],
)
def test_a_text_over_the_limit_is_split_and_pooled(
    fake: FakeOllama, embedder: OllamaEmbedder, text: str
) -> None:
    warm(fake, embedder)
    results = embedder.embed_documents([text])
    assert not failures(results)
    assert np.linalg.norm(np.asarray(results[0])) == pytest.approx(1.0, abs=1e-6)
    assert fake.calls <= 2 + 3
    assert all(text.startswith("search_document: ") for text in fake.inputs if text != PROBE)


def test_long_texts_that_differ_at_the_end_get_different_vectors(
    fake: FakeOllama, embedder: OllamaEmbedder
) -> None:
    start = "the same beginning " * 600
    one, other = embedder.embed_documents([start + "backup", start + "restore"])
    assert not np.array_equal(np.asarray(one), np.asarray(other))


def test_a_long_text_does_not_hold_up_its_batch(fake: FakeOllama, embedder: OllamaEmbedder) -> None:
    warm(fake, embedder)
    texts = passages(32)
    texts[17] = "導入" * 2_000
    assert not failures(embedder.embed_documents(texts))
    assert fake.calls == 2 + 2 * 5 + 1


def test_a_text_that_is_refused_at_any_length_is_given_up(
    fake: FakeOllama, embedder: OllamaEmbedder
) -> None:
    warm(fake, embedder)
    fake.rule = when_any(lambda text: "#" in text, Fault.status(400, "cannot tokenize '#'"))
    assert failures(embedder.embed_documents(["#" * 10_000])) == {0: "cannot tokenize '#'"}
    assert fake.calls == 2 + 6
    fake.forget()
    assert failures(embedder.embed_documents(["#"])) == {0: "cannot tokenize '#'"}
    assert fake.calls == 2


# --- the server's fault ----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("fault", "error", "calls"),
    [
        (Fault.status(500), ProviderUnavailable, 2),
        (Fault.status(503), ProviderUnavailable, 1),
        (Fault.status(502), ProviderUnavailable, 1),
        (Fault.status(400), ProviderRefused, 2),
        (Fault.status(401), ProviderRefused, 1),
        (Fault.status(404, "model not found"), ModelMissing, 1),
        (Fault.status(302, Location="http://127.0.0.1:9/"), ProviderRefused, 1),
        (Fault.connection_reset(), ProviderUnavailable, 1),
        (Fault.cut_off(), ProviderUnavailable, 1),
        (Fault.garbage(), ProviderUnavailable, 2),
        (Fault.garbage(b"[]"), ProviderUnavailable, 2),
        (Fault.garbage(b'{"embeddings": [["a"]]}'), ProviderUnavailable, 2),
        (Fault.garbage(b"\xff\xfe"), ProviderUnavailable, 2),
        (Fault(code=500, body=b"[1]"), ProviderUnavailable, 2),
        (Fault(code=400, body=b""), ProviderRefused, 2),
        (Fault(code=500, body=b"[" * 200_000), ProviderUnavailable, 2),
        (Fault.garbage(b"[" * 200_000), ProviderUnavailable, 2),
        (Fault.zeros(), BadEmbedding, 2),
        (Fault.fewer(), BadEmbedding, 2),
        (Fault.more(), BadEmbedding, 2),
        (Fault.of_another_model("llama3"), BadEmbedding, 2),
    ],
)
def test_a_server_that_fails_on_everything_is_noticed_once(
    fake: FakeOllama,
    embedder: OllamaEmbedder,
    fault: Fault,
    error: type[ProviderError],
    calls: int,
) -> None:
    warm(fake, embedder)
    fake.rule = lambda _: fault
    with pytest.raises(ProviderError) as raised:
        embedder.embed_documents(passages(200))
    assert type(raised.value) is error
    assert fake.calls == calls
    fake.rule = None
    assert not failures(embedder.embed_documents(passages(3)))


def test_a_server_that_fails_from_some_moment_on_is_noticed_soon(
    fake: FakeOllama, embedder: OllamaEmbedder
) -> None:
    warm(fake, embedder)
    texts = passages(200)
    texts[2] = POISON
    fake.rule = lambda asked: (
        Fault.status(500)
        if fake.calls > 14 or f"search_document: {POISON}" in asked.inputs
        else None
    )
    with pytest.raises(ProviderUnavailable):
        embedder.embed_documents(texts)
    assert fake.calls <= 14 + 8 + 1


def test_a_reset_in_mid_batch_ends_the_call_at_once(
    fake: FakeOllama, embedder: OllamaEmbedder
) -> None:
    warm(fake, embedder)
    fake.dies_after = 3
    with pytest.raises(ProviderUnavailable):
        embedder.embed_documents(passages(200))
    assert fake.calls == 4
    fake.dies_after = None
    assert not failures(embedder.embed_documents(passages(200)))


def test_a_server_that_is_stopped_and_started_again(
    fake: FakeOllama, embedder: OllamaEmbedder
) -> None:
    embedder.space()
    fake.stop()
    for ask in (
        lambda: embedder.embed_documents(passages(3)),
        lambda: embedder.embed_query("where", deadline_seconds=5),
    ):
        with pytest.raises(ProviderUnavailable, match="ollama serve"):
            ask()
    fake.restart()
    assert not failures(embedder.embed_documents(passages(3)))


def test_a_space_that_could_not_be_asked_for_is_asked_for_again(fake: FakeOllama) -> None:
    fake.stop()
    embedder = OllamaEmbedder("nomic-embed-text", url=fake.url, timeout_seconds=20)
    with pytest.raises(ProviderUnavailable):
        embedder.space()
    fake.restart()
    fake.queue.append(Fault.zeros())
    with pytest.raises(BadEmbedding):
        embedder.space()
    assert embedder.space().dimensions == 64
    embedder.close()


@pytest.mark.timeout(20)
def test_a_slow_server_times_out(fake: FakeOllama) -> None:
    embedder = OllamaEmbedder("nomic-embed-text", url=fake.url, timeout_seconds=0.2)
    embedder.space()
    fake.queue.append(Fault.hanging())
    with pytest.raises(ProviderTimeout):
        embedder.embed_documents(passages(3))
    embedder.close()


@pytest.mark.parametrize(
    ("header", "low", "high"),
    [
        (None, None, None),
        ("7", 7.0, 7.0),
        ("in an hour", 3_000.0, 3_600.0),
        ("Wed, 21 Oct 2015 07:28:00 GMT", 0.0, 0.0),
        ("Wed, 21 Oct 99999999999999999999 07:28:00 GMT", None, None),
        ("9" * 400, float("inf"), float("inf")),
        ("soon", None, None),
    ],
)
def test_a_busy_server_says_when_to_come_back(
    fake: FakeOllama,
    embedder: OllamaEmbedder,
    header: str | None,
    low: float | None,
    high: float | None,
) -> None:
    warm(fake, embedder)
    if header == "in an hour":  # counted from the test's own start, not from its collection
        header = format_datetime(datetime.now(UTC) + timedelta(hours=1), usegmt=True)
    fake.queue.append(Fault.busy(header))
    with pytest.raises(ProviderBusy) as busy:
        embedder.embed_documents(passages(100))
    assert fake.calls == 1
    if low is None or high is None:
        assert busy.value.retry_after is None
    else:
        assert busy.value.retry_after is not None
        assert low <= busy.value.retry_after <= high


def test_something_else_on_that_address_is_not_a_missing_model(fake: FakeOllama) -> None:
    embedder = OllamaEmbedder("nomic-embed-text", url=f"{fake.url}/elsewhere", timeout_seconds=5)
    with pytest.raises(ProviderRefused, match="no Ollama"):
        embedder.space()
    embedder.close()
