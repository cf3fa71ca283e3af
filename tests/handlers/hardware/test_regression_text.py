"""What people read of regressions: in the message of a night, and in the issue as long as anything fails."""

from __future__ import annotations

import re

from hypothesis import given, settings
from hypothesis import strategies as st

from bot.effects.issues import BODY_LIMIT
from bot.news.message import NewsItem
from bot.results.report.findings import Findings
from handlers.hardware.regression_state import Regression, RegressionChanges
from handlers.hardware.regression_text import MOST_LISTED, issue_body, issue_title, news_of
from tests.gfm import Page, rendered
from tests.results.reported import SHA, a_suite, compared, findings
from tests.results.test_report_safe import ACTIVE, OURS, TEXTS

GOOD, SINCE = "a" * 40, "b" * 40
REPOSITORY = "https://github.example/octocat/compiler"
RANGE = f"{REPOSITORY}/compare/{GOOD}...{SINCE}"


def some(*tests: str, suite: str = "operators", mass: bool = False) -> Regression:
    return Regression(suite, SINCE, GOOD, RANGE, tests, mass)


def many(count: int, *, mass: bool = False) -> Regression:
    return some(*(f"tests/test_many.py::test_{n}" for n in range(count)), mass=mass)


def found(*contacts: str) -> Findings:
    return findings((a_suite(), compared()), contacts=contacts)


def test_a_message_says_what_where_and_since_when_and_whom_to_ask() -> None:
    began = (some("tests/a.py::test_x", "tests/a.py::test_y"), some("r.py::test_z", suite="relax"))
    news = news_of(found("@example-lab-ci"), RegressionChanges(began=began), began)
    assert news.title == f"3 tests began to fail on example-lab/hexagon-v73 at nightly commit {SHA[:7]}"
    assert news.url == f"{REPOSITORY}/commit/{SHA}/checks"
    assert news.items == (
        NewsItem("tests/a.py::test_x", "operators, since bbbbbbb; it passed at aaaaaaa", RANGE),
        NewsItem("tests/a.py::test_y", "operators, since bbbbbbb; it passed at aaaaaaa", RANGE),
        NewsItem("r.py::test_z", "relax, since bbbbbbb; it passed at aaaaaaa", RANGE),
    )
    assert (news.more, news.good) == (0, False)
    assert news.notes == (
        "New failures are confirmed: they failed in two runs in a row, after a run in which they passed.",
        "Questions about this lab: @example-lab-ci (not notified).",
    )


def test_a_mass_is_one_line_and_nothing_of_it_is_called_confirmed() -> None:
    mass = (many(120, mass=True),)
    news = news_of(found(), RegressionChanges(began=mass), mass)
    assert news.title == f"120 tests fail at once on example-lab/hexagon-v73 at nightly commit {SHA[:7]}"
    words = "120 tests fail at once, since bbbbbbb; probably one cause, so none of them is confirmed"
    assert news.items == (NewsItem("operators", words, RANGE),)
    assert (news.more, news.notes) == (0, ())


def test_a_recovery_is_reported_with_the_remaining_failures() -> None:
    changes = RegressionChanges(well=(some("a.py::a"), many(30)), removed=(some("a.py::c"),))
    news = news_of(found(), changes, (some("a.py::b"),))
    where = f"on example-lab/hexagon-v73 at nightly commit {SHA[:7]}"
    assert news.title == f"31 tests recovered, 1 failing test was removed {where}"
    assert news.items == (
        NewsItem("a.py::a", "operators, recovered"),
        NewsItem("operators", "30 tests recovered"),
        NewsItem("a.py::c", "operators, removed without a pass"),
    )
    assert (news.notes, news.good) == (("1 test fails still, as reported before.",), False)


def test_it_is_good_news_when_nothing_is_left() -> None:
    news = news_of(found(), RegressionChanges(well=(some("a.py::a"),)), ())
    assert (news.good, issue_body(found(), ())) == (True, "")


def test_more_than_ten_lines_are_counted() -> None:
    began = (some(*(f"a.py::test_{n}" for n in range(14))),)
    news = news_of(found(), RegressionChanges(began=began, well=(some("b.py::b"),)), began)
    assert (len(news.items), news.more) == (10, 5)


def test_a_nightly_run_without_a_baseline_has_no_page_to_link() -> None:
    alone = findings((a_suite(), compared(baseline=None)))
    assert news_of(alone, RegressionChanges(well=(some("a.py::a"),)), ()).url == ""


def test_the_issue_lists_what_fails_since_when() -> None:
    failing = (some("a.py::test_x", "a.py::test_y"), many(120, mass=True))
    assert issue_title(found()) == "Regressions on example-lab/hexagon-v73"
    assert issue_body(found("@example-lab-ci"), failing) == (
        "On target `hexagon-v73` of lab `example-lab`, these tests began to fail on the nightly branch and "
        "have not passed since.\n\n"
        f"- `operators`: 2 tests, since `bbbbbbb` ([what changed]({RANGE}))\n"
        "  - `a.py::test_x`\n"
        "  - `a.py::test_y`\n"
        f"- `operators`: 120 tests, since `bbbbbbb` ([what changed]({RANGE})); so many at once that they "
        "probably have one cause\n"
        "  - `tests/test_many.py::test_0`\n"
        "  - `tests/test_many.py::test_1`\n"
        "  - `tests/test_many.py::test_2`\n"
        "  - and 117 more\n\n"
        "I'll comment here when more tests fail or some recover, and close this issue when all have recovered.\n\n"
        "Questions about this lab: `@example-lab-ci` (not notified)."
    )


def test_the_issue_lists_so_many_tests_and_counts_the_others() -> None:
    body = issue_body(found(), (many(MOST_LISTED + 5), some("a.py::x", suite="relax"), some("a.py::y", suite="ir")))
    assert "  - and 5 more\n- and 2 more\n" in body
    assert "relax" not in body


def test_the_longest_issue_is_one_that_github_takes() -> None:
    worst = [some("@|" * 500 + str(n), suite="s" * 100) for n in range(MOST_LISTED)]
    assert len(issue_body(found(*(["@|" * 50] * 12)), worst)) < BODY_LIMIT


@settings(max_examples=200)
@given(st.lists(TEXTS, min_size=4, max_size=4))
def test_nothing_that_a_lab_writes_does_anything_in_the_issue(text: list[str]) -> None:
    body = issue_body(found(text[0]), (some(f"{text[1]}x", suite=f"{text[2]}x"), some(f"{text[3]}x", mass=True)))
    page = Page(rendered(body, raw_html=True))
    assert page.tags <= OURS
    assert page.links <= {RANGE}
    assert not re.findall(ACTIVE, page.speech)
