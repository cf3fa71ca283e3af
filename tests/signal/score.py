"""Compare the bot's reports with the truth: how much of them is right, and how much of the truth they contain."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TypeVar

from tests.signal.lab import (
    ABSENT,
    FAILED,
    PASSED,
    LabFault,
    SimulatedLab,
    SimulatedRun,
    SimulatedTest,
    TruthClass,
)
from tests.signal.replay import Observed

K = TypeVar("K")

GAPS = ((1, 49), (50, 999), (1_000, 1_000_000))
"""Commits to the baseline, by which runs are counted."""
RECOVERY = "recovery or removal"
PROVED = "proved flaky"


@dataclass(slots=True)
class Count:
    """What was right, wrong and missing in one class.

    `cases` is how many there are. `late` counts the right ones by how many runs later than possible they came.
    """

    cases: int = 0
    right: int = 0
    wrong: int = 0
    missing: int = 0
    late: Counter[int] = field(default_factory=Counter)

    def add(self, added: Count) -> None:
        """Add the counts of another lab."""
        self.cases += added.cases
        self.right += added.right
        self.wrong += added.wrong
        self.missing += added.missing
        self.late += added.late

    @property
    def precision(self) -> float | None:
        """Return the share of reports that are right; None without reports."""
        return self.right / (self.right + self.wrong) if self.right + self.wrong else None

    @property
    def recall(self) -> float | None:
        """Return the share of the truth that was reported; None if there was nothing to report."""
        return self.right / (self.right + self.missing) if self.right + self.missing else None


@dataclass
class Score:
    """Counts by class: of failures, of renames, of lab faults, of baselines by distance, and of everything else."""

    failures: dict[TruthClass, Count] = field(default_factory=lambda: defaultdict(Count))
    renames: dict[str, Count] = field(default_factory=lambda: defaultdict(Count))
    faults: dict[LabFault, Count] = field(default_factory=lambda: defaultdict(Count))
    baselines: dict[tuple[int, int], Count] = field(default_factory=lambda: defaultdict(Count))
    others: dict[str, Count] = field(default_factory=lambda: defaultdict(Count))
    messages: int = 0
    labs: int = 0
    runs: int = 0
    requests: int = 0
    rechecked: int = 0

    def add(self, added: Score) -> None:
        """Add the score of another lab."""
        _add(self.failures, added.failures)
        _add(self.renames, added.renames)
        _add(self.faults, added.faults)
        _add(self.baselines, added.baselines)
        _add(self.others, added.others)
        self.messages += added.messages
        self.labs += added.labs
        self.runs += added.runs
        self.requests += added.requests
        self.rechecked += added.rechecked

    @property
    def alarms(self) -> Count:
        """Return the combined count of all reports of failures."""
        total = Count()
        for count in self.failures.values():
            total.add(count)
        return total


def _add(total: dict[K, Count], added: dict[K, Count]) -> None:
    for key, count in added.items():
        total[key].add(count)


def score_of(lab: SimulatedLab, observed: Sequence[Observed]) -> Score:
    """Return the score of one lab."""
    score = Score(labs=1, runs=len(observed), messages=sum(observation.messages for observation in observed))
    score.requests = sum(observation.requests for observation in observed)
    score.rechecked = sum(observation.rechecked for observation in observed)
    _failures(lab, observed, score)
    _renames(lab, observed, score)
    _faults(observed, score)
    _baselines(observed, score)
    _proved(lab, observed, score)
    return score


@dataclass
class _Episode:
    """A lasting failure, and the numbers of the arrivals with which it could be and was reported."""

    first: int
    last: int
    possible: int | None = None
    reported: int | None = None


def _failures(lab: SimulatedLab, observed: Sequence[Observed], score: Score) -> None:
    began, ended = defaultdict[int, set[int]](set), defaultdict[int, set[int]](set)
    number_of = lab.tests_by_name()
    for arrival, observation in enumerate(observed):
        began_now, ended_now = ({number_of[name] for name in names} for names in (observation.began, observation.ended))
        for test in began_now - ended_now:
            began[test].add(arrival)
        for test in ended_now - began_now:
            ended[test].add(arrival)
    order = [observation.run for observation in observed]
    for number, simulated in enumerate(lab.tests):
        _walk(simulated, order, began[number], ended[number], score)


def _walk(test: SimulatedTest, order: Sequence[SimulatedRun], began: set[int], ended: set[int], score: Score) -> None:
    """Walk through the arrivals like somebody who knows the truth about a test."""
    count = score.failures[test.of_class]
    count.cases += len(test.episodes) or 1
    episodes = [_Episode(*episode) for episode in test.episodes]
    arrived = list[SimulatedRun]()
    for arrival, run in enumerate(order):
        arrived = sorted([*arrived, run], key=lambda arrived_run: arrived_run.position)
        newest = max((arrived_run.usable for arrived_run in arrived if arrived_run.usable is not None), default=-1)
        for episode in episodes:
            if episode.possible is None and newest <= episode.last and _is_seen_twice(test, arrived, episode):
                episode.possible = arrival
        if arrival in began:
            _begin(episodes, arrived, newest, arrival, count)
        if arrival in ended:
            right = newest >= 0 and test.letters[newest] in (PASSED, ABSENT)
            score.others[RECOVERY].right += right
            score.others[RECOVERY].wrong += not right
    for episode in episodes:
        if episode.reported is not None:
            count.late[max(0, episode.reported - (episode.possible or episode.reported))] += 1
        else:
            count.missing += episode.possible is not None
    newest = max((arrived_run.usable for arrived_run in arrived if arrived_run.usable is not None), default=-1)
    believed = max(began, default=-1) > max(ended, default=-1)
    score.others[RECOVERY].missing += believed and newest >= 0 and test.letters[newest] == PASSED


def _begin(
    episodes: Sequence[_Episode], arrived: Sequence[SimulatedRun], newest: int, arrival: int, count: Count
) -> None:
    """Count a report that a test fails: it is right once for each episode that has begun and not ended."""
    known_positions = {run.usable for run in arrived}
    for episode in episodes:
        stands = newest <= episode.last and known_positions & set(range(episode.first, episode.last + 1))
        if stands and episode.reported is None:
            episode.reported = arrival
            count.right += 1
            return
    count.wrong += 1


def _is_seen_twice(test: SimulatedTest, arrived: Sequence[SimulatedRun], episode: _Episode) -> bool:
    """Return whether the two newest known runs with usable results both saw the test fail."""
    last = [run for run in arrived if run.counts][-2:]
    inside = [run for run in last if run.usable is not None and episode.first <= run.usable <= episode.last]
    return len(inside) == 2 and all(test.letters[run.usable or 0] == FAILED for run in inside)


def _renames(lab: SimulatedLab, observed: Sequence[Observed], score: Score) -> None:
    pairs = {
        pair for observation in observed if observation.check_run for pair in observation.check_run.comparison.renamed
    }
    for event in lab.renames:
        count, true = score.renames[event.kind], set(event.pairs.items())
        found_pairs = {pair for pair in pairs if event.others & set(pair)}
        count.cases += len(true) or len(event.others) // 2
        count.right += len(found_pairs & true)
        count.wrong += len(found_pairs - true)
        count.missing += len(true - found_pairs)


def _faults(observed: Sequence[Observed], score: Score) -> None:
    for observation in observed:
        if observation.check_run is None:
            continue
        fault, is_infra = observation.run.fault, bool(observation.check_run.comparison.infra)
        if fault is not None:
            count = score.faults[fault]
            count.cases += 1
            count.right += is_infra
            count.missing += not is_infra
        elif is_infra:
            score.others["wrongly called a lab fault"].wrong += 1


def _baselines(observed: Sequence[Observed], score: Score) -> None:
    """Count the runs that were compared with the nearest known run before them."""
    for number, observation in enumerate(observed):
        earlier_runs = [earlier.run for earlier in observed[:number] if earlier.run.counts]
        earlier_runs = [run for run in earlier_runs if run.position < observation.run.position]
        if observation.check_run is None or observation.run.fault is not None or not earlier_runs:
            continue
        nearest = max(earlier_runs, key=lambda run: run.position)
        gap = next(gap for gap in GAPS if observation.run.position - nearest.position <= gap[1])
        count, baseline = score.baselines[gap], observation.check_run.baseline
        count.cases += 1
        count.right += baseline is not None and baseline.sha == nearest.sha
        count.wrong += baseline is not None and baseline.sha != nearest.sha
        count.missing += baseline is None


def _proved(lab: SimulatedLab, observed: Sequence[Observed], score: Score) -> None:
    """Count the tests that check runs call flaky, against those with both outcomes on one commit."""
    number_of = lab.tests_by_name()
    flaky = {
        number_of[test]
        for observation in observed
        if observation.check_run
        for test in observation.check_run.comparison.flaky
    }
    true = {number for number, test in enumerate(lab.tests) if test.proved}
    count = score.others[PROVED]
    count.cases += len(true)
    count.right += len(flaky & true)
    count.wrong += len(flaky - true)
    count.missing += len(true - flaky)
