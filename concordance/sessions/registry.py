"""Which formats of session logs there are, and which one a log is of.

What belongs here: the readers that come with the program, in the order in which they are asked, and
the choice among them. Readers of other packages are looked up by
`concordance.adapters.session_readers`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Final, TypeVar

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
from concordance.sessions.events import Event, LineProblem, LogContent, storable
from concordance.sessions.lines import BOM, UNFINISHED, BrokenLineError, LineError, parse
from concordance.sessions.reader import LogContext, NotThisFormat, Reader, Sample
from concordance.text.decoding import foreign_mark

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

_T = TypeVar("_T")


def by_name(others: Sequence[Reader] = ()) -> dict[str, Reader]:
    """All readers by name; of two that share one, the program's own counts."""
    return {reader.name: reader for reader in (*reversed(others), *BUILT_IN)}


def detect(data: bytes, name: str, readers: Mapping[str, Reader]) -> Reader:
    """The reader whose format a log has.

    Raises:
        NotThisFormat: No reader recognises it; the message says what was seen. The names in it
            are whole, so that a secret among them can be known as one: shorten it afterwards.
    """
    sample = Sample(data, name)
    # The program's own first, in their order; a reader of another package must not take their logs.
    own = [reader for reader in BUILT_IN if readers.get(reader.name) is reader]
    rest = [reader for reader in readers.values() if reader not in own]
    foreign = foreign_mark(data)
    failed: NotThisFormat | None = None
    for reader in [*own, *rest] if foreign is None else rest:
        try:
            if _guarded(reader, partial(reader.recognises, sample)):
                return reader
        except NotThisFormat as error:
            failed = failed or error
    if failed is not None:
        raise failed
    if foreign is not None:
        raise NotThisFormat(_not_utf8(foreign))
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
    if named is None:
        try:
            reader = detect(data, context.name, readers)
        except NotThisFormat:
            if _only_begun(data):
                return None, LogContent((), (LineProblem(1, UNFINISHED, unfinished=True),))
            raise
        return reader.name, _content(reader, data, context)
    reader, foreign = readers[named], foreign_mark(data)
    if foreign is not None and reader in BUILT_IN:
        raise NotThisFormat(_not_utf8(foreign))
    return reader.name, _content(reader, data, context)


def _content(reader: Reader, data: bytes, context: LogContext) -> LogContent:
    """What a reader makes of a log; one of another package has to keep to its contract."""

    def told() -> LogContent:
        content = reader.read(data, context)
        if reader not in BUILT_IN and not _is_content(content):
            raise NotThisFormat(f"reader {reader.name} gave something else than events")
        return content

    return _guarded(reader, told)


def _is_content(content: object) -> bool:
    return isinstance(content, LogContent) and all(
        isinstance(event, Event)
        and isinstance(event.session_id, str)
        and isinstance(event.text, str)
        for event in tuple(content.events)
    )


def _guarded(reader: Reader, ask: Callable[[], _T]) -> _T:
    """What a reader says; where one of another package fails, its log is refused, and no other.

    Its words are left out, as they may quote the log: they would reach the records of runs before
    anything is scrubbed.
    """
    if reader in BUILT_IN:
        return ask()
    try:
        return ask()
    except NotThisFormat:
        raise
    except Exception as error:  # noqa: BLE001 - whatever another package raises
        failure = f"reader {reader.name} failed: {type(error).__name__}"
    raise NotThisFormat(failure)


def _only_begun(data: bytes) -> bool:
    """Whether there is one line, not ended, that begins like an object and is none yet."""
    head = data.removeprefix(BOM)
    if b"\n" in head or b"\r" in head.rstrip() or not head.startswith(b'{"'):
        return False
    try:
        parse(head)
    except BrokenLineError:
        return True
    except LineError:
        return False  # it is whole, and no value that can be read
    return False


def _not_utf8(mark: str) -> str:
    return f"not UTF-8: the file starts with the mark of {mark}"


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
    if sample.damage is not None:
        return f"no whole JSON document: {sample.damage}"
    if b"\0" in sample.data[:4_096]:
        return "binary data"
    return "text that is no JSON" if sample.text.isprintable() or "\n" in sample.text else "bytes"


def _keys(value: Mapping[str, object]) -> str:
    if not value:
        return "no keys"
    shown = [f"'{' '.join(storable(key).split())}'" for key in list(value)[:MOST_KEYS_SHOWN]]
    more = ", …" if len(value) > MOST_KEYS_SHOWN else ""
    return f"the keys {', '.join(shown)}{more}"
