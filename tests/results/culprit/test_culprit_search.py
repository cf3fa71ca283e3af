"""A search names a commit when its runs leave no doubt, and nobody when they contradict each other."""

from __future__ import annotations

from collections.abc import Callable, Collection

import pytest

from bot.results.culprit.posterior import Posterior, SearchRun
from bot.results.culprit.priors import CommitTraits, prior_of
from bot.results.culprit.questions import MOST_REPEATS, Question, repeats_of
from bot.results.culprit.rates import FailureCounts
from bot.results.culprit.search import CERTAIN, SearchOutcome, SearchRange, SearchStep, search_step

PHONE, BOARD = "example-lab/phone", "example-lab/board"
HISTORY = FailureCounts(0, 100)
BUDGET = 100


def of_range(commits: int, *targets: str) -> SearchRange:
    names = targets or (PHONE,)
    return SearchRange([1 / commits] * commits, dict.fromkeys(names, HISTORY), {target: [target] for target in names})


def run_of(commit: int, *, failed: bool, series: str = PHONE) -> SearchRun:
    return SearchRun(commit, series, FailureCounts(int(failed), int(not failed)))


def search(
    commits: int,
    fails: Callable[[int, int], bool],
    *,
    not_built: Collection[int] = (),
    budget: int = BUDGET,
    prior: list[float] | None = None,
) -> tuple[SearchStep, list[int]]:
    """Answer all questions until the search ends; return the last step and the commits that were tested."""
    searched_range = of_range(commits)
    searched_range = SearchRange(prior or searched_range.prior, searched_range.histories, searched_range.series_of)
    runs, unknown, tested = list[SearchRun](), set[int](), list[int]()
    while True:
        step = search_step(searched_range, runs, idle=[PHONE], unknown=unknown, budget=budget - len(tested))
        if step.verdict is not None:
            return step, tested
        for question in step.questions:
            tested.append(question.commit)
            if question.commit in not_built:
                unknown.add(question.commit)
            else:
                runs.append(run_of(question.commit, failed=fails(question.commit, len(tested))))


@pytest.mark.parametrize(("commits", "culprit"), [(2, 1), (2, 2), (16, 5), (100, 100), (100, 1), (2_000, 777)])
def test_a_steady_failure_is_named_after_both_ends_were_repeated(commits: int, culprit: int) -> None:
    step, tested = search(commits, lambda commit, _: commit >= culprit)
    assert step.verdict is not None
    assert (step.verdict.outcome, step.verdict.first, step.verdict.last) == (SearchOutcome.CULPRIT, culprit, culprit)
    assert step.verdict.probability >= CERTAIN
    assert tested[:2] == [commits, 0]
    assert sorted(set(tested)) == sorted({*tested, culprit - 1, culprit, 0, commits})
    assert len(tested) <= 22


@pytest.mark.parametrize(
    ("fails", "outcome"),
    [
        (lambda _commit, _run: True, SearchOutcome.ENVIRONMENT),
        (lambda _commit, _run: False, SearchOutcome.NOT_REPEATED),
        (lambda _commit, run: run % 2 == 0, SearchOutcome.ENVIRONMENT),
        (lambda commit, run: commit >= 30 or run > 6, SearchOutcome.ENVIRONMENT),
    ],
    ids=["the good end fails", "the bad end passes", "answers alternate", "the lab breaks"],
)
def test_a_lab_that_contradicts_itself_blames_no_commit(
    fails: Callable[[int, int], bool], outcome: SearchOutcome
) -> None:
    step, _ = search(64, fails)
    assert step.verdict is not None
    assert (step.verdict.outcome, step.verdict.first, step.verdict.last) == (outcome, 0, 0)
    assert step.verdict.probability == pytest.approx(step.posterior.environment + step.posterior.not_repeated)


def test_commits_without_results_are_never_bad_and_leave_a_range() -> None:
    not_built = {5, 6, 7}
    step, tested = search(20, lambda commit, _: commit >= 6, not_built=not_built)
    assert step.verdict is not None
    assert (step.verdict.outcome, step.verdict.first, step.verdict.last) == (SearchOutcome.RANGE, 5, 8)
    assert step.verdict.probability == pytest.approx(sum(step.posterior.probabilities()[4:8]))
    assert step.verdict.probability >= CERTAIN
    assert [tested.count(commit) for commit in not_built] <= [1, 1, 1]
    step, _ = search(20, lambda commit, _: commit >= 9, not_built=not_built)
    assert step.verdict is not None
    assert (step.verdict.outcome, step.verdict.first) == (SearchOutcome.CULPRIT, 9)


def test_a_search_ends_with_its_budget_and_says_what_is_left() -> None:
    step, tested = search(1_000, lambda commit, _: commit >= 700, budget=6)
    assert step.verdict is not None
    assert (step.verdict.outcome, len(tested)) == (SearchOutcome.BUDGET, 6)
    assert step.verdict.first <= 700 <= step.verdict.last
    left = step.posterior.probabilities()[step.verdict.first - 1 : step.verdict.last]
    assert step.verdict.probability == pytest.approx(sum(left))
    assert step.verdict.probability >= CERTAIN
    assert sum(step.posterior.probabilities()) + step.posterior.environment + step.posterior.not_repeated == (
        pytest.approx(1)
    )


def test_docs_and_reverted_commits_are_unlikely_but_evidence_decides() -> None:
    traits = [CommitTraits(), CommitTraits(only_docs=True), CommitTraits(reverts=0), CommitTraits()]
    prior = prior_of(traits)
    assert prior[2] == prior[3] > 40 * prior[0] == pytest.approx(40 * prior[1])
    step, _ = search(4, lambda commit, _: commit >= 2, prior=prior)
    assert step.verdict is not None
    assert (step.verdict.outcome, step.verdict.first) == (SearchOutcome.CULPRIT, 2)


def test_idle_devices_ask_different_commits_and_answers_on_their_way_are_not_asked_again() -> None:
    ends = [run_of(commit, failed=commit > 0, series=series) for series in (PHONE, BOARD) for commit in (64, 0, 64, 0)]
    searched_range = of_range(64, PHONE, BOARD)
    step = search_step(searched_range, ends, idle=[PHONE, BOARD, PHONE], budget=BUDGET)
    commits = [question.commit for question in step.questions]
    assert len(set(commits)) == 3
    assert min(commits) < 32 < max(commits)
    later = search_step(searched_range, ends, idle=[BOARD], waiting=[Question(commits[0], PHONE)], budget=BUDGET)
    assert commits[0] not in {question.commit for question in later.questions}
    assert search_step(searched_range, ends, idle=[], waiting=step.questions, budget=0).verdict is None


def test_a_broken_device_does_not_hide_what_another_shows() -> None:
    runs = [run_of(commit, failed=True, series=BOARD) for commit in (8, 0, 4, 2)]
    for _ in range(4):
        runs += [run_of(commit, failed=commit >= 5) for commit in (8, 0, 4, 5)]
    posterior = Posterior([1 / 8] * 8, {PHONE: HISTORY, BOARD: HISTORY}, runs)
    assert posterior.probabilities()[4] > 0.9


def test_the_order_of_late_results_does_not_change_the_posterior() -> None:
    runs = [run_of(commit, failed=commit >= 5) for commit in (8, 0, 4, 5, 6, 4)]
    first, second = (Posterior([1 / 8] * 8, {PHONE: HISTORY}, order) for order in (runs, runs[::-1]))
    assert first.probabilities() == pytest.approx(second.probabilities())


def test_rare_failures_are_repeated_within_a_job() -> None:
    steady = Posterior([0.5, 0.5], {PHONE: HISTORY}, [run_of(2, failed=True)] * 5)
    rare = Posterior([0.5, 0.5], {PHONE: HISTORY}, [SearchRun(2, PHONE, FailureCounts(2, 38))])
    assert repeats_of(steady, [PHONE]) <= 3
    assert repeats_of(rare, [PHONE]) == MOST_REPEATS
