"""What neither a change of clocks nor a time zone may shift: schedules and ages."""

from __future__ import annotations

import asyncio
import itertools
import json
import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest
import yaml  # type: ignore[import-untyped]
from prefect.server.schemas.schedules import CronSchedule
from psycopg.conninfo import make_conninfo
from pydantic import SecretStr

from concordance.indexing.counting import age
from concordance.models import Scope
from concordance.settings import Project
from tests.conftest import Clock, IndexMaker
from tests.postgres import driver
from tests.sources import GitSource

ROOT = Path(__file__).parents[2]
DOC = "# Guide\n\nRetry the clone with exponential backoff.\n"

DEPLOYMENTS = yaml.safe_load((ROOT / "deployments" / "prefect.yaml").read_text(encoding="utf-8"))


SCHEDULES = [
    (deployment["name"], schedule["cron"], schedule["timezone"])
    for deployment in DEPLOYMENTS["deployments"]
    for schedule in deployment.get("schedules", ())
]


@pytest.mark.parametrize(("name", "cron", "zone"), SCHEDULES)
@pytest.mark.parametrize("day", ["2026-03-28", "2026-10-24"])
def test_a_schedule_runs_every_day_across_a_change_of_clocks_pre_6(
    name: str, cron: str, zone: str, day: str
) -> None:
    start = datetime.fromisoformat(day).replace(tzinfo=ZoneInfo(zone))
    schedule = CronSchedule(cron=cron, timezone=zone)
    end = start + timedelta(days=3)
    dates = asyncio.run(schedule.get_dates(n=200, start=start, end=end))
    assert len(set(dates)) == len(dates)
    gaps = {later - earlier for earlier, later in itertools.pairwise(dates)}
    # Prefect skips the repeated hour of autumn; a run that comes an hour late does no harm.
    usual = timedelta(hours=1) if cron.endswith("* * * *") else timedelta(days=1)
    assert max(gaps) <= usual + timedelta(hours=1), name
    assert min(gaps) > timedelta(0)
    if usual == timedelta(days=1):
        assert {date.astimezone(ZoneInfo(zone)).date() for date in dates} == {
            (start + timedelta(days=n)).date() for n in range(3)
        }
    assert zone in (ROOT / "docs" / "operations.md").read_text(encoding="utf-8"), "documented"


@pytest.fixture
def far_away(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A process whose local time is half an hour off every other clock."""
    monkeypatch.setenv("TZ", "America/St_Johns")
    time.tzset()
    yield
    monkeypatch.undo()
    time.tzset()


@pytest.mark.parametrize(
    "moment", [datetime(2026, 10, 25, 0, 45, tzinfo=UTC), datetime(2026, 3, 29, 0, 59, tzinfo=UTC)]
)
def test_ages_are_the_time_that_passed_in_any_zone_pre_6(  # noqa: PLR0917 - fixtures
    make_index: IndexMaker,
    tmp_path: Path,
    database_url: str,
    clock: Clock,
    far_away: None,
    moment: datetime,
) -> None:
    clock.now = moment
    source = GitSource.make(tmp_path / "one", {"docs/a.md": DOC})
    elsewhere = make_conninfo(database_url, options="-c timezone=Asia/Kathmandu")
    index = make_index(Project(slug="one", path=source.path), database_url=SecretStr(elsewhere))
    driver.reindex(index, "one")
    said = driver.covered(index, slug="one")
    assert said.last_success is not None
    assert said.last_success.utcoffset() == timedelta(0)
    assert moment < said.last_success < moment + timedelta(minutes=5)
    # 02:45+02:00 and, half an hour later, 02:15+01:00 on the same wall.
    clock.now = moment + timedelta(minutes=30)
    (docs,) = [f for f in index.search("clone").freshness if f.scope is Scope.DOCS]
    assert docs.age_seconds is not None
    assert 1_500 < docs.age_seconds <= 1_800 + 60
    paris = ZoneInfo("Europe/Paris")
    shown = age(said.last_success.astimezone(paris), clock.now.astimezone(paris))
    assert shown in ("29 min ago", "30 min ago")
    assert json.loads(said.model_dump_json())["last_success"].endswith("Z"), "with its offset"
    types = driver.ask(
        database_url,
        "select distinct data_type from information_schema.columns "
        "where table_schema = 'concordance' and data_type like 'timestamp%'",
    )
    assert types == [{"data_type": "timestamp with time zone"}]
