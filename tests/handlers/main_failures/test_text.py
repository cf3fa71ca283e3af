"""The texts about failures on a branch."""

from __future__ import annotations

import re

import pytest

from bot.effects.issues import BODY_LIMIT
from bot.github.commits.refs import Commit
from bot.news.message import NewsItem
from handlers.main_failures.decide import FailingContext, FailureChanges, KnownFailures, Recovery
from handlers.main_failures.texts import MOST_LISTED, failure_news, issue_text
from tests.gfm import rendered

HOUR, DAY = 3600.0, 86400.0
A, B, C = ("abc1234" + "0" * 33), ("bcd2345" + "0" * 33), ("cde3456" + "0" * 33)


def failure(
    name: str, sha: str = A, title: str = "Break it", says: str = "3 tests failed", url: str = ""
) -> FailingContext:
    return FailingContext(name, sha, title, says, url, 0.0)


def change(
    began: tuple[FailingContext, ...] = (),
    recovered: tuple[Recovery, ...] = (),
    removed: tuple[FailingContext, ...] = (),
    still: tuple[FailingContext, ...] = (),
) -> FailureChanges:
    return FailureChanges(
        began, recovered, removed, KnownFailures({failure.name: failure for failure in (*began, *still)})
    )


def recovery(name: str, commits: int | None, seconds: float) -> Recovery:
    return Recovery(failure(name), Commit(B if commits != 0 else A, "Fix it", ""), commits, seconds, "https://ci/2")


def test_what_is_not_fixed_in_time_is_a_message_of_its_own() -> None:
    late = failure("cpu", url="https://ci/1")
    changes = FailureChanges((), (), (), KnownFailures({"cpu": late, "gpu": failure("gpu")}), (late,))
    news = failure_news(changes, "main", "2 days")
    assert news.title == "1 check on main: not fixed within 2 days"
    text = "not fixed within 2 days; first seen failing at abc1234 Break it: 3 tests failed"
    assert (news.items, news.notes) == ((NewsItem("cpu", text, "https://ci/1"),), ("1 check still failing.",))


@pytest.mark.parametrize(
    ("changes", "title", "items", "notes", "good"),
    [
        (
            change((failure("cpu", url="https://ci/1"),)),
            "1 check began to fail on main at abc1234",
            [NewsItem("cpu", "3 tests failed", "https://ci/1")],
            ["abc1234: Break it"],
            False,
        ),
        (
            change((failure("cpu"), failure("gpu", B)), still=(failure("lint"),)),
            "2 checks began to fail on main",
            [NewsItem("cpu", "at abc1234: 3 tests failed"), NewsItem("gpu", "at bcd2345: 3 tests failed")],
            ["1 check still failing."],
            False,
        ),
        (
            change(recovered=(recovery("cpu", 3, 2.5 * HOUR), recovery("gpu", 1, HOUR))),
            "main has recovered, after 3 commits and 2 hours",
            [
                NewsItem("cpu", "recovered at bcd2345, 3 commits after abc1234 Break it", "https://ci/2"),
                NewsItem("gpu", "recovered at bcd2345, 1 commit after abc1234 Break it", "https://ci/2"),
            ],
            [],
            True,
        ),
        (
            change(recovered=(recovery("cpu", 0, 90.0),)),
            "main has recovered, after 1 minute",
            [
                NewsItem(
                    "cpu",
                    "recovered: a rerun passed at abc1234 Break it, where it was first seen failing",
                    "https://ci/2",
                )
            ],
            [],
            True,
        ),
        (
            change(recovered=(recovery("cpu", None, 3 * DAY),), still=(failure("gpu"), failure("lint"))),
            "1 check on main: recovered",
            [NewsItem("cpu", "recovered at bcd2345; it was first seen failing at abc1234 Break it", "https://ci/2")],
            ["2 checks still failing."],
            False,
        ),
        (
            change(removed=(failure("cpu"),)),
            "1 check on main: failing, and no longer reported",
            [NewsItem("cpu", "not reported on the newest commits; it was first seen failing at abc1234 Break it")],
            [],
            True,
        ),
        (
            change((failure("gpu", B),), (recovery("cpu", 1, 5.0),), (failure("lint"),)),
            "1 check began to fail on main at bcd2345",
            [
                NewsItem("gpu", "3 tests failed"),
                NewsItem("cpu", "recovered at bcd2345, 1 commit after abc1234 Break it", "https://ci/2"),
                NewsItem("lint", "not reported on the newest commits; it was first seen failing at abc1234 Break it"),
            ],
            ["bcd2345: Break it"],
            False,
        ),
    ],
)
def test_news_says_what_and_since_when(
    changes: FailureChanges, title: str, items: list[NewsItem], notes: list[str], good: bool
) -> None:
    news = failure_news(changes, "main")
    assert (news.title, list(news.items), list(news.notes), news.good) == (title, items, notes, good)


def test_the_issue_lists_failures_oldest_first() -> None:
    old = FailingContext("lint", B, "Tidy", "1 warning", "", -HOUR)
    title, body = issue_text(
        KnownFailures({"cpu": failure("cpu", url="https://ci.example.org/1?a=1&b=2"), "lint": old}), "main"
    )
    assert title == "main is failing"
    assert body.splitlines()[2:4] == [
        f"- `lint`: 1 warning, first on {B} Tidy",
        f"- `cpu`: 3 tests failed ([details](<https://ci.example.org/1?a=1&amp;b=2>)), first on {A} Break it",
    ]
    assert issue_text(KnownFailures(), "main") == (title, "")


HOSTILE = "`@octocat` <script>x</script> ![x](https://example.com/x) [y](javascript:z) #1 **b** | "


@pytest.mark.parametrize(
    "url", ["javascript:alert(1)", "https://ci.example.org/>) @octocat [x](y", "", "ftp://example.org"]
)
def test_text_from_outside_has_no_effect_in_the_issue(url: str) -> None:
    hostile = failure(HOSTILE, title=HOSTILE, says=HOSTILE, url=url)
    _, body = issue_text(KnownFailures({HOSTILE: hostile}), "main")
    page = rendered(body, raw_html=True)
    assert not re.search("<script|<img|<strong|<h[1-6]|<table", page)
    assert "@octocat" not in re.sub("<code>.*?</code>|<[^>]*>", "", page)
    assert re.findall('href="([^"]*)"', page) == (
        ["https://ci.example.org/%3E%29%20@octocat%20%5Bx%5D%28y"] if url.startswith("https") else []
    )


@pytest.mark.parametrize(("letters", "listed"), [("x", MOST_LISTED), ("@" * 140, 17)])
def test_any_number_of_failures_fits_into_the_issue(letters: str, listed: int) -> None:
    url = f"https://example.org/{'&' * len(letters)}{letters * 4}"
    many = [failure(f"{n:03}{letters * 3}", title=letters[:120], says=letters, url=url) for n in range(300)]
    _, body = issue_text(KnownFailures({failure.name: failure for failure in many}), "main")
    assert len(body) <= BODY_LIMIT
    assert body.count("\n- ") == listed + 1
    assert f"- and {300 - listed} more" in body
