"""What the tests of adapters share."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from concordance.adapters.ollama import OllamaEmbedder
from tests.fake_ollama import FakeOllama


@pytest.fixture
def fake() -> Iterator[FakeOllama]:
    with FakeOllama() as server:
        yield server


@pytest.fixture
def embedder(fake: FakeOllama) -> Iterator[OllamaEmbedder]:
    opened = OllamaEmbedder("nomic-embed-text", url=fake.url, timeout_seconds=20)
    yield opened
    opened.close()
