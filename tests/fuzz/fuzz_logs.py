"""Session logs of every format with bytes cut out, doubled, moved and made up."""

from __future__ import annotations

from contextlib import suppress

from hypothesis import given
from hypothesis import strategies as st

from concordance.sessions.lines import LineError
from concordance.sessions.reader import LogContext, NotThisFormat
from concordance.sessions.registry import by_name, read
from tests.fuzz.profile import FUZZED
from tests.session_logs import EXAMPLES, Example

READERS = by_name()
PIECES = st.one_of(
    st.binary(max_size=12),
    st.sampled_from([b"\0", b"\n", b"\r", b"{", b"}", b"[", b"]", b'"', b"\\u0000", b"\\ud800"]),
    st.sampled_from(
        [b"null", b"1e999", b"-0", b"[" * 2_000, b"9" * 6_000, b"\xff\xfe", b"\xe2\x80"]
    ),
)
EDITS = st.lists(st.tuples(st.floats(0, 1), st.integers(0, 40), PIECES), min_size=1, max_size=6)


@FUZZED
@given(st.sampled_from(EXAMPLES), EDITS, st.booleans())
def test_a_damaged_log_is_read_as_far_as_it_goes(
    example: Example, edits: list[tuple[float, int, bytes]], named: bool
) -> None:
    data = example.data
    for where, removed, added in edits:
        at = int(where * len(data))
        data = data[:at] + added + data[at + removed :]
    with suppress(NotThisFormat, LineError):
        form = example.format if named else None
        _, content = read(data, LogContext(example.name), READERS, form)
        for event in content.events:
            assert "\0" not in event.text
            assert event.text.encode("utf-8")
            assert event.session_id
            assert event.event_id
