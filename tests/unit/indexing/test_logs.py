"""The state of a log: what is told of it, and whether it holds less than it did."""

from __future__ import annotations

import pytest

from concordance.indexing.logs import (
    LONGEST_KIND,
    LONGEST_REASON,
    LogState,
    Part,
    holds_less,
    state_of,
    told,
    without_secrets,
)
from concordance.sessions.events import Event, LineProblem, LogContent
from concordance.text.scrubbing import Scrubber
from tests.planted import planted

SECRET = planted()["github"][1]
MARK = "[secret: github token]"


def state(**more: object) -> LogState:
    return LogState("log", "1", "r", **more)  # type: ignore[arg-type]


@pytest.mark.parametrize("before", [10, LONGEST_KIND - 20, LONGEST_KIND - 4, LONGEST_REASON - 20])
def test_what_is_long_is_cut_after_it_was_scrubbed(before: int) -> None:
    text = f"{'x ' * (before // 2)}{SECRET} {'y' * LONGEST_REASON}"
    found = without_secrets(
        state(left_out={text: 2}, refused=text, beside=text, problems=(LineProblem(1, text),)),
        Scrubber(),
    )
    (kind,) = found.left_out
    reasons = [found.refused or "", found.beside or "", found.problems[0].reason]
    for shown in (kind, *reasons):
        assert not any(SECRET[at : at + 6] in shown for at in range(len(SECRET) - 6))
        assert shown.endswith("…")
    assert len(kind) == LONGEST_KIND
    assert [len(reason) for reason in reasons] == [LONGEST_REASON] * 3
    assert without_secrets(found, Scrubber()) == found


def test_a_reason_leaves_room_for_what_is_said_after_it() -> None:
    assert told(SECRET, Scrubber(), "; it stays") == f"{MARK}; it stays"
    shown = told("x" * 9_000, Scrubber(), "; it stays")
    assert shown.endswith("x…; it stays")
    assert told(shown, Scrubber()) == shown


def test_a_log_holds_less_where_a_session_lacks_a_turn_or_is_gone() -> None:
    known = state(parts=(Part("s", "a", 2), Part("t", "b", 0)))
    assert not holds_less(known, known)
    assert not holds_less(state(parts=(Part("s", "z", 3), Part("t", "b", 0))), known)
    assert holds_less(state(parts=(Part("s", "a", 1), Part("t", "b", 0))), known)
    assert holds_less(state(parts=(Part("s", "a", 2),)), known)
    assert not holds_less(state(), state())


def test_turns_are_counted_by_their_ids() -> None:
    events = tuple(Event("s", str(n % 2), "human", f"turn {n}", None) for n in range(5))
    content = LogContent(events, left_out={"tool": 1})
    found = state_of(content, path="log", stamp="1", reader="r", named="x", project="p")
    assert found.turns == 2
    assert found.left_out == {"tool": 1, "repeats an id, the last one counts": 3}
