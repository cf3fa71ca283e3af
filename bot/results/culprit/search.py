"""What a search for a culprit does next, and when it ends. No I/O."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum

from bot.results.culprit.posterior import Posterior, SearchRun
from bot.results.culprit.questions import Question, QuestionPlanner
from bot.results.culprit.rates import FailureCounts

CERTAIN = 0.99
"""The probability at which a search names a commit, or says that no commit is the cause."""
LIKELY = 0.8
"""The probability at which a search that ends without a name says that no commit is the cause, instead of a range."""
LEAST_RUNS = 2
"""A name rests on so many failed runs at the culprit, and on as many runs without a failure at the commit before."""


class SearchOutcome(Enum):
    """How a search ended. Only `CULPRIT` names a commit, and only `ENVIRONMENT` blames a lab."""

    CULPRIT = "culprit"
    ENVIRONMENT = "environment"
    NOT_REPEATED = "not repeated"
    RANGE = "range"
    BUDGET = "budget"


@dataclass(frozen=True, slots=True)
class SearchVerdict:
    """The end of a search: commits from `first` to `last` have this probability together. Both are 0 for no commit."""

    outcome: SearchOutcome
    probability: float
    first: int = 0
    last: int = 0


@dataclass(frozen=True, slots=True)
class SearchRange:
    """What is searched.

    `prior` has a probability for each commit from 1 on; `histories` the runs of each series before the range;
    `series_of` the series of each target. `failed_at_end` and `passed_at_begin` are the nightly runs at both ends that
    started the search: they are not evidence, because they were chosen, but they count as runs of their commits.
    """

    prior: Sequence[float]
    histories: Mapping[str, FailureCounts]
    series_of: Mapping[str, Sequence[str]]
    failed_at_end: int = 1
    passed_at_begin: int = 1


@dataclass(frozen=True, slots=True)
class SearchStep:
    """What a search does next: it asks some questions, or it has ended, or it waits for answers if both are empty."""

    posterior: Posterior
    questions: Sequence[Question] = ()
    verdict: SearchVerdict | None = None


def search_step(
    of_range: SearchRange,
    runs: Sequence[SearchRun],
    *,
    idle: Sequence[str],
    unknown: Collection[int] = (),
    waiting: Sequence[Question] = (),
    budget: int,
) -> SearchStep:
    """Return what to do after some runs, in the order of their end.

    `idle` names a target for each idle device; `unknown` are commits whose runs say nothing; `waiting` are questions
    without an answer yet; `budget` is how many more may be asked.
    """
    posterior = Posterior(of_range.prior, of_range.histories, runs)
    missing = _untested_ends(posterior, waiting)
    if missing:
        questions = [Question(commit, target) for commit, target in zip(missing, idle, strict=False)]
        return _within_budget(posterior, questions, waiting, budget)
    verdict, needed = _verdict(of_range, posterior)
    if verdict is not None:
        return SearchStep(posterior, verdict=verdict)
    planner = QuestionPlanner(posterior, of_range.series_of, unknown)
    for unanswered in waiting:
        planner.add(unanswered)
    on_the_way = {question.commit for question in waiting}
    questions, missing_runs = list[Question](), [commit for commit in needed if commit not in on_the_way]
    for target in idle:
        if missing_runs:
            questions.append(Question(missing_runs.pop(0), target))
        elif (question := planner.ask(target)) is not None:
            questions.append(question)
    if not questions and not waiting and idle:
        return SearchStep(posterior, verdict=_without_name(posterior, SearchOutcome.RANGE))
    return _within_budget(posterior, questions, waiting, budget)


def _within_budget(
    posterior: Posterior, questions: list[Question], waiting: Sequence[Question], budget: int
) -> SearchStep:
    if budget <= 0 and not waiting:
        return SearchStep(posterior, verdict=_without_name(posterior, SearchOutcome.BUDGET))
    return SearchStep(posterior, questions[: max(0, budget)])


def _untested_ends(posterior: Posterior, waiting: Sequence[Question]) -> list[int]:
    """Return the ends without a run, the last one first: nothing is to be found unless its failure repeats."""
    covered = {*posterior.tested, *(question.commit for question in waiting)}
    return [commit for commit in (posterior.commits, 0) if commit not in covered]


def _verdict(of_range: SearchRange, posterior: Posterior) -> tuple[SearchVerdict | None, list[int]]:
    """Return the end of the search if it is reached, and which commits must be tested before."""
    if (verdict := _no_commit(posterior, CERTAIN)) is not None:
        return verdict, []
    position = max(range(len(posterior.segments)), key=lambda number: posterior.segments[number].probability)
    segment = posterior.segments[position]
    if segment.probability < CERTAIN or segment.last - segment.first > 1:
        return None, []
    needed = _missing_runs(of_range, posterior, segment.last)
    if needed:
        return None, needed
    probability = posterior.chance_of_culprit(position)
    if probability < CERTAIN:
        sides = sorted((segment.first, segment.last), key=lambda commit: posterior.runs_at(commit).total)
        return None, sides
    return SearchVerdict(SearchOutcome.CULPRIT, probability, segment.last, segment.last), []


def _no_commit(posterior: Posterior, least: float) -> SearchVerdict | None:
    """Return the verdict that no commit is the cause, if it has at least this probability."""
    probability = posterior.environment + posterior.not_repeated
    if probability < least:
        return None
    is_new = posterior.environment > posterior.not_repeated
    return SearchVerdict(SearchOutcome.ENVIRONMENT if is_new else SearchOutcome.NOT_REPEATED, probability)


def _missing_runs(of_range: SearchRange, posterior: Posterior, culprit: int) -> list[int]:
    """Return which of a commit and the one before must be tested again before it is named.

    Failures at one and passes at the other come in turn, so that a lab that breaks in the middle explains nothing.
    """
    failed = [number for number, run in enumerate(posterior.runs) if run.commit == culprit and run.counts.failures]
    passed = [number for number, run in enumerate(posterior.runs) if run.commit == culprit - 1 and run.counts.passes]
    failures = len(failed) + (of_range.failed_at_end if culprit == posterior.commits else 0)
    passes = len(passed) + (of_range.passed_at_begin if culprit == 1 else 0)
    needed = list[int]()
    if passes < LEAST_RUNS or not passed or not failed or passed[-1] < failed[0]:
        needed.append(culprit - 1)
    if failures < LEAST_RUNS or not passed or not failed or failed[-1] < passed[0]:
        needed.append(culprit)
    return needed


def _without_name(posterior: Posterior, outcome: SearchOutcome) -> SearchVerdict:
    """Return the end of a search that names no commit: probably none is the cause, or the range that is left.

    That is the shortest run of neighboring segments around the likeliest one that is certain, or all of them.
    """
    if (verdict := _no_commit(posterior, LIKELY)) is not None:
        return verdict
    segments = posterior.segments
    low = high = max(range(len(segments)), key=lambda number: segments[number].probability)
    total = segments[low].probability
    while total < CERTAIN and (low > 0 or high < len(segments) - 1):
        lower = segments[low - 1].probability if low > 0 else -1.0
        upper = segments[high + 1].probability if high < len(segments) - 1 else -1.0
        if lower > upper:
            low, total = low - 1, total + lower
        else:
            high, total = high + 1, total + upper
    return SearchVerdict(outcome, total, segments[low].first + 1, segments[high].last)
