"""While the results of a target are unreliable, their changes are no news; afterwards nothing is lost."""

from __future__ import annotations

from dataclasses import replace

import pytest

from bot.effects.issues import EnsureIssue
from bot.news.effects import PostMessage
from bot.plan.handler import Plan
from bot.results.compare.health import RunFlips, SuiteHealth
from bot.results.store.failures.failures import Failure
from handlers.regressions.audiences import Audience
from handlers.regressions.decide import EvaluatedRun, EvaluatedTarget, RegressionChanges, without_unreliable
from handlers.regressions.effects import StoreReports
from handlers.regressions.records import REGRESSIONS
from handlers.regressions.target_news import decide_regressions
from handlers.regressions.target_text import issue_body, regression_news
from tests.results.reported import ABOUT, AT, SHA

HEALTH = SuiteHealth("c" * 40, newest=RunFlips(SHA, 750, 7_000))
OPERATORS, RELAX = (Failure(suite, "a.py::test", "b" * 40, "a" * 40) for suite in ("operators", "relax"))
TARGET = EvaluatedTarget(ABOUT, SHA, AT)
UNRELIABLE = replace(TARGET, unreliable={"operators": HEALTH})
AUDIENCES = [Audience(("slack", "issue"))]
KEY = REGRESSIONS.of(5, "example-lab", "hexagon-v73")
WHERE = f"on example-lab/hexagon-v73 at nightly commit {SHA[:7]}"


def plan_for(
    changes: RegressionChanges,
    failing: tuple[Failure, ...] = (),
    target: EvaluatedTarget = UNRELIABLE,
    reported: tuple[str, ...] = (),
) -> Plan:
    return decide_regressions(target, changes, failing, EvaluatedRun(unreliable=reported), AUDIENCES, KEY)


def test_changes_in_unreliable_results_are_held_and_those_of_other_suites_are_not() -> None:
    changes = RegressionChanges(began=(OPERATORS, RELAX))
    reported, failing, held = without_unreliable(changes, (OPERATORS, RELAX), ["operators"], ["operators"])
    assert (reported, failing, held) == (RegressionChanges(began=(RELAX,)), (RELAX,), 1)


def test_steady_failures_in_unreliable_results_are_reported_once_a_week() -> None:
    steady = replace(OPERATORS, test="a.py::steady", steady=True)
    changes, failing = RegressionChanges(began=(OPERATORS, steady)), (OPERATORS, steady)
    held = without_unreliable(changes, failing, ["operators"], ["operators"])
    assert held == (RegressionChanges(), (), 2)
    reported, remaining, count = without_unreliable(changes, failing, ["operators"], ["operators"], with_steady=True)
    assert (reported, remaining, count) == (RegressionChanges(began=(steady,)), (steady,), 1)
    plan = plan_for(reported, remaining, replace(UNRELIABLE, held=1), ("operators",))
    message = next(effect for effect in plan.effects if isinstance(effect, PostMessage))
    assert message.news.notes[1] == (
        "The results of operators are unreliable, but these tests failed in 5 nightly runs in a row, after 5 in which "
        "they passed. There is at most one such message a week."
    )
    reports = next(effect for effect in plan.effects if isinstance(effect, StoreReports))
    stored = reports.then[0].stored
    assert stored is not None
    assert REGRESSIONS.load(KEY.name, stored.value, stored.version).steady_at == AT


def test_failures_in_reliable_results_do_not_delay_those_in_unreliable_ones() -> None:
    plan = plan_for(RegressionChanges(began=(RELAX,)), (RELAX,))
    reports = next(effect for effect in plan.effects if isinstance(effect, StoreReports))
    stored = reports.then[0].stored
    assert stored is not None
    assert REGRESSIONS.load(KEY.name, stored.value, stored.version).steady_at == 0.0


@pytest.mark.parametrize("side", ["recovered", "removed"])
def test_known_failures_stay_known_until_results_are_reliable(side: str) -> None:
    changes = {
        "recovered": RegressionChanges(recovered=(OPERATORS,)),
        "removed": RegressionChanges(removed=(OPERATORS,)),
    }
    reported, failing, held = without_unreliable(changes[side], (), ["operators"], [])
    assert (reported, failing, held) == (RegressionChanges(unreliable=("operators",)), (OPERATORS,), 1)


@pytest.mark.parametrize(
    ("unreliable", "reported", "began", "ended"),
    [(["a"], [], ("a",), ()), (["a"], ["a"], (), ()), ([], ["a"], (), ("a",)), (["a"], ["b"], ("a",), ("b",))],
)
def test_becoming_unreliable_and_becoming_reliable_are_reported_once_each(
    unreliable: list[str], reported: list[str], began: tuple[str, ...], ended: tuple[str, ...]
) -> None:
    changes, _, _ = without_unreliable(RegressionChanges(), (), unreliable, reported)
    assert (changes.unreliable, changes.reliable) == (began, ended)


def test_the_message_says_since_when_why_and_what_follows() -> None:
    news = regression_news(replace(UNRELIABLE, held=3), RegressionChanges(unreliable=("operators",)), ())
    assert news.title == f"results became unreliable {WHERE}"
    (item,) = news.items
    assert item.name == "operators"
    assert item.text == (
        "unreliable since ccccccc; 750 of 7,000 tests flipped between passed and failed, then back, in 1111111"
    )
    assert news.notes == (
        "A run is unstable if at least 10 tests and 3% of all tests flip back in it. Results are unreliable while 3 of "
        "5 nightly runs are unstable. Single failures are not reported until 5 nightly runs in a row are stable; "
        "failures that last longer are reported then. Tests that fail in 5 runs in a row, after 5 in which they "
        "passed, are reported once a week.",
        "3 changes in unreliable results are not reported now.",
    )
    assert not news.good


def test_the_end_is_reported_with_the_lasting_failures() -> None:
    changes = RegressionChanges(began=(OPERATORS,), reliable=("operators",))
    plan = plan_for(changes, (OPERATORS,), TARGET, ("operators",))
    assert plan.why == f"results are reliable again, 1 test began to fail {WHERE}"
    message = next(effect for effect in plan.effects if isinstance(effect, PostMessage))
    assert [(item.name, item.text) for item in message.news.items] == [
        ("operators", "reliable again; failures are reported as usual"),
        ("a.py::test", "operators, since bbbbbbb; it passed at aaaaaaa"),
    ]


def test_the_report_is_stored_and_the_issue_stays_open_while_results_are_unreliable() -> None:
    plan = plan_for(RegressionChanges(unreliable=("operators",)))
    reports, message, issue = plan.effects
    assert isinstance(reports, StoreReports)
    (record,) = reports.then
    assert isinstance(message, PostMessage)
    assert isinstance(issue, EnsureIssue)
    assert record.stored is not None
    evaluated = REGRESSIONS.load(record.key, record.stored.value, record.stored.version)
    assert (evaluated.unreliable, evaluated.news) == (("operators",), message.key)
    assert issue.begins
    assert "- `operators`: unreliable since ccccccc; 750 of 7,000 tests flipped" in issue.body
    ended = plan_for(RegressionChanges(reliable=("operators",)), target=TARGET, reported=("operators",)).effects[-1]
    assert isinstance(ended, EnsureIssue)
    assert (ended.body, ended.news_key == issue.news_key) == ("", False)


def test_the_issue_lists_failures_before_unreliable_results() -> None:
    body = issue_body(UNRELIABLE, [RELAX])
    assert body.index("`relax`: 1 test") < body.index("`operators`: unreliable")


def test_held_changes_alone_are_no_news_and_the_plan_says_why() -> None:
    plan = plan_for(RegressionChanges(), target=replace(UNRELIABLE, held=2), reported=("operators",))
    assert not any(isinstance(effect, StoreReports | PostMessage) for effect in plan.effects)
    assert plan.why == "2 changes in unreliable results, which are not reported; nothing else is new"
