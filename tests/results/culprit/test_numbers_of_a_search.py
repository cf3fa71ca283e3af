"""The numbers of one search: another formula, or another constant, is a decision (docs/decisions/noisy-search.md)."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from bot.results.culprit.posterior import Posterior, SearchRun, log_sum
from bot.results.culprit.questions import QuestionPlanner, repeats_of
from bot.results.culprit.rates import FailureCounts, level_fits, log_marginal, step_fit

PRIOR = [0.05, 0.2, 0.1, 0.15, 0.05, 0.25, 0.1, 0.1]
HISTORIES = {"phone": FailureCounts(2, 150), "board": FailureCounts(0, 12)}
SERIES_OF = {"example-lab/phone": ["phone"], "example-lab/board": ["board"]}
RUNS = [
    SearchRun(0, "phone", FailureCounts(0, 3)),
    SearchRun(8, "phone", FailureCounts(2, 0)),
    SearchRun(4, "phone", FailureCounts(1, 1)),
    SearchRun(4, "phone", FailureCounts(0, 1)),
    SearchRun(5, "board", FailureCounts(2, 1)),
    SearchRun(2, "board", FailureCounts()),
]

FIT = (-7.9261960261, 0.020098429394, 0.776311311549)
LEVELS = (-7.3224546206, 0.421888815383, -11.9541566375, 0.0385765900441)
MARGINAL = -6.59054521863
AFTER_HISTORY = -11.8281578909
LOG_SUM = -0.686738312482
PROBABILITIES = [
    0.0818483777507,
    0.327393511003,
    0.163696755501,
    0.245545133252,
    0.101902183826,
    0.0260650542867,
    0.0104260217147,
    0.0104260217147,
]
OTHERS = (0.0326877742778, 9.16667362455e-06)
CHANCES = [0.646791471486, 0.0210502543485, 0.111056781756]
LEVEL_RATES = (0.421888815383, 0.0385765900441, 0.71077270381, 0.133312492523)
REPEATS = [3, 2]
QUESTIONS: dict[tuple[int, ...], list[tuple[int, str, float]]] = {
    (): [
        (0, "example-lab/phone", 0.41995459478),
        (0, "example-lab/board", 0.530686669456),
        (2, "example-lab/phone", 0.381267143382),
        (1, "example-lab/board", 0.385171916019),
    ],
    (6,): [
        (0, "example-lab/phone", 0.41995459478),
        (0, "example-lab/board", 0.530686669456),
        (2, "example-lab/phone", 0.381267143382),
        (1, "example-lab/board", 0.385171916019),
    ],
    (1, 2, 3): [
        (0, "example-lab/phone", 0.41995459478),
        (0, "example-lab/board", 0.530686669456),
        (0, "example-lab/phone", 0.191087171601),
        (0, "example-lab/board", 0.264747265031),
    ],
}


def near(values: float | Sequence[float]) -> object:
    return pytest.approx(values, rel=1e-8, abs=1e-12)


def test_rates_before_and_after_a_change_are_integrated_out() -> None:
    fit = step_fit(FailureCounts(2, 150), FailureCounts(1, 4), FailureCounts(3, 1))
    assert (fit.log_likelihood, fit.low_rate, fit.high_rate) == near(FIT)
    assert sum(level_fits(FailureCounts(2, 150), FailureCounts(3, 5)), ()) == near(LEVELS)
    assert log_marginal(FailureCounts(3, 5)) == near(MARGINAL)
    assert log_marginal(FailureCounts(3, 5), FailureCounts(2, 150)) == near(AFTER_HISTORY)
    assert log_sum([-1.0, -2.0]) == near(LOG_SUM)


def test_the_probabilities_of_all_hypotheses() -> None:
    posterior = Posterior(PRIOR, HISTORIES, RUNS)
    assert [(segment.first, segment.last) for segment in posterior.segments] == [(0, 4), (4, 5), (5, 8)]
    assert posterior.probabilities() == near(PROBABILITIES)
    assert (posterior.environment, posterior.not_repeated) == near(OTHERS)
    assert [posterior.chance_of_culprit(place) for place in range(3)] == near(CHANCES)
    assert sum(posterior.level_rates.values(), ()) == near(LEVEL_RATES)
    assert posterior.runs_at(4) == FailureCounts(1, 2)
    assert [repeats_of(posterior, [series]) for series in HISTORIES] == REPEATS


def test_the_commits_that_are_asked_for_next_and_what_their_answers_say() -> None:
    for unknown, questions in QUESTIONS.items():
        planner = QuestionPlanner(Posterior(PRIOR, HISTORIES, RUNS), SERIES_OF, unknown)
        asked = [planner.ask(target) for target in (*SERIES_OF, *SERIES_OF)]
        assert [(each.commit, each.target) for each in asked if each] == [
            (commit, target) for commit, target, _ in questions
        ]
        assert [each.information for each in asked if each] == near([bits for _, _, bits in questions])
