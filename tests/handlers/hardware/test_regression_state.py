"""Which regressions of a series of nightly runs are reported: stories of tests, one letter for each nightly run."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace

import pytest

from bot.results.model import Seen, Status
from bot.results.report.compared import compared_with, with_confirmed
from bot.results.report.findings import Baseline, ComparedSuite, Findings
from bot.results.state import SuiteState, TargetState
from handlers.hardware.regression_state import (
    MOST_TESTS,
    KnownRegressions,
    Regression,
    RegressionChanges,
    judge,
)
from tests.results.reported import ABOUT, a_suite

ENDED = {"P": Status.PASSED, "F": Status.FAILED, "E": Status.ERRORED, "S": Status.SKIPPED, "X": Status.XFAILED}
ABSENT, NOT_SENT, INFRA = "-", " ", "!"
REPOSITORY = "https://github.example/octocat/compiler"
Story = Mapping[str, str]
"""For each test, how it ended in each nightly run."""


def sha(nightly_sha: int) -> str:
    return f"{nightly_sha:040x}"


def commit(nightly_sha: int) -> Baseline:
    return Baseline(sha(nightly_sha), f"{REPOSITORY}/commit/{sha(nightly_sha)}")


def seen_in(story: Story, nightly_sha: int) -> dict[str, Seen]:
    letters = {test: nightly_runs[nightly_sha - 1] for test, nightly_runs in story.items()}
    return {test: Seen(ENDED[letter]) for test, letter in letters.items() if letter in ENDED}


def findings_of(story: Story, nightly_sha: int, **values: bool) -> Findings:
    """Return the findings of a nightly run, counted from 1: compared with the runs before it that have results."""
    marks = {nightly_runs[nightly_sha - 1] for nightly_runs in story.values()}
    before = [one for one in range(nightly_sha - 1, 0, -1) if seen_in(story, one)]
    suites, compared = dict[str, SuiteState](), dict[str, ComparedSuite]()
    if marks != {NOT_SENT}:
        suite = a_suite(seen=seen_in(story, nightly_sha), missing_shards=() if values.get("complete", True) else (2,))
        suites["operators"] = suite
        if marks == {INFRA}:
            reported = ComparedSuite(replace(compared_with(suite, None, None).comparison, infra="broken"))
        elif not before:
            reported = compared_with(suite, None, None)
        else:
            reported = compared_with(suite, commit(before[0]), seen_in(story, before[0]))
            if len(before) > 1:
                reported = replace(reported, good=commit(before[1]))
                reported = with_confirmed(suite, reported, seen_in(story, before[0]), seen_in(story, before[1]))
        compared["operators"] = reported
    missing = () if suites or not seen_in(story, nightly_sha - 1) else ("operators",)
    state = TargetState(ABOUT, sha(nightly_sha), suites, mainline=True, missing_suites=missing)
    return Findings(state, compared)


def shown(changes: RegressionChanges) -> str:
    """Return the changes in short: `+` began, `✓` recovered, `?` removed; many at once as a number."""
    marks = (("+", changes.began), ("✓", changes.well), ("?", changes.removed))
    reported = [
        f"{mark}{len(one.tests)} at once" if one.mass else " ".join(f"{mark}{test}" for test in one.tests)
        for mark, regressions in marks
        for one in regressions
    ]
    return " ".join(reported)


def messages_of(story: Story, nightly_runs: Collection[int] = ()) -> list[str]:
    """Return the news of each night, all of them judged in order, or those named in theirs."""
    known, reported = KnownRegressions(), []
    for nightly_sha in nightly_runs or range(1, len(next(iter(story.values()))) + 1):
        known, changes = judge(findings_of(story, nightly_sha), known, float(nightly_sha))
        reported.append(shown(changes))
    return reported


@pytest.mark.parametrize(
    ("story", "reported"),
    [
        pytest.param({"a": "PPPP", "b": "FFFF"}, ["", "", "", ""], id="nothing changes"),
        pytest.param({"a": "PFPP", "b": "PPFP"}, ["", "", "", ""], id="a single failure is no news"),
        pytest.param({"a": "PFFFF", "b": "PPPPP"}, ["", "", "+a", "", ""], id="reported once, when confirmed"),
        pytest.param({"a": "PFFPP", "b": "PEFFP"}, ["", "", "+a +b", "✓a", "✓b"], id="each ends when it ends"),
        pytest.param({"a": "PFFXP", "b": "PPPPP"}, ["", "", "+a", "✓a", ""], id="expected to fail is well"),
        pytest.param({"a": "PFFPFF", "b": "PPPPPP"}, ["", "", "+a", "✓a", "", "+a"], id="again is news again"),
        pytest.param({"a": "PFFSSP", "b": "PPPPPP"}, ["", "", "+a", "", "", "✓a"], id="skipped is not well"),
        pytest.param({"a": "PFFSFF", "b": "PPPPPP"}, ["", "", "+a", "", "", ""], id="skipped is no end"),
        pytest.param({"a": "PFF--", "b": "PPPPP"}, ["", "", "+a", "?a", ""], id="a removed test is reported"),
        pytest.param({"a": "PFF!!P", "b": "PPP!!P"}, ["", "", "+a", "", "", "✓a"], id="infra says nothing"),
        pytest.param({"a": "PF!F", "b": "PP!P"}, ["", "", "", "+a"], id="infra confirms nothing, and parts nothing"),
        pytest.param({"a": "PFF F", "b": "PPP P"}, ["", "", "+a", "", ""], id="a suite that is missing says nothing"),
        pytest.param({"a": "PFF  ", "b": "PPP  "}, ["", "", "+a", "", "?a"], id="a suite that was given up is removed"),
        pytest.param({"a": "FFFP", "b": "PPPP"}, ["", "", "", ""], id="what always failed is no news, nor its end"),
    ],
)
def test_each_regression_is_reported_once_and_so_is_its_end(story: Story, reported: list[str]) -> None:
    assert messages_of(story) == reported


def masses(good: int = 70, **stories: str) -> dict[str, str]:
    """Return a story of 30 tests each, beside some that are always well."""
    nightly_runs = len(next(iter(stories.values())))
    many = {f"{name}::{n}": story for name, story in stories.items() for n in range(30)}
    return many | {f"ok::{n}": "P" * nightly_runs for n in range(good)}


def test_a_mass_of_failures_is_reported_at_once_and_as_one() -> None:
    assert messages_of(masses(a="PFFP")) == ["", "+30 at once", "", "✓30 at once"]


def test_beside_a_mass_of_one_suite_nothing_of_it_is_called_confirmed() -> None:
    story = masses(a="PPFFF") | {"single": "PFFFF"}
    assert messages_of(story) == ["", "", "+30 at once", "", ""]


def test_what_is_left_of_a_mass_are_tests_like_others() -> None:
    story = masses(a="PFPP") | {f"left::{n}": "PFFP" for n in range(2)}
    assert messages_of(story) == ["", "+32 at once", "✓30 at once", "✓left::0 ✓left::1"]


def test_a_test_that_was_renamed_is_still_the_same() -> None:
    bad, good = [f"tests/{n}.py::test" for n in "ab"], [f"tests/{n}.py::test" for n in range(20)]
    story = dict.fromkeys(bad, "PFF--") | dict.fromkeys(good, "PPP--")
    story |= {test.replace("tests/", "tests/moved/"): "---FP" if test in bad else "---PP" for test in story}
    moved = "✓tests/moved/a.py::test ✓tests/moved/b.py::test"
    assert messages_of(story) == ["", "", "+tests/a.py::test +tests/b.py::test", "", moved]


def test_a_file_that_is_collected_again_has_recovered() -> None:
    story = {"a.py": "-EE-", "a.py::test": "P--P", "b.py::test": "PPPP"}
    known = KnownRegressions(
        sha(3), 3.0, reported=True, failing=(Regression("operators", sha(2), sha(1), "", ("a.py",)),)
    )
    _, changes = judge(findings_of(story, 4), known, 4.0)
    assert shown(changes) == "✓a.py"


def test_a_test_that_may_still_arrive_is_not_removed() -> None:
    known = KnownRegressions(sha(1), 1.0, failing=(Regression("operators", sha(1), sha(0), "", ("a",)),))
    story = {"a": "F-", "b": "PP"}
    after, changes = judge(findings_of(story, 2, complete=False), known, 2.0)
    assert (shown(changes), after.failing) == ("", known.failing)
    assert shown(judge(findings_of(story, 2), known, 2.0)[1]) == "?a"


def test_the_first_bad_commit_and_the_compared_range_are_stored() -> None:
    _, changes = judge(findings_of({"a": "PFF", "b": "PPP"}, 3), KnownRegressions(), 3.0)
    url = f"{REPOSITORY}/compare/{sha(1)}...{sha(2)}"
    assert changes.began == (Regression("operators", sha(2), sha(1), url, ("a",)),)
    _, changes = judge(findings_of(masses(a="PF"), 2), KnownRegressions(), 2.0)
    (mass,) = changes.began
    assert (mass.since, mass.good, mass.url) == (sha(2), sha(1), f"{REPOSITORY}/compare/{sha(1)}...{sha(2)}")


def test_a_nightly_run_that_is_judged_again_reports_nothing_twice() -> None:
    assert messages_of({"a": "PFFP", "b": "PPPP"}, [1, 2, 3, 3, 3, 4, 4]) == ["", "", "+a", "", "", "✓a", ""]


def test_late_results_wait_for_the_next_nightly_run_only_after_a_message() -> None:
    known, _ = judge(findings_of({"a": "PFF", "b": "PP-"}, 3), KnownRegressions(), 3.0)
    later = {"a": "PFFF", "b": "PFFF", "c": "PFFP"}
    known, changes = judge(findings_of(later, 3), known, 3.0)
    assert shown(changes) == ""
    assert judge(findings_of(later, 3), known, 3.0) == (known, RegressionChanges())
    after, changes = judge(findings_of(later, 4), known, 4.0)
    assert shown(changes) == "+b"
    assert [one.since for one in changes.began] == [sha(2)]
    assert [one.tests for one in after.failing] == [("a",), ("b",)]

    known, changes = judge(findings_of({"a": "PPP", "b": "PP-"}, 3), KnownRegressions(), 3.0)
    assert shown(judge(findings_of(later, 3), known, 3.0)[1]) == "+a +b +c"


def test_late_results_wait_until_a_nightly_run_has_results_for_them() -> None:
    late = (Regression("operators", sha(2), sha(1), "", ("a",)),)
    known, changes = judge(findings_of({"a": "PFF!", "b": "PPP!"}, 4), KnownRegressions(sha(3), 3.0, late=late), 4.0)
    assert (shown(changes), known.late) == ("", late)
    known, changes = judge(findings_of({"a": "PFF!F", "b": "PPP!P"}, 5), known, 5.0)
    assert (shown(changes), known.late) == ("+a", ())


def test_a_limited_number_of_tests_is_stored_and_the_largest_regression_is_cut() -> None:
    few = {"single::a": "PFFF"}
    story = few | {f"many::{n}": "PPPF" for n in range(MOST_TESTS + 5)} | {f"ok::{n}": "PPPP" for n in range(900)}
    known, _ = judge(findings_of(story, 3), KnownRegressions(), 3.0)
    known, changes = judge(findings_of(story, 4), known, 4.0)
    assert shown(changes) == f"+{MOST_TESTS + 5} at once"
    assert [len(one.tests) for one in known.failing] == [1, MOST_TESTS - 1]
