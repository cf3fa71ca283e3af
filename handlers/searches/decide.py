"""What a search does next, from what is stored of it and of its jobs. No I/O."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from bot.results.culprit.posterior import Posterior, SearchRun
from bot.results.culprit.priors import CommitTraits, prior_of
from bot.results.culprit.questions import Question, repeats_of
from bot.results.culprit.rates import FailureCounts
from bot.results.culprit.search import SearchRange, search_step
from bot.results.few_tests import FewTestsOutcome
from handlers.device_tests.model import DeviceJob, JobEnd
from handlers.searches.records import (
    AskedRun,
    CulpritSearch,
    SearchAnswer,
    SearchedCommit,
    SearchRunState,
    series_name,
)

MOST_RUNS = 60
"""The most jobs of a search."""
MOST_WITHOUT_RESULTS = 6
"""A search ends when so many jobs in a row had no results."""
MOST_UNKNOWN = 2 * 86_400.0
"""Seconds after which a job that was asked for and is not known counts as lost."""
_OF_COMMIT = frozenset({JobEnd.NONE, JobEnd.LAB_FAILED, JobEnd.TOO_LONG})
"""Ends that may be the commit's fault. After any other, such as a pause of the target, nothing was tested."""
_REVERT = 'Revert "'
_MEASURED_REPEATS = 3
"""A run measures so often. The median counts once, because what one run measures has much in common."""


@dataclass(frozen=True, slots=True)
class SearchProgress:
    """A search after what was decided, what is known of its commits, and the runs that are asked for now."""

    search: CulpritSearch
    posterior: Posterior
    new_runs: Sequence[AskedRun] = ()


def settled(search: CulpritSearch, run: AskedRun, job: DeviceJob | None, moment: float) -> AskedRun:
    """Return a run of a search with what its job says; late results replace "no results".

    `moment` is in seconds since 1970.
    """
    if job is None:
        is_lost = run.state is SearchRunState.WAITING and moment - run.asked_at > MOST_UNKNOWN
        return replace(run, state=SearchRunState.LOST, ended_at=moment) if is_lost else run
    if job.is_open:
        return run
    outcome = FewTestsOutcome.load(job.outcome)
    counts = {test: (attempts.failed, attempts.passed) for test, attempts in outcome.head.items() if attempts.attempts}
    levels, value = search.levels.get(run.target), None
    if levels is not None:
        test = search.request.tests[0]
        value = outcome.of(test).median(search.request.measurement, levels.unit)
        counts = {} if value is None else {test: levels.count_new([value])}
    without = SearchRunState.NO_RESULTS if job.end in _OF_COMMIT else SearchRunState.LOST
    return replace(
        run,
        state=SearchRunState.RESULTS if counts else without,
        ended_at=job.ended_at or moment,
        counts=counts,
        seconds=outcome.seconds,
        log_url=job.log_url,
        value=value,
    )


def advance(search: CulpritSearch, idle: Sequence[str], *, is_stopped: bool, moment: float) -> SearchProgress:
    """Return the search with its next runs, or with its answer.

    `idle` are targets that may get a job now. The search `is_stopped` if no target takes jobs any more.
    """
    of_range = range_of(search)
    waiting = [Question(run.commit, run.target) for run in search.runs if run.state is SearchRunState.WAITING]
    left = 0 if is_stopped or _has_no_results(search) else MOST_RUNS - len(search.runs)
    step = search_step(of_range, _evidence(search), idle=idle, unknown=_unknown(search), waiting=waiting, budget=left)
    if step.verdict is not None:
        verdict = step.verdict
        answer = SearchAnswer(verdict.outcome.value, verdict.probability, verdict.first, verdict.last)
        return SearchProgress(replace(search, answer=answer, ended_at=moment, step=search.step + 1), step.posterior)
    first = len(search.runs) + 1
    new_runs = tuple(
        AskedRun(
            number,
            question.commit,
            question.target,
            _MEASURED_REPEATS
            if search.request.measurement
            else repeats_of(step.posterior, of_range.series_of[question.target]),
            moment,
        )
        for number, question in enumerate(step.questions, first)
    )
    longer = replace(search, runs=(*search.runs, *new_runs), step=search.step + 1)
    return SearchProgress(longer, step.posterior, new_runs)


def range_of(search: CulpritSearch) -> SearchRange:
    """Return what is searched."""
    request = search.request
    return SearchRange(
        prior_of(traits_of(search.commits)),
        {series: FailureCounts(*counts) for series, counts in search.histories.items()},
        {target: [series_name(target, test) for test in request.tests] for target in request.targets},
    )


def traits_of(commits: Sequence[SearchedCommit]) -> list[CommitTraits]:
    """Return what files and titles say: GitHub names a revert `Revert "TITLE"`."""
    traits, positions = list[CommitTraits](), dict[str, int]()
    for position, commit in enumerate(commits):
        title = _without_number(commit.title)
        reverted = None
        if title.startswith(_REVERT):
            reverted = positions.get(_without_number(title.removeprefix(_REVERT).removesuffix('"')))
        traits.append(CommitTraits(commit.only_docs, commit.only_other_targets, reverted))
        positions[title] = position
    return traits


def _without_number(title: str) -> str:
    """Return a title without the number of its pull request: `Faster (#12)` is `Faster`."""
    start, separator, number = title.rpartition(" (#")
    return start if separator and number.endswith(")") else title


def _evidence(search: CulpritSearch) -> list[SearchRun]:
    ended = [run for run in search.runs if run.state is SearchRunState.RESULTS]
    return [
        SearchRun(run.commit, series_name(run.target, test), FailureCounts(*counts))
        for run in sorted(ended, key=lambda run: (run.ended_at, run.number))
        for test, counts in sorted(run.counts.items())
        if test in search.request.tests
    ]


def _unknown(search: CulpritSearch) -> set[int]:
    """Return the positions that gave no results. Both ends were tested at night, so the lab is at fault there."""
    tried = {run.commit for run in search.runs if run.state is SearchRunState.NO_RESULTS}
    return tried - {run.commit for run in search.runs if run.state is SearchRunState.RESULTS} - {0, len(search.commits)}


def _has_no_results(search: CulpritSearch) -> bool:
    ended = [run for run in search.runs if run.state is not SearchRunState.WAITING]
    newest = sorted(ended, key=lambda run: run.ended_at)[-MOST_WITHOUT_RESULTS:]
    return len(newest) == MOST_WITHOUT_RESULTS and all(run.state is not SearchRunState.RESULTS for run in newest)
