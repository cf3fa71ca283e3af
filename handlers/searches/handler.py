"""Continue searches: when they start, when one of their jobs ends, and once an hour (`sweep`).

One plan stores the search together with the jobs that it asks for, so a crash neither loses a job nor asks twice:
docs/decisions/searches-outlive-crashes.md
"""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import TYPE_CHECKING

from nightjar_formats.model import SeenTest, Status

from bot.core.errors import UserError
from bot.core.listing import counted
from bot.core.page_paths import search_path
from bot.effects.comments import Reply
from bot.effects.issues import EnsureIssueSection
from bot.github.commits.refs import first_parents
from bot.plan.effect import Effect
from bot.plan.handler import Context, Plan, Router
from bot.plan.page_links import page_url
from bot.results.measurements.levels import MeasuredLevels
from bot.results.service import RESULTS
from bot.results.store.history.flakiness import flakiness_of_tests
from bot.results.store.measurements.levels import SeriesName, levels_before
from handlers.device_tests.commit_jobs import request_commit_job
from handlers.device_tests.effects import FEW_TESTS_ENDED, NoteShownStep
from handlers.device_tests.model import ShownStep
from handlers.regressions.begun import FAILURES_BEGUN
from handlers.regressions.records import target_issue
from handlers.results.config import LAB_RESULTS, RENAMES
from handlers.searches import texts
from handlers.searches.comments import culprit_comments, with_pull
from handlers.searches.decide import MOST_RUNS, advance
from handlers.searches.effects import SEARCH_EVENT, SearchEvent, StartSearch, StoreSearch
from handlers.searches.paths import with_paths
from handlers.searches.records import (
    CULPRIT_SEARCH,
    SEARCH_PURPOSE,
    CulpritSearch,
    SearchedCommit,
    SearchRequest,
    section_name,
    series_name,
)
from handlers.searches.requests import request_of
from handlers.searches.revert.begin import revert_checks
from handlers.searches.targets import idle_targets, named_target, settled_runs

if TYPE_CHECKING:
    from bot.config import RepositoryConfig
    from bot.core.events import Delivery

NAME, ENDED_RUN, BEGUN = "culprit-search", "culprit-search-runs", "culprit-search-begun"
MOST_COMMITS = 2_000

router = Router()


def accepts(delivery: Delivery, _: RepositoryConfig) -> bool:
    """Return whether a job of a search has ended."""
    return FEW_TESTS_ENDED.read(delivery.payload).purpose.startswith(SEARCH_PURPOSE)


@router.on(SEARCH_EVENT.name, name=NAME)
async def continue_search(context: Context) -> Plan:
    """Start a search, or look for jobs that ended unnoticed."""
    event = SEARCH_EVENT.read(context.delivery.payload)
    search = await context.records.get(CULPRIT_SEARCH.of(context.repository.id, event.id))
    if search is None and event.request is not None:
        issue = event.issue or target_issue(event.request.targets[0])
        try:
            search = await _begun(context, event.request, event.at, issue)
        except NoRange as problem:
            section = EnsureIssueSection(issue, section_name(event.id), texts.not_started(str(problem)))
            return Plan((section,), why=str(problem))
    return await _continued(context, event.id, search, moment=event.at)


@router.on(FAILURES_BEGUN.name, name=BEGUN, feature="regressions")
async def search_begun_failures(context: Context) -> Plan:
    """Start the search for failures that are reported, if several commits may be the cause."""
    begun = FAILURES_BEGUN.read(context.delivery.payload)
    request = request_of(begun.members, begun.measurement)
    if request is None:
        return Plan(why=texts.NO_GOOD_COMMIT)
    commits = await first_parents(context.github, context.repository.full_name, request.bad, at_least=2)
    if len(commits) > 1 and commits[1].sha == request.good:
        return Plan(why=texts.ONE_COMMIT)
    return Plan(
        (StartSearch(SearchEvent.start(request, context.delivery.received_at, begun.issue)),),
        why=texts.STARTED.format(id=request.id),
    )


@router.on(FEW_TESTS_ENDED.name, name=ENDED_RUN, accepts=accepts, after_removal=True)
async def read_ended_run(context: Context) -> Plan:
    """Continue the search whose job has ended."""
    ended = FEW_TESTS_ENDED.read(context.delivery.payload)
    note = NoteShownStep(ended.lab, ended.job, int(ShownStep.ENDED))
    search_id = ended.purpose.removeprefix(SEARCH_PURPOSE).partition(":")[0]
    search = await context.records.get(CULPRIT_SEARCH.of(context.repository.id, search_id))
    return await _continued(context, search_id, search, note)


class NoRange(UserError):
    """The commits of a request are no range of the branch."""


async def _begun(context: Context, request: SearchRequest, moment: float, issue: str) -> CulpritSearch | None:
    """Return a new search; None if the repository has no labs. Raises `NoRange`."""
    if context.config.of(LAB_RESULTS) is None:
        return None
    request_commits = await first_parents(
        context.github, context.repository.full_name, request.bad, at_least=MOST_COMMITS, until=request.good
    )
    shas = [commit.sha for commit in request_commits]
    if request.good not in shas[1 : MOST_COMMITS + 1]:
        raise NoRange(texts.NO_RANGE.format(good=request.good, bad=request.bad, most=MOST_COMMITS))
    commits = request_commits[: shas.index(request.good)][::-1]
    titled = [SearchedCommit(commit.sha, commit.title, author=commit.author) for commit in commits]
    searched = await with_paths(context, titled, request.targets)
    search = CulpritSearch(request, searched, {}, moment, step=0, issue=issue)
    return await (_with_levels if request.measurement else _with_histories)(context, search)


async def _with_histories(context: Context, search: CulpritSearch) -> CulpritSearch:
    """Return a new search with how often each test failed and passed before the range."""
    request, histories = search.request, dict[str, tuple[int, int]]()
    results, aliases = context.part(RESULTS), context.config.of(RENAMES).aliases
    passed = dict.fromkeys(request.tests, SeenTest(Status.PASSED))
    for name in request.targets:
        target = named_target(context, name)
        flakiness = await results.read(flakiness_of_tests, target, request.suite, request.good, passed, aliases)
        for test in request.tests:
            runs = flakiness.get(test)
            histories[series_name(name, test)] = (runs.failed, runs.runs - runs.failed) if runs else (0, 0)
    return replace(search, histories=histories)


async def _with_levels(context: Context, search: CulpritSearch) -> CulpritSearch:
    """Return a new search for a measurement with its levels, and how the nights before crossed their middle.

    Raises `NoRange` if it has no change at the end of the range.
    """
    request, levels, histories = search.request, dict[str, MeasuredLevels](), dict[str, tuple[int, int]]()
    results, aliases, test = context.part(RESULTS), context.config.of(RENAMES).aliases, request.tests[0]
    series = SeriesName(request.suite, test, request.measurement)
    for name in request.targets:
        before = await results.read(levels_before, named_target(context, name), series, request.bad, aliases)
        if before is None:
            raise NoRange(texts.NO_CHANGE.format(name=request.measurement, target=name, bad=request.bad[: texts.SHORT]))
        levels[name], histories[series_name(name, test)] = before.levels, (before.crossed, before.others)
    return replace(search, levels=levels, histories=histories)


async def _continued(
    context: Context, search_id: str, search: CulpritSearch | None, *effects: Effect, moment: float = 0.0
) -> Plan:
    """Return the plan of the next step; `effects` are applied in any case.

    `moment` is the time in seconds since 1970; without it, that of the end of the newest run.
    """
    if search is None:
        return Plan(effects, why=texts.UNKNOWN_SEARCH.format(id=search_id))
    if context.config.of(LAB_RESULTS) is None:
        return Plan(effects, why=texts.NO_RESULTS_KEY)
    updated = await _with_ended_runs(context, search, moment)
    moment = max([moment, *(run.ended_at for run in updated.runs)])
    if updated.answer is not None and updated == search:
        return Plan(effects, why=texts.ENDED.format(id=search_id))
    idle, is_stopped = await idle_targets(context, updated.request.targets, updated.runs, moment)
    # A search over thousands of commits takes some milliseconds a step.
    progress = await asyncio.to_thread(advance, updated, idle, is_stopped=is_stopped, moment=moment)
    new_search, request = progress.search, search.request
    jobs = tuple(
        request_commit_job(
            named_target(context, run.target),
            new_search.sha_of(run.commit),
            request.tests,
            run.repeat,
            texts.reason(search_id, request),
            key=new_search.purpose(run.number),
            suites=(request.suite,),
            moment=moment,
        )
        for run in progress.new_runs
    )
    comments = list[Reply]()
    if new_search.answer is not None:
        new_search = await with_pull(context, new_search)
        new_search, comments = culprit_comments(context, new_search)
    reverts = await revert_checks(context, search, new_search, moment)
    stored = StoreSearch.of(context.repository.id, new_search)
    url = page_url(context, search_path(context.repository.full_name, search_id))
    text = texts.issue_section(new_search, progress.posterior, MOST_RUNS, url)
    section = EnsureIssueSection(new_search.issue, section_name(search_id), text)
    if new_search.answer is not None:
        return Plan((*effects, stored, *reverts, section, *comments), why=texts.ENDED.format(id=search_id))
    if not jobs and updated == search and search.step:
        return Plan((*effects, section), why=texts.WAITS.format(id=search_id))
    why = texts.ASKS if jobs else texts.WAITS
    why = why.format(id=search_id, runs=counted(len(jobs), "further run"), count=len(search.runs))
    return Plan((*effects, stored, *reverts, *jobs, section), why=why)


async def _with_ended_runs(context: Context, search: CulpritSearch, moment: float) -> CulpritSearch:
    """Return the search with what its jobs say now; what changes takes its answer back."""
    runs = await settled_runs(context, search, search.runs, search.purpose, moment)
    return replace(search, runs=runs, answer=None if runs != search.runs else search.answer)
