"""Runs over several projects that are killed, and the runs after them; `make soak` does more."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.soak.kills import START_SECONDS, KillHistory
from tests.soak.points import Kill
from tests.soak.sites import Site
from tests.soak.tallies import Tally

# A run goes on where the one before was killed, so each has less to do. A server that is gone is
# waited for half a minute: that is left to `make soak`.
KILLS = (
    Kill("statement", 70, "worker"),
    Kill("git", 9, "git"),
    Kill("request", 1, "provider"),
    Kill("statement", 25, "backend"),
    Kill("statement", 25, "session"),
)


@pytest.fixture
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    with Site.open(tmp_path_factory.mktemp("killed"), scans=False) as made:
        yield made


def test_what_is_killed_loses_nothing_and_is_called_complete_by_nobody(site: Site) -> None:
    tally = Tally("suite")
    KillHistory(site, 1, tally, [KILLS]).run(1)
    assert tally.differences == []
    assert tally.kills == {kill.victim: 1 for kill in KILLS}
    assert tally.rows > 100
    assert tally.looks
    assert 0 < tally.longest_start["plain"][0] < START_SECONDS
