"""Which formats of session logs there are, and which one a log is of.

What belongs here: the readers that come with the program, in the order in which they are asked, and
the choice among them. Readers of other packages are looked up by
`concordance.adapters.session_readers`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from concordance.sessions import (
    aider,
    chatgpt,
    claude_code,
    cline,
    codex,
    gemini,
    jsonl,
    open_webui,
    slack,
)
from concordance.sessions.events import LineProblem, LogContent
from concordance.sessions.lines import BOM, UNFINISHED
from concordance.sessions.reader import LogContext, NotThisFormat, Reader, Sample

BUILT_IN: Final[tuple[Reader, ...]] = (
    jsonl.READER,
    claude_code.READER,
    codex.READER,
    gemini.READER,
    chatgpt.READER,
    open_webui.READER,
    cline.READER,
    slack.READER,
    aider.READER,
)
MOST_KEYS_SHOWN: Final = 8
LONGEST_SHOWN: Final = 60


def by_name(others: Sequence[Reader] = ()) -> dict[str, Reader]:
    """All readers by name; of two that share one, the program's own counts."""
    return {reader.name: reader for reader in (*reversed(others), *BUILT_IN)}


def detect(data: bytes, name: str, readers: Mapping[str, Reader]) -> Reader:
    """The reader whose format a log has.

    Raises:
        NotThisFormat: No reader recognises it; the message says what was seen.
    """
    sample = Sample(data, name)
    # The program's own first, in their order; a reader of another package must not take their logs.
    own = [reader for reader in BUILT_IN if readers.get(reader.name) is reader]
    rest = [reader for reader in readers.values() if reader not in own]
    for reader in (*own, *rest):
        if reader.recognises(sample):
            return reader
    raise NotThisFormat(f"no known format of session logs: {_seen(sample)}")


def read(
    data: bytes, context: LogContext, readers: Mapping[str, Reader], named: str | None = None
) -> tuple[str | None, LogContent]:
    """The format of a log, and what it holds.

    An empty log holds nothing, and one whose only line is being written is read next time: both
    have no format yet.

    Raises:
        NotThisFormat: The format is not known, or the log is not of the one that was named.
    """
    if not data.removeprefix(BOM).strip():
        return named, LogContent(())
    if named is None and _only_begun(data):
        return None, LogContent((), (LineProblem(1, UNFINISHED, unfinished=True),))
    reader = detect(data, context.name, readers) if named is None else readers[named]
    return reader.name, reader.read(data, context)


def _only_begun(data: bytes) -> bool:
    """Whether there is one line, not ended, that begins like an object and is none yet."""
    head = data.removeprefix(BOM)
    if b"\n" in head or not head.startswith(b'{"'):
        return False
    sample = Sample(data, "log")
    return sample.document is None


def _seen(sample: Sample) -> str:
    """What a log looks like, without anything that was said in it."""
    whole = sample.document
    if isinstance(whole, dict):
        return f"one JSON object with {_keys(whole)}"
    if isinstance(whole, list):
        first = next((entry for entry in whole if isinstance(entry, dict)), None)
        inner = f", the first object with {_keys(first)}" if first is not None else ""
        return f"a JSON list of {len(whole):,}{inner}"
    if sample.lines:
        return f"JSON lines, the first object with {_keys(sample.lines[0])}"
    if b"\0" in sample.data[:4_096]:
        return "binary data"
    return "text that is no JSON" if sample.text.isprintable() or "\n" in sample.text else "bytes"


def _keys(value: Mapping[str, object]) -> str:
    if not value:
        return "no keys"
    shown = [repr(key[:LONGEST_SHOWN]) for key in list(value)[:MOST_KEYS_SHOWN]]
    more = ", …" if len(value) > MOST_KEYS_SHOWN else ""
    return f"the keys {', '.join(shown)}{more}"
