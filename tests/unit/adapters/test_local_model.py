"""The local model, with the real network: what is slow is kept small."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from concordance.adapters.embedding import Embedder, TextFailure, Vector, open_embedder
from concordance.adapters.local_model import (
    MODEL_FILE,
    NOTHING_TO_READ,
    QUERY_WINDOWS,
    VOCABULARY_FILE,
    WINDOW_TOKENS,
    LocalEmbedder,
    PinnedFile,
)
from concordance.errors import (
    ModelMissing,
    ProviderRefused,
    ProviderTimeout,
    ProviderUnavailable,
    SettingsError,
    TextRefused,
)
from concordance.settings import Settings

BACKUP = "How the nightly backup of the database is restored"
RESTORE = "Restoring Postgres from last night's dump"
CAKE = "Beat the eggs with sugar until the cream is white"


@pytest.fixture(scope="module")
def local() -> Iterator[LocalEmbedder]:
    embedder = LocalEmbedder()
    yield embedder
    embedder.close()


def vectors(results: list[Vector | TextFailure]) -> list[Vector]:
    assert not [result for result in results if isinstance(result, TextFailure)]
    return [result for result in results if not isinstance(result, TextFailure)]


def test_the_space_names_the_pinned_file(local: LocalEmbedder) -> None:
    space = local.space()
    assert (space.provider, space.model, space.dimensions) == ("local", "all-minilm-l6-v2", 384)
    assert space.digest == MODEL_FILE.sha256
    assert (space.document_prefix, space.query_prefix) == ("", "")
    assert local.name == "local/all-minilm-l6-v2"


def test_related_texts_are_nearer_than_unrelated_ones(local: LocalEmbedder) -> None:
    backup, restore, cake = vectors(local.embed_documents([BACKUP, RESTORE, CAKE]))
    assert backup.shape == (384,)
    assert backup.dtype == np.float32
    assert np.linalg.norm(backup) == pytest.approx(1.0, abs=1e-6)
    assert backup @ restore > 0.4 > backup @ cake + 0.2


def test_a_vector_does_not_depend_on_its_neighbours(local: LocalEmbedder) -> None:
    (alone,) = vectors(local.embed_documents([BACKUP]))
    among = vectors(local.embed_documents([CAKE * 20, BACKUP, RESTORE, BACKUP, "x"]))
    query = local.embed_query(BACKUP, deadline_seconds=20)
    assert alone.tobytes() == among[1].tobytes() == among[3].tobytes() == query.tobytes()


def test_the_end_of_a_long_text_counts(local: LocalEmbedder) -> None:
    long = "The committee met again and nothing was decided. " * 120
    one, other, same = vectors(
        local.embed_documents([long + CAKE * 20, long + BACKUP * 20, long + CAKE * 20])
    )
    cake = local.embed_query(CAKE, deadline_seconds=20)
    assert np.linalg.norm(one) == pytest.approx(1.0, abs=1e-6)
    assert one.tobytes() == same.tobytes()
    assert cake @ one > cake @ other + 0.05


def test_a_text_just_over_the_window_is_near_one_just_under(local: LocalEmbedder) -> None:
    sentence = "The backup of the database is restored every night from the dump by the operator. "
    encoder = local._loaded()
    tokens = len(encoder.tokenizer.encode(sentence, add_special_tokens=False).ids)
    fitting = WINDOW_TOKENS // tokens
    under, over = vectors(local.embed_documents([sentence * fitting, sentence * (fitting + 1)]))
    assert 0.85 < under @ over < 0.9999


def test_a_question_of_any_length_is_read_from_its_beginning(local: LocalEmbedder) -> None:
    start = "backup " * (QUERY_WINDOWS * WINDOW_TOKENS)
    one, other = (
        local.embed_query(start + end, deadline_seconds=60) for end in ("", "cake " * 20_000)
    )
    assert one.tobytes() == other.tobytes()


class Held:
    """A network that is entered, and answers when it is let go; in some threads only, by name."""

    def __init__(self, session: Any) -> None:
        self._session = session
        self.threads = ""
        self.inside, self.go_on = threading.Event(), threading.Event()

    def run(self, names: Any, inputs: Any) -> Any:
        if threading.current_thread().name.startswith(self.threads):
            self.inside.set()
            self.go_on.wait(60)
        return self._session.run(names, inputs)


@pytest.fixture
def held(local: LocalEmbedder) -> Iterator[Held]:
    encoder = local._loaded()
    yield (held := Held(encoder.session))
    held.go_on.set()


@pytest.mark.timeout(60)
def test_closing_waits_for_a_question_that_is_being_embedded(
    local: LocalEmbedder, held: Held
) -> None:
    """A process that ends within the network aborts."""
    own = LocalEmbedder()
    own._encoder = replace(local._loaded(), session=held)
    ended = threading.Event()
    with pytest.raises(ProviderTimeout):
        own.embed_query("kettle", deadline_seconds=0.05)
    assert held.inside.wait(20)

    def close() -> None:
        own.close()
        ended.set()

    closing = threading.Thread(target=close)
    closing.start()
    assert not ended.wait(0.2)
    held.go_on.set()
    closing.join(20)
    assert ended.is_set()
    with pytest.raises(ProviderUnavailable):
        own.embed_query("kettle", deadline_seconds=1)


@pytest.mark.parametrize("text", ["", " \n\t", "\0"])
def test_a_text_with_nothing_to_read_fails_alone(local: LocalEmbedder, text: str) -> None:
    before, failure, after = local.embed_documents([BACKUP, text, BACKUP])
    assert failure == TextFailure(NOTHING_TO_READ)
    assert isinstance(before, np.ndarray)
    assert isinstance(after, np.ndarray)
    with pytest.raises(TextRefused):
        local.embed_query(text, deadline_seconds=20)


def test_odd_characters_do_no_harm(local: LocalEmbedder) -> None:
    surrogate, replaced, *_ = vectors(
        local.embed_documents(["a\ud800b", "a?b", "導入と設定", "🜛🜛🜛", "z" * 5_000, "=" * 600])
    )
    assert surrogate.tobytes() == replaced.tobytes()


def test_no_texts_give_no_vectors(local: LocalEmbedder) -> None:
    assert local.embed_documents([]) == []


@pytest.mark.timeout(60)
def test_a_question_does_not_wait_for_a_batch(local: LocalEmbedder, held: Held) -> None:
    own = LocalEmbedder()
    own._encoder = replace(local._loaded(), session=held)
    held.threads = "embed-local"
    passages = [CAKE] * 24
    with ThreadPoolExecutor(1) as other:
        batch = other.submit(own.embed_documents, passages)
        assert held.inside.wait(20)
        try:
            own.embed_query(BACKUP, deadline_seconds=20)
            assert not batch.done()
        finally:
            held.go_on.set()
        assert len(vectors(batch.result())) == len(passages)
    own.close()


@pytest.mark.timeout(60)
def test_a_question_that_takes_too_long_is_given_up(local: LocalEmbedder, held: Held) -> None:
    own = LocalEmbedder()
    own._encoder = replace(local._loaded(), session=held)
    with pytest.raises(ProviderTimeout):
        own.embed_query(CAKE, deadline_seconds=0.05)
    # Before the network answered, and the next one is answered.
    held.go_on.set()
    assert own.embed_query(CAKE, deadline_seconds=20).shape == (384,)
    own.close()


@pytest.mark.parametrize("pinned", [MODEL_FILE, VOCABULARY_FILE])
def test_a_file_that_was_changed_is_refused(tmp_path: Path, pinned: PinnedFile) -> None:
    path = tmp_path / pinned.name
    content = bytearray(pinned.read())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)
    changed = replace(pinned, path=path)
    embedder = (
        LocalEmbedder(model_file=changed)
        if pinned is MODEL_FILE
        else LocalEmbedder(vocabulary_file=changed)
    )
    with pytest.raises(ProviderRefused, match="pip install"):
        embedder.space()
    with pytest.raises(ProviderRefused):
        embedder.embed_documents([BACKUP])
    embedder.close()


@pytest.mark.parametrize(
    "absent",
    [
        replace(MODEL_FILE, package="no_such_package_here"),
        replace(MODEL_FILE, name="absent.onnx"),
    ],
)
def test_a_file_that_is_not_there_is_named(absent: PinnedFile) -> None:
    with pytest.raises(ModelMissing, match="pip install"):
        LocalEmbedder(model_file=absent).space()


def test_opening_loads_nothing_and_knows_one_model(tmp_path: Path) -> None:
    settings = Settings(home=tmp_path)
    embedder: Embedder = open_embedder("local/all-minilm-l6-v2", settings)
    assert isinstance(embedder, LocalEmbedder)
    assert embedder._encoder is None
    embedder.close()
    with pytest.raises(SettingsError, match="local/all-minilm-l6-v2"):
        open_embedder("local/other", settings)
    with pytest.raises(SettingsError, match=r"local/…, ollama/…"):
        open_embedder("elsewhere/model", settings)
