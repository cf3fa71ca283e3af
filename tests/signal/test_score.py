"""The score counts what is right, wrong and missing, like somebody who compares the reports with the truth."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pytest
from nightjar_formats.model import Counts

from bot.results.compare.diff import Comparison
from bot.results.report.findings import ComparedSuite
from tests.signal.lab import SimulatedLab, SimulatedRun, SimulatedTest, TruthClass
from tests.signal.replay import Observed
from tests.signal.score import RECOVERY, Score, score_of

NOTHING = ComparedSuite(Comparison(Counts(), has_baseline=False))


def a_lab(letters: str, of_class: TruthClass, *episodes: tuple[int, int]) -> SimulatedLab:
    """Return a lab with one test."""
    test = SimulatedTest(of_class, list(letters), ["a"] * len(letters), episodes=list(episodes))
    runs = [SimulatedRun(number, number, number, {"a": letter}, number) for number, letter in enumerate(letters)]
    return SimulatedLab(0, runs, [test], [])


def scored(lab: SimulatedLab, reports: Mapping[int, str], order: Sequence[int] = ()) -> Score:
    """Return the score if the test was reported as begun (`+`) and ended (`-`) with some arrivals."""
    marks = {"+": (frozenset("a"), frozenset[str]()), "-": (frozenset[str](), frozenset("a"))}
    silent = (frozenset[str](), frozenset[str]())
    observed = []
    for arrival, number in enumerate(order or range(len(lab.runs))):
        began, ended = marks.get(reports.get(arrival, ""), silent)
        observed.append(Observed(lab.runs[number], NOTHING, began, ended, messages=1, rechecked=1, requests=0))
    return score_of(lab, observed)


@pytest.mark.parametrize(
    ("letters", "reports", "right_wrong_missing"),
    [
        pytest.param("PPFFF", {3: "+"}, (1, 0, 0), id="right"),
        pytest.param("PPFFF", {}, (0, 0, 1), id="missing"),
        pytest.param("PPFFF", {1: "+"}, (0, 1, 1), id="before it began"),
        pytest.param("PPFFF", {3: "+", 4: "+"}, (1, 1, 0), id="twice"),
        pytest.param("PPFFFP", {5: "+"}, (0, 1, 1), id="after it ended"),
        pytest.param("PPF", {}, (0, 0, 0), id="too early to know"),
    ],
)
def test_a_lasting_failure_should_be_reported_once_while_it_lasts(
    letters: str, reports: Mapping[int, str], right_wrong_missing: tuple[int, int, int]
) -> None:
    first, last = letters.index("F"), letters.rindex("F")
    count = scored(a_lab(letters, TruthClass.REGRESSION, (first, last)), reports).failures[TruthClass.REGRESSION]
    assert (count.right, count.wrong, count.missing) == right_wrong_missing


def test_the_delay_of_a_report_in_runs_is_counted() -> None:
    count = scored(a_lab("PPFFFF", TruthClass.REGRESSION, (2, 5)), {5: "+"}).failures[TruthClass.REGRESSION]
    assert dict(count.late) == {2: 1}


def test_a_late_arrival_could_not_be_reported_earlier() -> None:
    lab = a_lab("PPFFF", TruthClass.REGRESSION, (2, 4))
    count = scored(lab, {4: "+"}, order=[0, 1, 4, 2, 3]).failures[TruthClass.REGRESSION]
    assert (count.right, dict(count.late)) == (1, {1: 1})


def test_a_report_of_a_failure_that_does_not_last_is_wrong() -> None:
    count = scored(a_lab("PFPFP", TruthClass.SINGLE), {1: "+"}).failures[TruthClass.SINGLE]
    assert (count.wrong, count.precision, count.recall) == (1, 0, None)


@pytest.mark.parametrize(
    ("reports", "right_wrong_missing"),
    [({3: "+", 5: "-"}, (1, 0, 0)), ({3: "+", 4: "-"}, (0, 1, 0)), ({3: "+"}, (0, 0, 1))],
)
def test_the_end_of_a_failure_should_be_reported(
    reports: Mapping[int, str], right_wrong_missing: tuple[int, int, int]
) -> None:
    count = scored(a_lab("PPFFFP", TruthClass.REGRESSION, (2, 4)), reports).others[RECOVERY]
    assert (count.right, count.wrong, count.missing) == right_wrong_missing
