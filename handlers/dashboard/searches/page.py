"""`/r/{owner}/{repo}/searches/{id}`: a search for a culprit: its range, its runs, its answer, and what happens next."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from nightjar_formats.model import TargetKey

from bot.core.patterns import Pattern
from bot.core.urls import linkable
from bot.core.utc import datetime_of
from bot.effects.issues import ISSUE
from bot.github.pull_heads import repository_id_of
from bot.results.ingest.commit_summaries import commit_summary
from bot.web.openapi import Parameter
from bot.web.page_routes import Page, PageRequest
from handlers.dashboard.searches import texts
from handlers.dashboard.searches.answer import culprit_answer, culprit_steps
from handlers.dashboard.searches.model import (
    CulpritCommit,
    CulpritDraft,
    CulpritLevels,
    CulpritPage,
    CulpritRun,
    CulpritTarget,
)
from handlers.dashboard.shared.settings import settings_of
from handlers.dashboard.shared.wiring import DashboardParts
from handlers.device_tests.commit_jobs import commit_job, searches_left
from handlers.device_tests.model import DeviceJobState
from handlers.searches.decide import MOST_RUNS, advance
from handlers.searches.records import CULPRIT_SEARCH, SearchRunState
from handlers.searches.revert.records import CULPRIT_REVERT, CulpritRevert
from handlers.searches.revert.texts import revert_sentence

if TYPE_CHECKING:
    from bot.config.model import RepositoryConfig
    from handlers.searches.decide import SearchProgress
    from handlers.searches.records import AskedRun, CulpritSearch

MOST_TARGETS = 10
"""The most targets of which the page says what happens next: each costs two statements."""
_ID = Pattern(r"[0-9a-f]{12}")
ID_PART = Parameter("id", "The search's ID.", {"type": "string", "pattern": "^[0-9a-f]{12}$"})


def culprit_page(parts: DashboardParts) -> Page:
    """Return the page of one search."""

    async def load(request: PageRequest) -> CulpritPage:
        name, settings = settings_of(parts, request.repository)
        repository_id, search_id = await repository_id_of(parts.records, name), request.path["id"]
        if repository_id is None or not _ID.fullmatch(search_id):
            raise LookupError(search_id)
        search = await parts.records.get(CULPRIT_SEARCH.of(repository_id, search_id))
        if search is None:
            raise LookupError(search_id)
        issue = await parts.records.get(ISSUE.of(repository_id, search.issue)) if search.issue else None
        progress = await request.pages.run(_next_of, search, parts.clock())
        page = await request.pages.run(_page_of, search, progress)
        page.issue = issue.number if issue else None
        revert = await parts.records.get(CULPRIT_REVERT.of(repository_id, search_id))
        page.revert = _draft(revert) if revert else None
        if search.answer is None:
            settings = await parts.in_force(name, settings)
            targets = search.request.targets[:MOST_TARGETS]
            page.next = [
                await _target(parts, settings, TargetKey(name, *target.split("/", 1)), repository_id, search, progress)
                for target in targets
            ]
            page.more_targets = len(search.request.targets) - len(targets)
        github = f"{parts.github}/{name}"
        page.answer = culprit_answer(page, github)
        page.next_steps = culprit_steps(page, name, github, parts.config.mentions[0])
        return page

    return Page(
        path="/r/{owner}/{repo}/searches/{id}",
        api_path="/api/v1/repos/{owner}/{repo}/searches/{id}",
        summary="A search for the commit that tests began to fail with: its range, its runs, and what happens next",
        template="culprit.html",
        model=CulpritPage,
        parts=(ID_PART,),
        load=load,
    )


def _next_of(search: CulpritSearch, moment: float) -> SearchProgress:
    """Return what a search would ask if all its targets without a run were idle now, and what is known of its range."""
    waiting = {run.target for run in search.runs if run.state is SearchRunState.WAITING}
    idle = [target for target in search.request.targets if target not in waiting] if search.answer is None else []
    return advance(replace(search, answer=None), idle, is_stopped=False, moment=moment)


def _page_of(search: CulpritSearch, progress: SearchProgress) -> CulpritPage:
    request, answer, posterior = search.request, search.answer, progress.posterior
    commits = []
    for position, (commit, probability) in enumerate(
        zip(search.commits, posterior.probabilities(), strict=True), start=1
    ):
        summary = commit_summary(commit.title, commit.author)
        is_culprit = answer is not None and answer.pull and answer.first == answer.last == position
        commits.append(
            CulpritCommit(
                position=position,
                sha=commit.sha,
                title=summary.title,
                author=summary.author,
                pull_request=answer.pull if answer and is_culprit else summary.pull_request,
                probability=probability,
            )
        )
    return CulpritPage(
        id=search.id,
        suite=request.suite,
        tests=list(request.tests),
        measurement=request.measurement,
        levels=[
            CulpritLevels(
                target=target,
                before=levels.before,
                after=levels.after,
                unit=levels.unit,
                words=texts.LEVELS.format(before=levels.text(levels.before), after=levels.text(levels.after)),
            )
            for target, levels in search.levels.items()
        ],
        targets=list(request.targets),
        good=request.good,
        bad=request.bad,
        began_at=datetime_of(search.began_at),
        ended_at=datetime_of(search.ended_at) if answer else None,
        outcome=answer.outcome if answer else "",
        probability=answer.probability if answer else 0.0,
        first=answer.first if answer else 0,
        last=answer.last if answer else 0,
        commits=commits,
        environment=posterior.environment,
        not_repeated=posterior.not_repeated,
        runs=[_run(search, run) for run in search.runs],
        device_seconds=search.seconds,
        runs_left=max(0, MOST_RUNS - len(search.runs)),
        most_runs=MOST_RUNS,
        next=[],
        more_targets=0,
        issue=None,
        revert=None,
    )


def _draft(revert: CulpritRevert) -> CulpritDraft:
    words = revert_sentence(revert, str)
    return CulpritDraft(stage=revert.stage.value, words=words, pull_request=revert.number or None, sha=revert.head)


def _run(search: CulpritSearch, run: AskedRun) -> CulpritRun:
    return CulpritRun(
        number=run.number,
        position=run.commit,
        sha=search.sha_of(run.commit),
        target=run.target,
        state=run.state.value,
        repeat=run.repeat,
        failed=sum(failed for failed, _ in run.counts.values()),
        passed=sum(passed for _, passed in run.counts.values()),
        seconds=run.seconds,
        asked_at=datetime_of(run.asked_at),
        ended_at=datetime_of(run.ended_at) if run.ended_at else None,
        log_url=linkable(run.log_url),
        value=run.value,
        value_words=search.levels[run.target].text(run.value) if run.value is not None else "",
    )


async def _target(
    parts: DashboardParts,
    settings: RepositoryConfig,
    target: TargetKey,
    repository_id: int,
    search: CulpritSearch,
    progress: SearchProgress,
) -> CulpritTarget:
    """Say what a target does for a search without an answer: its run, or why it has none, and its next commit."""
    left = await searches_left(parts.jobs, settings, repository_id, target, parts.clock())
    name = target.full_name
    run = next((run for run in search.runs if run.target == name and run.state is SearchRunState.WAITING), None)
    if run is None:
        next_run = next((run for run in progress.new_runs if run.target == name), None)
        state = "off" if left is None else "ready" if left else "used up"
        words, since = texts.TARGET_STATES[state], None
        position = next_run.commit if next_run and left is not None else None
    else:
        job = await commit_job(parts.jobs, repository_id, target.lab, search.purpose(run.number))
        is_leased = job is not None and job.state is DeviceJobState.LEASED
        state = "leased" if is_leased else "idle" if job else "requested"
        words, position = texts.TARGET_STATES[state].format(number=run.number), run.commit
        since = datetime_of(job.leased_at if job and is_leased else run.asked_at)
    return CulpritTarget(target=name, state=state, words=words, since=since, left_today=left, position=position)
