"""The digest of a lab's week, as a whole."""

from __future__ import annotations

from dataclasses import replace

from nightjar_formats.model import TargetKey

from bot.news.message import News, NewsItem
from bot.results.settings.quarantine import QuarantinedTest
from bot.results.store.failures.failures import FailureMessage, RegressionMessage
from bot.results.store.lists.flaky_tests import FlakyTest
from handlers.weekly_digest.decide import WEEK, LabWeek, SlowTestOnTarget, digest_of
from tests.results.reported import ABOUT, AT

URL = "https://nightjar.example.org"
NAME = ABOUT.full_name
QUIET = LabWeek("octocat/compiler", "example-lab", AT, (), {}, (), (), ())
"""The week to 2026-11-20."""
FLAKY = FlakyTest(TargetKey("octocat/compiler", "example-lab", "mali"), "operators", "a.py::flaky", 4, 20, 3, 1, True)
SLOW = SlowTestOnTarget(NAME, "a.py::slow", 99.6)


def message(test: str, reported_at: float, ended: str = "", ended_at: float = 0.0) -> RegressionMessage:
    about = FailureMessage("b" * 40, "a" * 40, "c" * 40, reported_at, ended, "", ended_at)
    return RegressionMessage(ABOUT, "operators", test, about)


def quarantined(until: str) -> QuarantinedTest:
    return QuarantinedTest(
        test="a.py::known", owner="hubot", reason="It is known.", issue="https://example.org/1", until=until
    )


def test_a_quiet_week_has_no_digest_whatever_is_flaky_slow_or_quarantined_for_long() -> None:
    assert digest_of(QUIET, URL) is None
    long_ago = [
        message("old", AT - WEEK - 1),
        message("next week", AT),
        message("old", 0.0, "recovered", AT - WEEK - 1),
    ]
    context = replace(QUIET, flaky=[FLAKY], slow=[SLOW], quarantined=[quarantined("2026-11-28")], missing={NAME: 0})
    assert digest_of(replace(context, messages=long_ago), URL) is None


def test_a_week_says_what_broke_recovered_came_late_and_expires() -> None:
    week = replace(
        QUIET,
        messages=[
            message("a.py::add", AT - WEEK),
            message("a.py::mul", AT - 1, "recovered", AT - 1),
            message("a.py::sub", 0.0, "removed", AT - WEEK),
        ],
        missing={NAME: 1, "example-lab/mali": 0},
        quarantined=[quarantined("2026-11-27"), quarantined("2026-11-28")],
        flaky=[FLAKY],
        slow=[SLOW],
    )
    page = f"{URL}/r/octocat/compiler/tests?id=a.py%3A%3A"
    here = "&target=example-lab%2Fhexagon-v73"
    assert digest_of(week, URL) == News(
        "example-lab, week to 2026-11-20: 1 broke, 2 recovered, 1 late, 1 expiring",
        (
            NewsItem("a.py::add", f"broke on {NAME}, since bbbbbbb", f"{page}add{here}"),
            NewsItem(NAME, "1 nightly commit without a result"),
            NewsItem("a.py::known", "leaves quarantine after 2026-11-27; owner: hubot"),
            NewsItem("a.py::mul", f"recovered on {NAME}", f"{page}mul{here}"),
            NewsItem("a.py::sub", f"removed on {NAME}", f"{page}sub{here}"),
            NewsItem(
                "a.py::flaky",
                "flaky on example-lab/mali: 3 of 20 runs failed",
                f"{page}flaky&target=example-lab%2Fmali",
            ),
            NewsItem("a.py::slow", f"slow on {NAME}: 1 min 40 s", f"{page}slow{here}"),
        ),
        url=f"{URL}/r/octocat/compiler/labs/example-lab",
        notes=("2 tests quarantined here.",),
        good=False,
    )


def test_a_week_with_recoveries_alone_is_good_and_without_an_address_has_no_links() -> None:
    week = replace(QUIET, messages=[message("a.py::mul", AT - 1, "recovered", AT - 1)])
    title = "example-lab, week to 2026-11-20: 1 recovered"
    assert digest_of(week, "") == News(title, (NewsItem("a.py::mul", f"recovered on {NAME}"),), good=True)
    late = digest_of(replace(week, missing={NAME: 2}), "")
    assert late is not None
    assert (late.good, late.items[0]) == (False, NewsItem(NAME, "2 nightly commits without a result"))
