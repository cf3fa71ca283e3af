"""The first sentences of the pages of a lab, of a test and of a comparison, and their next steps, as a whole.

The pages have only the fields that these sentences read.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any, TypeVar

from pydantic import BaseModel

from bot.results.state import RunState
from bot.web.answers import AnswerPart
from handlers.dashboard.compare.answer import compare_answer, compare_steps
from handlers.dashboard.compare.numbers import ComparedNumber
from handlers.dashboard.compare.rows import ComparedSuiteCounts, ComparePage, ComparisonCommit
from handlers.dashboard.grid.answer import GridNews, SuiteNews
from handlers.dashboard.grid.page import ListedNightly
from handlers.dashboard.history.answer import with_first_lines
from handlers.dashboard.history.model import (
    HistoryFailing,
    HistoryFlakiness,
    HistoryOnTarget,
    HistoryPage,
    HistoryQuarantine,
)
from handlers.dashboard.labs.answer import lab_answer, lab_steps
from handlers.dashboard.labs.model import LabPage, LabRun, LabTarget, MissingNightlyRun, PausedState

MOMENT = datetime(2026, 11, 20, 5, 30, tzinfo=UTC)
NOW = MOMENT.timestamp() + 3 * 86400
GITHUB = "https://github.com/octocat/compiler"
REPOSITORY = "octocat/compiler"
PAGE = "/r/octocat/compiler"
Fields = TypeVar("Fields", bound=BaseModel)
BASE, HEAD = "a" * 40, "b" * 40


def with_fields(kind: type[Fields], **fields: Any) -> Fields:
    """Return an object with these fields alone."""
    return kind.model_construct(**fields)


def markdown(parts: Sequence[AnswerPart]) -> str:
    return "".join(f"[{part.text}]({part.href})" if part.href else part.text for part in parts)


def steps(listed: Sequence[Sequence[AnswerPart]]) -> list[str]:
    return [markdown(step) for step in listed]


RUN = LabRun(target="adreno", sha=HEAD, run_id="n1", received_at=MOMENT, state=RunState.STORED, reason="")


def lab_target(name: str = "adreno", **fields: Any) -> LabTarget:
    absent: dict[str, Any] = {"paused": None, "stale": False, "unusable_since": None, "newest": RUN}
    return with_fields(LabTarget, **{**absent, "target": name, "missing_commits": [], **fields})


def lab_page(*targets: LabTarget, contacts: Sequence[str] = ("@hubot",), unusable: Sequence[LabRun] = ()) -> LabPage:
    return with_fields(
        LabPage,
        lab="example-lab",
        contacts=list(contacts),
        github=GITHUB,
        targets=list(targets),
        unusable=list(unusable),
    )


def lab_words(*targets: LabTarget, contacts: Sequence[str] = ("@hubot",)) -> str:
    return markdown(lab_answer(lab_page(*targets, contacts=contacts), REPOSITORY, NOW))


def grid_link(name: str) -> str:
    return f"[{name}]({PAGE}?target=example-lab%2F{name})"


def test_which_targets_of_a_lab_are_late_unusable_or_paused() -> None:
    pause = PausedState(until=MOMENT, by="octocat", reason="")
    since = with_fields(ListedNightly, sha=HEAD, committed_at=MOMENT)
    late, never = lab_target("late", stale=True), lab_target("never", stale=True, newest=None)
    unusable, paused = lab_target("unusable", unusable_since=since), lab_target("paused", paused=pause, stale=True)
    assert lab_words(lab_target(), lab_target("mali")) == "2 targets reported within the last 36 hours."
    reported = f"[ has not reported for 3 days]({PAGE}/runs/example-lab/late/{HEAD}/n1)"
    no_results = f" has had no usable results since [2026-11-20 (bbbbbbb)]({PAGE}/commits/{HEAD})"
    assert lab_words(lab_target(), paused, unusable, late) == (
        f"{grid_link('late')}{reported}; {grid_link('unusable')}{no_results}; "
        f"{grid_link('paused')} is paused until 2026-11-20, by octocat; ask @hubot."
    )
    assert lab_words(never, contacts=()) == f"{grid_link('never')} has never reported."
    both = lab_target("late", stale=True, unusable_since=since)
    contacts = [f"@hubot{number}" for number in range(4)]
    assert lab_words(both, never, unusable, paused, contacts=contacts) == (
        f"{grid_link('late')}{reported}; {grid_link('never')} has never reported; "
        f"{grid_link('unusable')}{no_results} and 1 more target; ask @hubot0, @hubot1, @hubot2."
    )


def test_what_a_lab_and_its_maintainers_can_do() -> None:
    missing = [MissingNightlyRun(sha=sha, at=MOMENT) for sha in (HEAD, BASE)]
    late = lab_target(stale=True, missing_commits=missing)
    send = f"Lab: [send the results of adreno for bbbbbbb]({GITHUB}/commit/{HEAD})"
    assert steps(lab_steps(lab_page(lab_target(missing_commits=missing), late, unusable=[RUN], contacts=()))) == [
        "Lab: [read why uploads have no result](#uploads)",
        send,
        "Maintainer: add contacts to the lab in app.yaml, so that people know whom to ask",
    ]
    assert steps(lab_steps(lab_page(lab_target(missing_commits=missing), lab_target(stale=True)))) == []


def history(target: str, since: str = "", **fields: Any) -> HistoryOnTarget:
    failing = with_fields(HistoryFailing, since=since, last_passed_at=BASE) if since else None
    absent: dict[str, Any] = {
        "flakiness": None,
        "quarantine": None,
        "issue_url": "",
        "reproduce": "",
        "is_removed": False,
        "configured": True,
    }
    return with_fields(
        HistoryOnTarget, **{**absent, "lab": "example-lab", "target": target, "failing": failing, **fields}
    )


def history_page(*targets: HistoryOnTarget, renamed_to: str = "") -> HistoryPage:
    page = with_fields(HistoryPage, id="conv", targets=list(targets), renamed_to=renamed_to)
    return with_first_lines(page, REPOSITORY, GITHUB)


def history_words(*targets: HistoryOnTarget, renamed_to: str = "") -> str:
    return markdown(history_page(*targets, renamed_to=renamed_to).answer)


def history_link(target: str) -> str:
    return f"[example-lab/{target}]({PAGE}/tests?id=conv&target=example-lab%2F{target})"


FLAKINESS = HistoryFlakiness(runs=20, failed=3, words="", proofs=[])


def test_where_a_test_fails_and_where_it_is_flaky() -> None:
    assert history_words() == ""
    assert history_words(history("adreno")) == f"Does not fail on {history_link('adreno')}."
    since = f"[bbbbbbb]({PAGE}/commits/{HEAD})"
    flaky, both = history("mali", flakiness=FLAKINESS), history("adreno", HEAD, flakiness=FLAKINESS)
    assert history_words(flaky, both) == (
        f"Fails on 1 of 2 targets: {history_link('adreno')} since {since}; flaky on {history_link('mali')}."
    )
    assert history_words(history("adreno", HEAD), history("mali", BASE)) == (
        f"Fails on 2 of 2 targets: {history_link('adreno')}, {history_link('mali')}."
    )


def test_a_late_target_neither_passes_nor_fails() -> None:
    late, late_failing = history("rpi", stale=True), history("vulkan", HEAD, stale=True)
    unknown = f"{history_link('rpi')}: no report for over 36 hours"
    assert history_words(history("adreno"), history("mali"), late) == (
        f"Fails on none of 2 targets; unknown on {unknown}."
    )
    assert history_words(history("adreno"), late) == f"Does not fail on {history_link('adreno')}; unknown on {unknown}."
    assert history_words(late) == f"Unknown on {unknown}."
    since = f"[bbbbbbb]({PAGE}/commits/{HEAD})"
    assert history_words(history("adreno", HEAD), late_failing) == (
        f"Fails on {history_link('adreno')} since {since}; "
        f"unknown on {history_link('vulkan')}: no report for over 36 hours; "
        f"failed when it last ran on {history_link('vulkan')}."
    )


def test_a_target_that_left_app_yaml_is_neither_late_nor_failing() -> None:
    fields = {"stale": True, "issue_url": f"{GITHUB}/issues/new", "reproduce": "pytest conv", "flakiness": FLAKINESS}
    gone = history("rpi", HEAD, configured=False, **fields)
    left = f"o longer in app.yaml: {history_link('rpi')}."
    assert history_words(history("adreno"), gone) == f"Does not fail on {history_link('adreno')}; n{left}"
    assert history_words(gone) == f"N{left}"
    assert history_words(gone.model_copy(update={"is_removed": True})) == f"N{left}"
    removed = history("adreno", is_removed=True)
    assert history_words(removed, gone) == f"The newest nightly runs do not have this test; n{left}"
    assert history_page(gone).next_steps == []


QUARANTINE = HistoryQuarantine(owner="octocat", reason="known", issue=f"{GITHUB}/issues/1", until="2026-12-12")


def test_where_a_test_is_no_longer_run() -> None:
    removed = history("adreno", HEAD, issue_url=f"{GITHUB}/issues/new", reproduce="pytest conv", is_removed=True)
    assert history_words(removed, history("mali", is_removed=True)) == "The newest nightly runs do not have this test."
    assert history_words(removed, renamed_to="pool") == (
        f"The newest nightly runs do not have this test; renamed to [pool]({PAGE}/tests?id=pool)."
    )
    assert history_page(removed).next_steps == []
    assert history_words(removed, history("mali"), history("rpi")) == (
        f"Fails on none of 2 targets; no longer run on {history_link('adreno')}."
    )
    in_another_suite = history("adreno").model_copy(update={"suite": "runtime"})
    assert history_words(removed, in_another_suite) == f"Does not fail on {history_link('adreno')}."


def test_until_when_a_test_is_quarantined() -> None:
    failing = history("adreno", HEAD, issue_url=f"{GITHUB}/issues/new", quarantine=QUARANTINE)
    fails = f"Fails on 1 of 2 targets: {history_link('adreno')} since [bbbbbbb]({PAGE}/commits/{HEAD})"
    ends = f"[quarantined until 2026-12-12, owner: octocat]({GITHUB}/issues/1)"
    assert history_words(failing, history("mali")) == f"{fails}; {ends}, on {history_link('adreno')}."
    later = QUARANTINE.model_copy(update={"until": "2026-12-13"})
    assert history_words(failing, history("mali", quarantine=QUARANTINE)) == f"{fails}; {ends}."
    assert history_words(failing, history("mali", quarantine=later)) == f"{fails}; {ends}, on {history_link('adreno')}."
    assert steps(history_page(failing).next_steps)[1:] == [
        f"Maintainer: [read the issue of its quarantine]({GITHUB}/issues/1)"
    ]
    reported = history("mali", HEAD, issue_url=f"{GITHUB}/issues/new")
    assert steps(history_page(failing, reported).next_steps)[1:] == [
        f"Maintainer: [open an issue with what is known]({GITHUB}/issues/new)"
    ]


def test_what_can_be_done_about_a_failing_test() -> None:
    failing = history("adreno", HEAD, issue_url=f"{GITHUB}/issues/new", reproduce="pytest conv")
    read = f"Maintainer: [read the commits with which it began to fail]({GITHUB}/compare/{BASE}...{HEAD})"
    issue = f"Maintainer: [open an issue with what is known]({GITHUB}/issues/new)"
    assert steps(history_page(history("mali", reproduce="x"), failing).next_steps) == [
        read,
        issue,
        "Contributor: to reproduce it, run pytest conv",
    ]
    never_passed = with_fields(HistoryFailing, since=HEAD, last_passed_at="")
    assert steps(history_page(history("adreno", failing=never_passed)).next_steps) == []
    flaky = history("mali", flakiness=FLAKINESS, issue_url=f"{GITHUB}/issues/new")
    assert steps(history_page(flaky).next_steps) == [issue]


def comparison(**fields: Any) -> ComparePage:
    base, head = (with_fields(ComparisonCommit, sha=sha) for sha in (BASE, HEAD))
    known: dict[str, Any] = {"target": "example-lab/adreno", "base": base, "head": head, "counts": {}, "suites": []}
    return with_fields(ComparePage, **{**known, "numbers": [], **fields})


def test_what_changed_between_two_commits() -> None:
    def words(**fields: Any) -> str:
        return markdown(compare_answer(comparison(**fields), REPOSITORY))

    def link(text: str, kind: str) -> str:
        address = f"{PAGE}/compare?target=example-lab%2Fadreno&base={BASE}&head={HEAD}&status={kind}"
        return f"[{text}]({address})"

    ends = " on example-lab/adreno, from aaaaaaa to bbbbbbb"
    for absent in ("target", "base", "head"):
        assert words(**{absent: None}) == ""
    numbers = [with_fields(ComparedNumber, outside=outside) for outside in (True, False, None)]
    assert words(counts={"still-failing": 1200, "fixed": 1, "flaky": 0}, numbers=numbers) == (
        f"{link('1 fixed test', 'fixed')}, {link('1,200 still failing', 'still-failing')}{ends}; "
        "noise does not explain how 1 measurement changed."
    )
    suites = [with_fields(ComparedSuiteCounts, note=note) for note in ("no results", None)]
    assert words(suites=suites) == f"No test changed, and none fails,{ends}."
    assert words(suites=suites[:1]) == f"No suite could be compared{ends}."


def test_what_can_be_done_about_new_failures() -> None:
    new = {"new-failure": 1}
    assert steps(compare_steps(comparison(counts=new), GITHUB)) == [
        f"Maintainer: [read the commits between the two]({GITHUB}/compare/{BASE}...{HEAD})"
    ]
    for page in (comparison(), comparison(counts=new, base=None), comparison(counts=new, head=None)):
        assert compare_steps(page, GITHUB) == []


def suite_news(target: str = "example-lab/adreno", suite: str = "operators", **fields: Any) -> SuiteNews:
    known: dict[str, Any] = {"sha": HEAD, "base": BASE, "has_baseline": True, "new": 0, "failing": 0}
    return SuiteNews(target, suite, **{**known, **fields})


def grid_news(*suites: SuiteNews, **fields: Any) -> GridNews:
    known: dict[str, Any] = {
        **{"filters": {"since": "2026-11-01"}, "by_suite": False, "row_count": 4, "late_targets": {}},
        **{"unusable_targets": [], "last_break": None, "commit_count": 14, "commits_between": {}},
    }
    return GridNews(repository=REPOSITORY, suites=suites, **{**known, **fields})


def grid_words(*suites: SuiteNews, **fields: Any) -> str:
    return markdown(grid_news(*suites, **fields).answer())


def status_link(text: str, status: str) -> str:
    return f"[{text}]({PAGE}?since=2026-11-01&status={status})"


COMPARED_ON_GRID = f"{PAGE}/compare?target=example-lab%2Fadreno&base={BASE}&head={HEAD}"


def test_what_is_new_on_a_grid_and_since_when() -> None:
    new, one = suite_news(new=1200, failing=1201), suite_news("example-lab/mali", new=1, failing=1)
    since = f" since [aaaaaaa]({PAGE}/commits/{BASE})"
    assert grid_words() == ""
    assert grid_words(new, one) == f"{status_link('1,201 new failures on 2 of 4 targets', 'new-failure')}{since}."
    assert grid_words(suite_news(), one, by_suite=True, row_count=1, commits_between={(BASE, HEAD): 1}) == (
        f"{status_link('1 new failure on 1 of 1 suite', 'new-failure')}{since} "
        f"([1 commit]({COMPARED_ON_GRID.replace('adreno', 'mali')}))."
    )
    for elsewhere in (suite_news(new=1, base=HEAD), suite_news(new=1, sha=BASE), suite_news(new=1, base="")):
        assert grid_words(new, elsewhere) == f"{status_link('1,201 new failures on 1 of 4 targets', 'new-failure')}."
    assert grid_words(suite_news(new=1, base="")) == f"{status_link('1 new failure on 1 of 4 targets', 'new-failure')}."


def test_what_still_fails_on_a_grid_and_what_is_compared_with_nothing() -> None:
    still, uncompared = suite_news(failing=1), suite_news(suite="codegen", failing=2, has_baseline=False)
    nothing_compared = status_link("2 failures on 1 of 4 targets, with nothing to compare with", "failing")
    day = f"Nothing new since [2026-11-20 (bbbbbbb)]({PAGE}/commits/{HEAD})"
    assert grid_words(suite_news()) == "No new failure in 14 nightly commits: no test fails."
    late = {"example-lab/mali": 3 * 86_400.0}
    late_words = f"[example-lab/mali has not reported for 3 days]({PAGE}/labs/example-lab)"
    assert grid_words(suite_news(), suite_news("example-lab/mali"), late_targets=late) == (
        f"No new failure in 14 nightly commits: no test fails on 1 of 4 targets; {late_words}."
    )
    assert grid_words(suite_news("example-lab/mali"), late_targets=late) == (
        f"No new failure in 14 nightly commits; {late_words}."
    )
    assert grid_words(suite_news(), commit_count=1, last_break=(HEAD, MOMENT.timestamp())) == f"{day}: no test fails."
    assert grid_words(uncompared) == f"{nothing_compared}."
    assert grid_words(still, uncompared, last_break=(HEAD, MOMENT.timestamp())) == (
        f"{day}: {status_link('1 test still fails on 1 of 4 targets', 'failing')}; {nothing_compared}."
    )
    assert grid_words(still, suite_news("example-lab/mali", failing=1)) == (
        f"No new failure in 14 nightly commits: {status_link('2 tests still fail on 2 of 4 targets', 'failing')}."
    )


def test_what_failed_on_a_target_before_it_became_late_is_no_news_of_a_grid() -> None:
    late_words = f"[example-lab/mali has not reported for 3 days]({PAGE}/labs/example-lab)"
    then = f"{late_words} ([2 tests failed then]({PAGE}?since=2026-11-01&target=example-lab%2Fmali))"
    still, old = suite_news(failing=1), suite_news("example-lab/mali", new=1, failing=2)
    start, late = "No new failure in 14 nightly commits", {"example-lab/mali": 3 * 86_400.0}
    assert grid_words(still, old, late_targets=late) == f"{start}: 1 test still fails on 1 of 4 targets; {then}."
    assert grid_words(suite_news(), old, late_targets=late) == f"{start}: no test fails on 1 of 4 targets; {then}."
    assert grid_words(old, late_targets=late) == f"{start}; {then}."
    new = suite_news(new=1, failing=1)
    since = f" since [aaaaaaa]({PAGE}/commits/{BASE})"
    assert grid_words(new, old, late_targets=late) == f"1 new failure on 1 of 4 targets{since}; {then}."
    uncompared = suite_news(failing=3, has_baseline=False)
    assert grid_words(uncompared, old, late_targets=late) == (
        f"3 failures on 1 of 4 targets, with nothing to compare with; {then}."
    )


def test_late_targets_with_failures_come_first_and_all_their_failures_are_counted() -> None:
    names = [f"example-lab/t{number}" for number in range(6)]
    suites = [suite_news(name, failing=number) for number, name in enumerate(names)]
    words = grid_words(*suites, late_targets=dict.fromkeys(names, 3 * 86_400.0))
    assert words.count("has not reported for 3 days") == 3
    assert "1 test failed then" in words
    assert "t0" not in words
    assert words.endswith(" and 3 more targets (9 tests failed then).")
    old = suite_news(names[0], new=1, failing=1)
    assert not any("Maintainer" in step for step in steps(grid_news(old, late_targets={names[0]: None}).next_steps()))
    still = suite_news("example-lab/mali", failing=1)
    listed = status_link("1 new failure on 1 of 4 targets", "new-failure")
    new = suite_news("example-lab/mali", new=1, failing=1, base="")
    assert listed in grid_words(new, suite_news(names[1], failing=1), late_targets={names[1]: None})
    assert "status=failing" not in grid_words(still, old, late_targets={names[0]: None})


def test_which_targets_of_a_grid_are_late_or_unusable() -> None:
    names = [f"example-lab/t{number}" for number in range(5)]
    unusable = ", ".join(f"[{name}]({PAGE}?target=example-lab%2F{name[-2:]})" for name in names[:3])
    lab = f"({PAGE}/labs/example-lab)"
    late = "; ".join(f"[{name} has not reported for 3 days]{lab}" for name in names[1:3])
    ages = dict.fromkeys(names, 3 * 86400.0) | {names[0]: None}
    assert grid_words(unusable_targets=names[:4], late_targets=ages) == (
        f"{unusable} and 1 more target: no usable results in the newest run; "
        f"[{names[0]} has never reported]{lab}; {late} and 2 more targets."
    )
    assert grid_words(late_targets=dict.fromkeys(names[1:3], 3 * 86400.0)) == f"{late}."


def test_what_can_be_done_about_a_grid() -> None:
    new = suite_news(new=1, failing=1)
    maintainer = f"Maintainer: [see what changed between the last two nightly commits]({COMPARED_ON_GRID})"
    contributor = f"Contributor: {status_link('a failure in this list', 'failing')} is not from your pull request"

    def lab(name: str) -> str:
        return f"Lab: [see what {name} sent, and what is missing]({PAGE}/labs/{name})"

    late = {"hubot-lab/rpi-5": None}
    assert steps(grid_news(suite_news(), new, late_targets=late).next_steps()) == [
        maintainer,
        contributor,
        lab("hubot-lab"),
    ]
    unusable = grid_news(suite_news(new=1, base=""), late_targets=late, unusable_targets=["example-lab/adreno"])
    assert steps(unusable.next_steps()) == [lab("example-lab")]
    assert steps(grid_news(suite_news()).next_steps()) == []
