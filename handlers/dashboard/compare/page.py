"""`/r/{owner}/{repo}/compare`: what changed on a target from one commit to another."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Annotated

import sqlalchemy as sa
from nightjar_formats.model import Counts, SeenTest, TargetKey
from pydantic import BaseModel, ConfigDict, Field, StringConstraints

from bot.core.untrusted.limits import OverLimit
from bot.core.untrusted.queue import Owner
from bot.results.compare import texts as compare_texts
from bot.results.compare.ancestors import AncestorSearch
from bot.results.compare.diff import Comparison
from bot.results.compare.quarantine import quarantine_at
from bot.results.report.compared import compared_with_any, with_flaky
from bot.results.report.findings import Baseline, ComparedSuite
from bot.results.state import CommitSummary, SuiteState
from bot.results.store.commit import commit_state, seen_tests
from bot.results.store.history.baselines import baselines
from bot.results.store.history.flakiness import known_flaky_tests
from bot.results.store.history.timelines import commits_starting_with, suites_of_target
from bot.results.store.lists.commits_with_results import (
    CommitWithResults,
    commit_with_results,
    newest_commits_with_results,
    suites_with_results,
)
from bot.results.store.tables import ancestry
from bot.results.store.tables.commits import summaries_of
from bot.web.page_filters import short
from bot.web.page_routes import Page, PageRequest
from bot.web.problems import Problem
from handlers.dashboard.compare.answer import compare_answer, compare_steps
from handlers.dashboard.compare.numbers import MOST_COMPARED, MOST_JUDGED, ComparedNumber, compared_numbers
from handlers.dashboard.compare.rows import (
    ChangeClass,
    ComparePage,
    ComparisonCommit,
    CsvTableName,
    SuitePair,
    compare_table,
    comparison_page,
)
from handlers.dashboard.shared import texts
from handlers.dashboard.shared.content import content_of_results
from handlers.dashboard.shared.settings import TARGET_PATTERN, settings_and_target
from handlers.dashboard.shared.wiring import DashboardParts
from handlers.results.config import LAB_RESULTS, QUARANTINE, RENAMES, configured_targets

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from bot.config.model import RepositoryConfig

Commit = Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{7,40}$", to_lower=True, strip_whitespace=True)]
WHOLE_SHA = 40
MOST_SUGGESTED = 5
"""The most commits that an error names instead of an unknown one."""


class CompareQuery(BaseModel, extra="forbid"):
    """The query of a comparison: what to compare, and which tests to list. All members are optional."""

    target: Annotated[str, StringConstraints(pattern=TARGET_PATTERN)] | None = Field(
        default=None, description="The target, as LAB/TARGET; default: the first one that has results."
    )
    base: Commit | None = Field(
        default=None, description="A commit with results, 7 digits at least; default: what `head` is compared with."
    )
    head: Commit | None = Field(
        default=None, description="A commit with results, 7 digits at least; default: the newest one."
    )
    status: ChangeClass | None = Field(default=None, description="Only tests with this change.")
    suite: Annotated[str, StringConstraints(max_length=200)] | None = Field(
        default=None, description="Only tests of this suite."
    )
    q: Annotated[str, StringConstraints(max_length=200)] | None = Field(
        default=None, description="Only tests whose ID contains this text, ignoring case."
    )
    table: CsvTableName = Field(default="tests", description="What a CSV has: tests, or what they measured.")
    page: Annotated[int, Field(ge=1, le=10_000)] = Field(default=1, description="Which page of the list.")


class ComparisonChoice(BaseModel):
    """The target and the commits to compare, and the newest commits to choose from; None where there are no results."""

    model_config = ConfigDict(extra="forbid", arbitrary_types_allowed=True)

    target: TargetKey | None
    base: CommitWithResults | None = None
    head: CommitWithResults | None = None
    newest: list[CommitWithResults] = []
    known_commits: dict[str, CommitSummary] = {}


def compare_page(parts: DashboardParts) -> Page:
    """Return the page that compares two commits of a target."""

    async def load(request: PageRequest) -> ComparePage:
        name, settings = await settings_and_target(parts, request)
        query: CompareQuery = request.query
        if settings.of(LAB_RESULTS) is None:
            return ComparePage.without_results()
        choice = await request.pages.run(parts.results.store.read, choose_commits, name, settings, query)
        suites: list[SuitePair] = []
        numbers: list[ComparedNumber] = []
        if choice.target and choice.base and choice.head:
            suites = await _compare_suites(parts, request, settings, choice.target, choice.base, choice.head)
            # Filters are about changes of outcomes, so what others measured would be in the way.
            if not (query.status or query.q or query.suite):
                most = MOST_COMPARED if request.as_csv else MOST_JUDGED
                numbers = await request.pages.run(
                    parts.results.store.read, compared_numbers, choice.target, choice.base, choice.head, settings, most
                )
        page = await request.pages.run(
            comparison_page,
            suites,
            status=query.status,
            suite=query.suite,
            text=query.q or "",
            number=query.page,
            csv_rows=request.most_rows(0),
            targets=configured_targets(settings),
            target=choice.target.full_name if choice.target else None,
            base=ComparisonCommit.of(choice.base),
            head=ComparisonCommit.of(choice.head),
            commits=[ComparisonCommit.from_store(commit) for commit in choice.newest],
        )
        answer, next_steps = compare_answer(page, name), compare_steps(page, f"{parts.github}/{name}")
        return page.model_copy(
            update={
                "answer": answer,
                "next_steps": next_steps,
                "known_commits": choice.known_commits,
                "numbers": numbers,
                "table": query.table,
            }
        )

    return Page(
        path="/r/{owner}/{repo}/compare",
        api_path="/api/v1/repos/{owner}/{repo}/compare",
        summary="What changed on a target from one commit to another",
        template="compare.html",
        model=ComparePage,
        query=CompareQuery,
        load=load,
        content=content_of_results(parts),
        table=compare_table,
    )


def choose_commits(
    connection: sa.Connection, repository: str, settings: RepositoryConfig, query: CompareQuery
) -> ComparisonChoice:
    """Choose the target and the commits to compare: those of the query, defaults for what it leaves out; it blocks.

    Raises `Problem` 400 if a commit has no results, or if its digits fit several commits.
    """
    names = [query.target] if query.target else configured_targets(settings)
    target, newest = None, list[CommitWithResults]()
    for name in names:
        target = TargetKey(repository, *name.split("/", 1))
        if newest := newest_commits_with_results(connection, target):
            break
    if target is None or not newest:
        return ComparisonChoice(target=target if query.target else None)
    # Commits of pull requests are chosen by name only: the page opens with the last two nightly commits.
    nightly = [commit for commit in newest if commit.mainline] or newest
    head = _find_commit(connection, target, query.head, newest) if query.head else nightly[0]
    base = (
        _find_commit(connection, target, query.base, newest)
        if query.base
        else _find_baseline(connection, target, head, newest)
    )
    shas = [commit.sha for commit in (head, base, *newest) if commit]
    summaries = summaries_of(connection, repository, shas)
    return ComparisonChoice(target=target, base=base, head=head, newest=newest, known_commits=summaries)


def _find_commit(
    connection: sa.Connection, target: TargetKey, digits: str, newest: Sequence[CommitWithResults]
) -> CommitWithResults:
    """Return the commit whose SHA begins with `digits`; raise `Problem` 400 if no commit or several do."""
    for commit in newest:
        if commit.sha == digits:
            return commit
    shas = [digits] if len(digits) == WHOLE_SHA else commits_starting_with(connection, target, digits, 2)
    if len(shas) > 1:
        raise Problem(400, texts.AMBIGUOUS_COMMIT.format(digits=digits))
    stored = commit_with_results(connection, target, shas[0]) if shas else None
    if stored is None:
        names = ", ".join(short(commit.sha) for commit in newest[:MOST_SUGGESTED])
        raise Problem(400, texts.COMMIT_WITHOUT_RESULTS.format(sha=digits, target=target.full_name, newest=names))
    return stored


def _find_baseline(
    connection: sa.Connection, target: TargetKey, head: CommitWithResults, newest: Sequence[CommitWithResults]
) -> CommitWithResults | None:
    """Return the commit that a check run compares `head` with; the nightly commit before it if that is unknown.

    Only stored relations between commits count: this sends no request to GitHub.
    """
    candidates = {
        suite: baselines(connection, target, suite, head.sha) for suite in suites_of_target(connection, target)
    }
    shas = {candidate.sha for suite_candidates in candidates.values() for candidate in suite_candidates}
    search = AncestorSearch(
        head.sha, candidates, ancestry.relations(connection, target.repository, {head.sha, *shas}), 1
    )
    ancestors = [relation.other for relations in search.nearest().values() for relation in relations]
    possible = [
        candidate
        for suite_candidates in candidates.values()
        for candidate in suite_candidates
        if not ancestors or candidate.sha in ancestors
    ]
    baseline = max(possible, key=lambda candidate: (candidate.committed_at, candidate.sha), default=None)
    if baseline is not None:
        return CommitWithResults(baseline.sha, baseline.committed_at, mainline=True, pull_request=None)
    older = [
        commit
        for commit in newest
        if commit.mainline and (commit.committed_at, commit.sha) < (head.committed_at, head.sha)
    ]
    return older[0] if older else None


async def _compare_suites(
    parts: DashboardParts,
    request: PageRequest,
    settings: RepositoryConfig,
    target: TargetKey,
    base: CommitWithResults,
    head: CommitWithResults,
) -> list[SuitePair]:
    """Compare each suite that one of two commits has, in the order of their names."""
    head_state = await request.pages.run(parts.results.store.read, commit_state, target, head.sha)
    quarantine, _ = quarantine_at(settings.of(QUARANTINE), target, parts.moment())
    names = sorted(
        {*head_state.suites, *await request.pages.run(parts.results.store.read, suites_with_results, target, base.sha)}
    )
    pairs = []
    for name in names:
        head_suite = head_state.suites.get(name)
        base_outcomes = await request.pages.run(parts.results.store.read, seen_tests, target, name, base.sha)
        if head_suite is None or not head_suite.seen:
            pairs.append(SuitePair(name, {}, base_outcomes, None, quarantine))
            continue
        compared = await _compare_suite(
            parts, request, settings, target, head_suite, Baseline(base.sha, ""), base_outcomes
        )
        if failing := compared.comparison.failing:
            failures = {test: head_suite.seen[test] for test in failing}
            flakiness = await request.pages.run(
                parts.results.store.read,
                known_flaky_tests,
                target,
                name,
                head.sha,
                failures,
                settings.of(RENAMES).aliases,
            )
            compared = with_flaky(compared, flakiness)
        pairs.append(
            SuitePair(name, head_suite.seen, base_outcomes, compared, quarantine, complete=head_suite.complete)
        )
    return pairs


async def _compare_suite(
    parts: DashboardParts,
    request: PageRequest,
    settings: RepositoryConfig,
    target: TargetKey,
    suite: SuiteState,
    base: Baseline,
    base_outcomes: Mapping[str, SeenTest],
) -> ComparedSuite:
    owner = Owner(target.repository.lower(), "pages")
    # The comparison needs no output of tests, and its arguments are copied to the other process.
    bare = replace(suite, details={})
    results = parts.results.running_in(request.pages.run)
    try:
        return await results.compare(
            owner,
            (suite.seen, base_outcomes),
            compared_with_any,
            bare,
            base,
            base_outcomes,
            settings.of(RENAMES).aliases,
        )
    except OverLimit as error:
        reason = compare_texts.COMPARISON_COST.format(why=error)
        return ComparedSuite(Comparison(Counts(), has_baseline=True, infra=reason))
