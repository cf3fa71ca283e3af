"""The weekly digest of a lab: what it says, and that it says it once."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

from bot.core.events import Repository
from bot.core.schedule import Weekly
from bot.engine.internal import announce
from bot.timers.timers import TIMER_EVENT, TimerEvent
from handlers.weekly_digest.decide import LabWeek, SlowTestOnTarget, digest_of
from tests.bucket import World
from tests.conversations.channels import LabNews, channels
from tests.conversations.lab import junit, lab_town

DAY = 86400


def test_a_week_begins_on_its_day_in_its_zone() -> None:
    schedule = Weekly(0, "08:00", "Europe/Berlin")
    sunday = datetime(2026, 3, 29, 12, 0, tzinfo=UTC).timestamp()  # the clocks went forward in this night
    last, following = schedule.last_time(sunday), schedule.next_time(sunday)
    assert datetime.fromtimestamp(last, UTC) == datetime(2026, 3, 23, 7, 0, tzinfo=UTC)
    assert datetime.fromtimestamp(following, UTC) == datetime(2026, 3, 30, 6, 0, tzinfo=UTC)
    assert (schedule.last_time(following), schedule.next_time(last)) == (following, following)


def test_a_digest_says_how_long_quick_tests_take() -> None:
    slow = [SlowTestOnTarget("example-lab/adreno", "test_a", 0.3), SlowTestOnTarget("example-lab/mali", "test_b", 200)]
    week = LabWeek("octocat/compiler", "example-lab", 1795420800.0, (), {"example-lab/adreno": 1}, (), (), slow)
    news = digest_of(week, "")
    assert news is not None
    assert news.title == "example-lab, week to 2026-11-23: 1 late"
    assert [item.text for item in news.items] == [
        "1 nightly commit without a result",
        "slow on example-lab/adreno: 300 ms",
        "slow on example-lab/mali: 3 min 20 s",
    ]


async def test_each_lab_has_one_digest_a_week_and_none_if_nothing_happened(tmp_path: Path, aws_world: World) -> None:
    async with (
        channels() as opened,
        lab_town(
            f"sqlite:///{tmp_path}/nightjar.db",
            aws_world,
            features="regressions: {to: [discord]}\n    weekly_digest: {to: [slack, issue]}",
            environment=opened.environment,
        ) as place,
    ):
        news = LabNews(place, opened)
        repository = Repository(place.town.repo.id, place.town.repo.full_name, None)

        async def week_ends(moment: float, name: str) -> None:
            event = TimerEvent("weekly-digest", name, int(moment))
            await announce(place.town.bot.engine.accept, TIMER_EVENT, repository, event)
            await place.town.quiet()

        for failed in ((), ("b",), ("b",)):
            sha = place.nightly_run()
            outcomes = {f"test_{name}": "AssertionError" if name in failed else "passed" for name in "abc"}
            place.upload(sha, {"ops.xml": junit(**outcomes)})
            await place.settle()
            await place.scan()
        moment = place.time() // DAY * DAY + 1.5 * DAY  # the noon of tomorrow
        await week_ends(moment, "first")
        await week_ends(moment + 1, "again, by another process")
        (message,) = opened.slack.said
        assert "1 broke" in message.splitlines()[0]
        assert "test_b: broke on example-lab/hexagon-v73" in message
        assert [issue.title for issue in news.issues] == ["Weekly digest of example-lab"]
        await week_ends(moment + 30 * DAY, "quiet")
        assert (len(opened.slack.said), len(news.issues)) == (1, 1)
        assert await place.town.failures() == []
