"""Times of schedules, across changes of the clocks and long absences; no test waits."""

from __future__ import annotations

from collections import Counter
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bot.core.schedule import Daily, FixedInterval, Schedule

LOS_ANGELES, BERLIN, LORD_HOWE = "America/Los_Angeles", "Europe/Berlin", "Australia/Lord_Howe"
SANTIAGO, KATHMANDU, APIA = "America/Santiago", "Asia/Kathmandu", "Pacific/Apia"


def utc(text: str) -> float:
    return datetime.fromisoformat(text).replace(tzinfo=UTC).timestamp()


def shown(moment: float) -> str:
    return datetime.fromtimestamp(moment, UTC).strftime("%Y-%m-%d %H:%M")


def walk(schedule: Schedule, start: str, count: int) -> list[str]:
    moment, moments = utc(start), []
    for _ in range(count):
        moment = schedule.next_time(moment)
        moments.append(shown(moment))
    return moments


@pytest.mark.parametrize(
    ("time_of_day", "zone", "start", "expected"),
    [
        # The clocks change far from the time: only its UTC offset changes.
        ("21:00", LOS_ANGELES, "2026-03-07", ["2026-03-07 05:00", "2026-03-08 05:00", "2026-03-09 04:00"]),
        ("21:00", LOS_ANGELES, "2026-10-31", ["2026-10-31 04:00", "2026-11-01 04:00", "2026-11-02 05:00"]),
        # 02:30 does not exist on 8 March: 03:00 is the first moment after the gap.
        ("02:30", LOS_ANGELES, "2026-03-07", ["2026-03-07 10:30", "2026-03-08 10:00", "2026-03-09 09:30"]),
        ("02:00", LOS_ANGELES, "2026-03-08", ["2026-03-08 10:00", "2026-03-09 09:00"]),
        # 01:30 comes twice on 1 November: the first counts.
        ("01:30", LOS_ANGELES, "2026-10-31", ["2026-10-31 08:30", "2026-11-01 08:30", "2026-11-02 09:30"]),
        ("02:30", BERLIN, "2026-03-28", ["2026-03-28 01:30", "2026-03-29 01:00", "2026-03-30 00:30"]),
        ("02:30", BERLIN, "2026-10-24", ["2026-10-24 00:30", "2026-10-25 00:30", "2026-10-26 01:30"]),
        # Half an hour is skipped and repeated here.
        ("02:15", LORD_HOWE, "2026-10-02 20:00", ["2026-10-03 15:30", "2026-10-04 15:15"]),
        ("01:45", LORD_HOWE, "2026-04-03 20:00", ["2026-04-04 14:45", "2026-04-05 15:15"]),
        # Midnight itself is skipped here.
        ("00:00", SANTIAGO, "2026-09-05 12:00", ["2026-09-06 04:00", "2026-09-07 03:00"]),
        ("21:00", KATHMANDU, "2026-03-07", ["2026-03-07 15:15", "2026-03-08 15:15"]),
        # A whole day, 30 December 2011, was skipped here.
        ("21:00", APIA, "2011-12-29", ["2011-12-29 07:00", "2011-12-30 07:00", "2011-12-30 10:00", "2011-12-31 07:00"]),
    ],
)
def test_a_time_of_day_is_right_across_changes_of_the_clocks(
    time_of_day: str, zone: str, start: str, expected: list[str]
) -> None:
    assert walk(Daily(time_of_day, zone), start, len(expected)) == expected


@pytest.mark.no_cover
@pytest.mark.parametrize("zone", [LOS_ANGELES, BERLIN, LORD_HOWE, SANTIAGO, KATHMANDU, "UTC"])
@pytest.mark.parametrize("time_of_day", ["00:00", "01:30", "02:30", "21:00", "23:59"])
def test_each_day_of_two_years_has_one_scheduled_time(zone: str, time_of_day: str) -> None:
    moment, days = utc("2026-01-01 12:00"), []
    while moment < utc("2028-01-01"):
        moment = Daily(time_of_day, zone).next_time(moment)
        days.append(datetime.fromtimestamp(moment, ZoneInfo(zone)).date())
    assert days == [days[0] + timedelta(days=n) for n in range(len(days))]


def test_after_a_week_of_absence_only_the_latest_time_counts() -> None:
    schedule, last_start = Daily("21:00", LOS_ANGELES), utc("2026-03-05 06:00")
    back = last_start + 7 * 86400
    assert shown(schedule.last_time(last_start)) == "2026-03-05 05:00"
    assert shown(schedule.last_time(back)) == "2026-03-12 04:00"
    assert shown(schedule.next_time(back)) == "2026-03-13 04:00"


def test_the_scheduled_moment_itself_counts_as_the_last_one_and_not_the_next() -> None:
    moment = utc("2026-11-02 05:00")
    for schedule in (Daily("21:00", LOS_ANGELES), FixedInterval(900)):
        assert schedule.last_time(moment) == moment
        assert schedule.next_time(moment) > moment
        assert schedule.last_time(moment - 1) < moment
        assert schedule.next_time(moment - 1) == moment


def test_an_interval_gives_the_same_times_in_every_process() -> None:
    assert walk(FixedInterval(900), "2026-03-08 09:59", 3) == [
        "2026-03-08 10:00",
        "2026-03-08 10:15",
        "2026-03-08 10:30",
    ]


ZONES = st.sampled_from([LOS_ANGELES, BERLIN, LORD_HOWE, SANTIAGO, APIA, "Africa/Casablanca", "Europe/Dublin"])
TIMES = st.builds("{:02}:{:02}".format, st.integers(0, 23), st.integers(0, 59))
INTERVALS = st.builds(FixedInterval, st.integers(1, 10**6))
KEYS = st.text("abc/", max_size=3)
SCHEDULES = st.one_of(
    st.builds(Daily, TIMES, ZONES), INTERVALS, st.builds(lambda interval, key: interval.for_timer(key), INTERVALS, KEYS)
)


@settings(deadline=None, max_examples=150)
@given(SCHEDULES, st.integers(int(utc("2005-01-01")), int(utc("2035-01-01"))))
def test_there_is_no_time_between_the_last_and_the_next_one(schedule: Schedule, moment: int) -> None:
    last, upcoming = schedule.last_time(moment), schedule.next_time(moment)
    assert last <= moment < upcoming
    assert schedule.next_time(last) == upcoming
    assert schedule.last_time(upcoming) == upcoming
    assert schedule.last_time(upcoming - 1) == last


@pytest.mark.parametrize(
    ("seconds", "text"), [(45, "45s"), (90, "90s"), (900, "15m"), (5400, "90m"), (7200, "2h"), (86400, "1d")]
)
def test_an_interval_is_shown_as_it_is_written_in_app_yaml(seconds: int, text: str) -> None:
    assert str(FixedInterval(seconds)) == f"every {text}"


def test_a_timer_that_runs_every_so_often_has_the_same_offset_in_every_process() -> None:
    assert walk(FixedInterval(900).for_timer("octocat/compiler last-good"), "2026-03-08 09:59", 2) == [
        "2026-03-08 10:03",
        "2026-03-08 10:18",
    ]


def test_the_offsets_of_many_timers_are_whole_minutes_and_fill_the_interval_evenly() -> None:
    timers = Counter(FixedInterval(900).for_timer(f"octocat/r{number} last-good").offset for number in range(10_000))
    assert sorted(timers) == list(range(0, 900, 60))
    assert max(timers.values()) < 800
    assert {FixedInterval(90).for_timer(f"octocat/r{number}").offset for number in range(100)} == {0}


def test_a_daily_timer_runs_at_its_minute_whatever_the_repository() -> None:
    assert Daily("21:00", LOS_ANGELES).for_timer("octocat/compiler nightly") == Daily("21:00", LOS_ANGELES)
