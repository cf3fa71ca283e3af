"""Explain the class of a test: the runs, the baseline, the rule, and the messages, as they are stored."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import sqlalchemy as sa
from nightjar_formats.model import SeenTest, TargetKey

from bot.core.aliases import NO_ALIASES, Aliases
from bot.results.compare.ancestors import AncestorSearch
from bot.results.compare.flaky import Flakiness
from bot.results.compare.health import RELIABLE, SuiteHealth
from bot.results.compare.quarantine import NO_QUARANTINE, Quarantine
from bot.results.explain.classes import NOT_FLAKY, RULES, ResultClass, class_of, flakiness_at, lasting_at
from bot.results.explain.lookup import unknown_test
from bot.results.report.compared import compared_with
from bot.results.report.findings import Baseline, ComparedSuite
from bot.results.state import SuiteState, TargetState
from bot.results.store.commit import commit_state, seen_tests
from bot.results.store.failures.failures import FailureMessage, failure_messages
from bot.results.store.history.baselines import baselines
from bot.results.store.history.health import health_of_suites
from bot.results.store.history.timelines import (
    TimelineRun,
    has_test,
    names_of_suite,
    suites_of_target,
    timeline_of_test,
)
from bot.results.store.tables import ancestry

if TYPE_CHECKING:
    from bot.results.settings.quarantine import QuarantinedTest


@dataclass(frozen=True, slots=True)
class Explanation:
    """Why a test of a suite has its class at a commit.

    `rule` says in words how the class follows. `baseline` is the run that it is compared with, None without one, and
    `renamed_from` the name of the test there if it has another one now. `since` and `good` are the commits where a
    lasting failure began and where the test last passed; empty if there is none. `flakiness` is the flakiness of the
    test up to the commit, `health` the health of the suite, `quarantine` the item that names the test. `runs` has the
    newest run first, `messages` the oldest message.
    """

    target: TargetKey
    sha: str
    suite: str
    test: str
    of_class: ResultClass
    rule: str
    baseline: Baseline | None
    since: str
    good: str
    renamed_from: str
    runs: tuple[TimelineRun, ...]
    messages: tuple[FailureMessage, ...]
    flakiness: Flakiness = NOT_FLAKY
    health: SuiteHealth = RELIABLE
    quarantine: QuarantinedTest | None = None


def explain_test(
    connection: sa.Connection,
    target: TargetKey,
    sha: str,
    test: str,
    aliases: Aliases = NO_ALIASES,
    quarantine: Quarantine = NO_QUARANTINE,
) -> list[Explanation]:
    """Explain a test in each suite of a commit that has it; raise `UserError` if no suite of the target ever had it.

    `aliases` are the names of tests that maintainers renamed, `quarantine` the tests whose failures they know.
    """
    state = commit_state(connection, target, sha)
    suites = [name for name, suite in state.suites.items() if test in suite.seen]
    suites = suites or [name for name in state.suites if has_test(connection, target, name, test)]
    if not suites:
        suite_names = suites_of_target(connection, target)
        raise unknown_test(
            target, test, (name for suite in suite_names for name in names_of_suite(connection, target, suite))
        )
    item = quarantine.of(test)
    return [
        replace(_explain(connection, state, state.suites[suite], test, aliases), quarantine=item) for suite in suites
    ]


def _explain(
    connection: sa.Connection, state: TargetState, suite: SuiteState, test: str, aliases: Aliases
) -> Explanation:
    """Explain a test in one suite of a commit, with its stored runs up to that commit, the newest first."""
    target, sha = state.target, state.sha
    compared = _compared(connection, state, suite, aliases)
    timeline = timeline_of_test(connection, target, suite.suite, test, sha, aliases)
    seen_test = suite.seen.get(test)
    if timeline:
        timeline[0] = _with_outcome(timeline[0], seen_test)
    lasting_failure, usable_runs = lasting_at(timeline) if state.mainline else (None, [])
    flakiness = flakiness_at(timeline)
    of_class = class_of(test, seen_test, compared.comparison, lasting_failure, flakiness)
    test_names = {test, *(run.name for run in timeline)}
    good = lasting_failure.good if lasting_failure else None
    return Explanation(
        target,
        sha,
        suite.suite,
        test,
        of_class,
        rule=RULES[of_class].format(why=compared.comparison.infra, needed=flakiness.needed),
        baseline=compared.baseline,
        since=usable_runs[lasting_failure.since].sha if lasting_failure else "",
        good=usable_runs[good].sha if good is not None else "",
        renamed_from=next((old_name for old_name, new_name in compared.comparison.renamed if new_name == test), ""),
        runs=tuple(timeline),
        messages=tuple(failure_messages(connection, target, suite.suite, test_names)),
        flakiness=flakiness,
        health=health_of_suites(connection, target, sha).get(suite.suite, RELIABLE),
    )


def _compared(connection: sa.Connection, state: TargetState, suite: SuiteState, aliases: Aliases) -> ComparedSuite:
    """Compare a suite with the baseline of its check run, from stored relations only."""
    target, sha = state.target, state.sha
    candidates = {suite.suite: baselines(connection, target, suite.suite, sha)}
    relations = ancestry.relations(
        connection, target.repository, {sha, *(candidate.sha for candidate in candidates[suite.suite])}
    )
    ancestors = AncestorSearch(sha, candidates, relations, 1).nearest().get(suite.suite, [])
    bare = replace(suite, details={})
    if not ancestors:
        return compared_with(bare, None, None)
    baseline = Baseline(ancestors[0].other, ancestors[0].url)
    return compared_with(bare, baseline, seen_tests(connection, target, suite.suite, baseline.sha), aliases)


def _with_outcome(run: TimelineRun, seen_test: SeenTest | None) -> TimelineRun:
    """Return the run with the outcome of the test: a timeline has none for runs that comparisons leave out."""
    return replace(run, status=seen_test.status if seen_test else None, flaky=bool(seen_test and seen_test.flaky))
