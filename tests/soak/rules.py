"""What decides, besides the sources, which rows an index has: settings, versions and the model.

What belongs here: values that can be sent to another process, and how they are put in force there.
Versions are raised in the process that asks for it, never in the product's files.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass, replace
from functools import partial
from typing import Any
from unittest import mock

from concordance import covering, following, reading, surveying
from concordance.adapters import ollama
from concordance.sessions import jsonl, registry
from concordance.text import chunking, scrubbing
from concordance.text.cutting import ChunkSizes
from tests.fake_ollama import FakeModel, FakeOllama

VERSIONS = ("chunker", "records", "words", "secrets", "turns", "reader", "text")
MODELS = ("nomic-embed-text", "all-minilm", "mxbai-embed-large")


@dataclass(frozen=True, slots=True)
class Rules:
    """Numbers at the end are how often a version was raised."""

    model: str = MODELS[0]
    digest: int = 1
    target: int = ChunkSizes().target
    language: str = "english"
    scrub: bool = True
    subagents: bool = False
    with_sources: bool = False
    chunker: int = 0
    records: int = 0
    words: int = 0
    secrets: int = 0
    turns: int = 0
    reader: int = 0
    text: int = 0

    def changed(self, dice: random.Random) -> tuple[str, Rules]:
        """Other rules, and what was changed."""
        changes: dict[str, Callable[[], Any]] = {
            "model": lambda: dice.choice([m for m in MODELS if m != self.model]),
            "digest": lambda: self.digest % 3 + 1,
            "target": lambda: dice.choice([t for t in (60, 200, 1_500) if t != self.target]),
            "language": lambda: dice.choice(
                [name for name in ("english", "german", "auto") if name != self.language]
            ),
            "scrub": lambda: not self.scrub,
            "subagents": lambda: not self.subagents,
            "with_sources": lambda: not self.with_sources,
        }
        changes |= {name: partial(self._raised, name) for name in VERSIONS}
        # The model is what has most to do with vectors: every third change is one of it.
        name = dice.choice([*changes, *["model", "digest"] * 4])
        return name, replace(self, **{name: changes[name]()})

    def _raised(self, name: str) -> int:
        return int(getattr(self, name)) + 1

    def as_json(self) -> dict[str, Any]:
        """The same for another process: `Rules(**given)`."""
        return asdict(self)

    def serve(self, provider: FakeOllama) -> None:
        """Let a provider have the models in the version of these rules."""
        provider.models.clear()
        for number, model in enumerate(MODELS):
            width = 32 + 16 * number
            provider.models[f"{model}:latest"] = FakeModel(width, version=str(self.digest))

    @contextmanager
    def in_force(self) -> Iterator[None]:
        """Versions and sizes of this process as these rules say, to the end of the block."""
        sizes = ChunkSizes(target=self.target)
        reader = replace(jsonl.READER, version=jsonl.READER.version + self.reader)
        built_in = (reader, *registry.BUILT_IN[1:])
        raised: tuple[tuple[Any, str, int], ...] = (
            (chunking, "CHUNKER_VERSION", self.chunker),
            (surveying, "RECORDS_VERSION", self.records),
            (surveying, "LEXEMES_VERSION", self.words),
            (surveying, "TURNS_VERSION", self.turns),
            (scrubbing, "RULES_VERSION", self.secrets),
            (covering, "CHUNK_TEXT_VERSION", self.text),
            (ollama, "CHUNK_TEXT_VERSION", self.text),
        )
        patches: list[tuple[Any, str, Any]] = [
            *((module, "ChunkSizes", lambda: sizes) for module in (surveying, reading, following)),
            *((module, name, getattr(module, name) + by) for module, name, by in raised),
            (registry, "BUILT_IN", built_in),
        ]
        with ExitStack() as stack:
            for module, name, value in patches:
                stack.enter_context(mock.patch.object(module, name, value))
            yield
