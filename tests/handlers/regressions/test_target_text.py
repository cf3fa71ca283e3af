"""The texts about regressions: the message of a nightly run, and the issue while anything fails."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bot.effects.issues import BODY_LIMIT
from bot.news.message import NewsItem
from bot.plan.page_links import LONGEST_HISTORY_LINK
from bot.results.compare.context import FailureContext
from bot.results.compare.owners import owners_of
from bot.results.settings.owners import OwnedTests
from bot.results.store.failures.failures import Failure
from handlers.regressions.decide import EvaluatedTarget, RegressionChanges
from handlers.regressions.target_text import (
    GROUPED_TESTS,
    MOST_LISTED,
    DetailsOfTests,
    issue_body,
    issue_title,
    regression_news,
)
from tests.gfm import Page, rendered
from tests.results.reported import ABOUT, AT, SHA
from tests.results.test_report_safe import ACTIVE, OURS, TEXTS

GOOD, SINCE = "a" * 40, "b" * 40
REPOSITORY = "https://github.example/octocat/compiler"
RANGE = f"{REPOSITORY}/compare/{GOOD}...{SINCE}"
WHERE = f"on example-lab/hexagon-v73 at nightly commit {SHA[:7]}"


def failures_of(*tests: str, suite: str = "operators", good: str = GOOD) -> tuple[Failure, ...]:
    return tuple(Failure(suite, test, SINCE, good) for test in tests)


def numbered_failures(count: int, *, suite: str = "operators", good: str = GOOD) -> tuple[Failure, ...]:
    return failures_of(*(f"tests/test_many.py::test_{n:04}" for n in range(count)), suite=suite, good=good)


def target_with(*contacts: str, **values: Any) -> EvaluatedTarget:
    return EvaluatedTarget(ABOUT, SHA, AT, REPOSITORY, contacts, **values)


@pytest.mark.parametrize(("count", "items", "listed"), [(GROUPED_TESTS - 1, 9, 9), (GROUPED_TESTS, 1, 3)])
def test_ten_tests_that_began_or_ended_together_share_a_line(count: int, items: int, listed: int) -> None:
    tests = numbered_failures(count)
    for changes in (
        RegressionChanges(began=tests),
        RegressionChanges(recovered=tests),
        RegressionChanges(removed=tests),
    ):
        assert len(regression_news(target_with(), changes, tests).items) == items
    assert issue_body(target_with(), tests).count("tests/test_many.py") == listed


def test_a_message_says_what_where_and_since_when_and_who_to_ask() -> None:
    began = (*failures_of("tests/a.py::test_x", "tests/a.py::test_y"), *failures_of("r.py::test_z", suite="relax"))
    news = regression_news(target_with("@example-lab-ci"), RegressionChanges(began=began), began)
    assert news.title == f"3 tests began to fail {WHERE}"
    assert news.url == f"{REPOSITORY}/commit/{SHA}/checks"
    assert news.items == (
        NewsItem("tests/a.py::test_x", "operators, since bbbbbbb; it passed at aaaaaaa", RANGE),
        NewsItem("tests/a.py::test_y", "operators, since bbbbbbb; it passed at aaaaaaa", RANGE),
        NewsItem("r.py::test_z", "relax, since bbbbbbb; it passed at aaaaaaa", RANGE),
    )
    assert (news.more, news.good) == (0, False)
    assert news.notes == (
        "New failures are confirmed: they failed in two runs in a row.",
        "Questions about this lab: @example-lab-ci (not notified).",
    )


def test_ten_tests_that_began_to_fail_together_are_one_line() -> None:
    began = (*numbered_failures(120), *failures_of("r.py::test_z", suite="relax"))
    news = regression_news(target_with(), RegressionChanges(began=began), began)
    assert news.title == f"121 tests began to fail {WHERE}"
    assert news.items == (
        NewsItem("operators", "120 tests failing since bbbbbbb; last pass at aaaaaaa", RANGE),
        NewsItem("relax", "1 test failing since bbbbbbb; last pass at aaaaaaa", RANGE),
    )
    assert (
        len(regression_news(target_with(), RegressionChanges(began=numbered_failures(9)), numbered_failures(9)).items)
        == 9
    )


def test_a_message_says_how_often_a_test_failed_before_and_where_else_it_fails() -> None:
    began = failures_of("a.py::x", "a.py::y", "a.py::z")
    contexts = {
        ("operators", "a.py::x"): FailureContext(failed=3, runs=40, also_on=("example-lab/adreno",)),
        ("operators", "a.py::y"): FailureContext(runs=40, also_on=tuple(f"example-lab/b{n}" for n in range(5))),
    }
    beginning = "operators, since bbbbbbb; it passed at aaaaaaa"
    assert [
        item.text for item in regression_news(target_with(), RegressionChanges(began=began), began, contexts).items
    ] == [
        f"{beginning}; failed in 3 of 40 earlier runs; also fails on example-lab/adreno",
        f"{beginning}; also fails on example-lab/b0, example-lab/b1, example-lab/b2 and 2 more",
        beginning,
    ]


def test_a_group_of_tests_names_the_targets_on_which_all_of_them_fail() -> None:
    began = numbered_failures(12)
    contexts = {
        (failure.suite, failure.test): FailureContext(failed=1, runs=9, also_on=("lab/a", "lab/b")) for failure in began
    }
    contexts["operators", began[3].test] = FailureContext(also_on=("lab/b", "lab/c"))
    (line,) = regression_news(target_with(), RegressionChanges(began=began), began, contexts).items
    assert line.text == "12 tests failing since bbbbbbb; last pass at aaaaaaa; also failing on lab/b"
    contexts["operators", began[3].test] = FailureContext(also_on=("lab/c",))
    (line,) = regression_news(target_with(), RegressionChanges(began=began), began, contexts).items
    assert line.text == "12 tests failing since bbbbbbb; last pass at aaaaaaa"
    del contexts["operators", began[3].test]
    (line,) = regression_news(target_with(), RegressionChanges(began=began), began, contexts).items
    assert line.text == "12 tests failing since bbbbbbb; last pass at aaaaaaa"


def test_tests_that_never_passed_are_reported_as_such_and_last() -> None:
    began = (*failures_of("a.py::never", good=""), *failures_of("b.py::test"))
    news = regression_news(target_with(), RegressionChanges(began=began), began)
    assert news.title == f"1 test began to fail, 1 test has never passed {WHERE}"
    assert [item.text for item in news.items] == [
        "operators, since bbbbbbb; it passed at aaaaaaa",
        "operators, failing since bbbbbbb; it has never passed",
    ]
    assert news.items[1].url == ""
    (line,) = regression_news(
        target_with(), RegressionChanges(began=numbered_failures(40, good="")), numbered_failures(40)
    ).items
    assert line.text == "40 tests failing since bbbbbbb; never passed"


def test_a_failure_confirmed_by_a_late_run_is_reported_with_its_date() -> None:
    news = regression_news(
        target_with(late=("c" * 40, AT - 5 * 86_400)), RegressionChanges(began=failures_of("a")), failures_of("a")
    )
    assert news.notes[1] == (
        "The results of nightly commit ccccccc, committed on 2026-11-15, arrived after those of newer commits. The "
        "newest run still has these failures."
    )
    recovered = regression_news(target_with(late=("c" * 40, AT)), RegressionChanges(recovered=failures_of("a")), ())
    assert recovered.notes == ()


def test_a_recovery_is_reported_with_the_remaining_failures() -> None:
    changes = RegressionChanges(recovered=failures_of("a.py::a", "a.py::d"), removed=failures_of("a.py::c"))
    news = regression_news(target_with(), changes, failures_of("a.py::b"))
    assert news.title == f"2 tests recovered, 1 failing test was removed {WHERE}"
    assert news.items == (
        NewsItem("a.py::a", "operators, recovered"),
        NewsItem("a.py::d", "operators, recovered"),
        NewsItem("a.py::c", "operators, removed without a pass"),
    )
    assert (news.notes, news.good) == (("1 test fails as before; this was already reported.",), False)
    (line,) = regression_news(target_with(), RegressionChanges(recovered=numbered_failures(30)), ()).items
    assert line == NewsItem("operators", "30 tests recovered")


def test_the_last_recovery_is_good_news() -> None:
    news = regression_news(target_with(), RegressionChanges(recovered=failures_of("a.py::a")), ())
    assert (news.good, issue_body(target_with(), ())) == (True, "")


def test_more_than_ten_lines_are_counted() -> None:
    changes = RegressionChanges(
        began=numbered_failures(9), recovered=failures_of("b.py::b", "b.py::c"), removed=failures_of("b.py::d")
    )
    news = regression_news(target_with(), changes, numbered_failures(9))
    assert (len(news.items), news.more) == (10, 2)


def test_a_target_of_an_unknown_repository_has_no_page() -> None:
    target = replace(target_with(), page="")
    news = regression_news(target, RegressionChanges(began=failures_of("a.py::a")), failures_of("a.py::a"))
    assert (news.url, news.items[0].url) == ("", "")


def test_the_issue_lists_failures_with_their_start() -> None:
    failing = (
        *failures_of("a.py::test_x", "a.py::test_y"),
        *numbered_failures(120, suite="relax"),
        *failures_of("t.py::t", suite="tir", good=""),
    )
    assert issue_title(target_with()) == "Regressions on example-lab/hexagon-v73"
    assert issue_body(target_with("@example-lab-ci"), failing) == (
        "On target `hexagon-v73` of lab `example-lab`, these tests fail on the nightly branch and have not passed "
        "since the commit shown.\n\n"
        f"- `operators`: 2 tests, since `bbbbbbb` ([what changed]({RANGE}))\n"
        "  - `a.py::test_x`\n"
        "  - `a.py::test_y`\n"
        f"- `relax`: 120 tests, since `bbbbbbb` ([what changed]({RANGE}))\n"
        "  - `tests/test_many.py::test_0000`\n"
        "  - `tests/test_many.py::test_0001`\n"
        "  - `tests/test_many.py::test_0002`\n"
        "  - and 117 more\n"
        "- `tir`: 1 test, since `bbbbbbb`; never passed\n"
        "  - `t.py::t`\n\n"
        "I'll comment here when more tests fail or some recover, and close this issue when all have recovered.\n\n"
        "Questions about this lab: `@example-lab-ci` (not notified)."
    )


def test_the_issue_lists_a_limited_number_of_tests_and_counts_the_others() -> None:
    groups = [Failure(f"s{n:02}", f"a.py::test_{n}", SINCE, GOOD) for n in range(MOST_LISTED + 5)]
    body = issue_body(target_with(), groups)
    assert "\n- and 5 more\n" in body
    assert "s30" not in body


def test_the_issue_links_the_history_of_each_test() -> None:
    details = DetailsOfTests(lambda test, target: f"https://ci.example.org/{target}?id={test}")
    body = issue_body(target_with(), failures_of("a.py::test_x"), details)
    assert "  - `a.py::test_x` ([history](https://ci.example.org/example-lab/hexagon-v73?id=a.py::test_x))\n" in body


def test_the_issue_names_owners_without_mentioning_them() -> None:
    owners = owners_of(
        [
            OwnedTests(test="*", owners=("@hubot", "a", "b", "c")),
            OwnedTests(test="a.py::test_x", owners=("octo-org/team",)),
            OwnedTests(test="b/*", owners=()),
        ]
    )
    body = issue_body(
        target_with(), failures_of("a.py::test_x", "a.py::test_y", "b/c.py::t"), DetailsOfTests(owners=owners)
    )
    assert "  - `a.py::test_x`, owners: `octo-org/team`\n" in body
    assert "  - `a.py::test_y`, owners: `@hubot`, `a`, `b` and 1 more\n" in body
    assert "  - `b/c.py::t`\n" in body


@pytest.mark.parametrize("name", ["@|" * 500, "a" * 50 + "@" * 30 + "a" * 900])
def test_the_longest_issue_fits_githubs_limit(name: str) -> None:
    worst = [failure for n in range(MOST_LISTED) for failure in failures_of(f"{name}{n}", suite="s" * 100 + str(n))]
    owners = owners_of([OwnedTests(test="*", owners=("@" + "a" * 100,) * 10)])
    details = DetailsOfTests(lambda _, target: "x" * LONGEST_HISTORY_LINK, owners)
    body = issue_body(target_with(*(["@|" * 50] * 12)), worst, details)
    assert len(body) < BODY_LIMIT


@pytest.mark.no_cover
@settings(max_examples=200)
@given(st.lists(TEXTS, min_size=4, max_size=4))
def test_text_from_a_lab_has_no_effect_in_the_issue(text: list[str]) -> None:
    body = issue_body(
        target_with(text[0]), (*failures_of(f"{text[1]}x", suite=f"{text[2]}x"), *failures_of(f"{text[3]}x", good=""))
    )
    page = Page(rendered(body, raw_html=True))
    assert page.tags <= OURS
    assert page.links <= {RANGE}
    assert not re.findall(ACTIVE, page.speech)
