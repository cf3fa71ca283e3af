"""Create labs from a seed: their runs, the faults in them, and the truth about each test."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import count
from random import Random

from tests.signal.lab import (
    ABSENT,
    FAILED,
    PASSED,
    SKIPPED,
    LabFault,
    RenameEvent,
    SimulatedLab,
    SimulatedRun,
    SimulatedTest,
    TruthClass,
)
from tests.signal.names import DECOYS, RENAMINGS, kernel_names, pytest_names

DAY, HOUR = 86_400.0, 3_600.0
EPOCH = 1_780_000_000.0
GAPS = ((1, 1), (2, 20), (49, 60), (100, 400), (1_000, 2_000), (1, 2_000))
"""Commits from one tested commit to the next: each lab has one of these ranges."""
USABLE = (12, 15)
"""Runs of a lab that have usable results; the others come on top."""
FIRST_EPISODE, LEAST_LEFT = 3, 4
"""Usable runs before the first failure, and from the beginning of a lasting one to the end."""
WITHOUT_RUN, WITH_FAULT, INTERRUPTED, INCOMPLETE = 0.06, 0.06, 0.03, 0.03
"""The shares of nightly runs that do not happen, that say nothing, that are killed halfway, and that lack a shard."""
RATES = (0.03, 0.1, 0.2, 0.3)
"""How often flaky tests fail."""
MASS = (22, 34)


@dataclass(frozen=True, slots=True)
class _Slot:
    """One nightly run: `usable` is the number of the usable run, or of the next one if this one is not usable."""

    position: int
    committed_at: float
    received_at: float
    usable: int
    fault: LabFault | None = None
    interrupted: bool = False
    incomplete: bool = False

    @property
    def is_usable(self) -> bool:
        return self.fault is None and not self.interrupted and not self.incomplete


def lab_of(seed: int) -> SimulatedLab:
    """Return the lab of a seed: always the same one for the same seed."""
    rng = Random(f"lab {seed}")
    slots = _slots(rng)
    usable = sum(slot.is_usable for slot in slots)
    stories = _Stories(rng, usable)
    tests = stories.ordinary()
    renames = []
    for name, renaming in rng.sample(sorted((RENAMINGS | DECOYS).items()), 2):
        made = renaming(rng, rng.randint(12, 30))
        start = _boundary(rng, slots, usable)
        tests += stories.renamed(made, start) if name in RENAMINGS else stories.replaced(made, start)
        all_names = frozenset(name for pair in made for name in pair)
        renames.append(RenameEvent(name, dict(made) if name in RENAMINGS else {}, all_names))
    runs = [_run(rng, slot, tests) for slot in slots]
    return SimulatedLab(seed, runs, tests, renames)


def _slots(rng: Random) -> list[_Slot]:
    gap = rng.choice(GAPS)
    lateness = rng.choices(("none", "some", "all"), (6, 2, 2))[0]
    position, usable = 100, 0
    slots, usable_runs = list[_Slot](), rng.randint(*USABLE)
    for number in count():
        if usable == usable_runs:
            return slots
        position += rng.randint(*gap)
        chance = rng.random()
        if chance < WITHOUT_RUN:
            continue
        fault = None
        if len(slots) >= FIRST_EPISODE and chance < WITHOUT_RUN + WITH_FAULT:
            fault = rng.choice(list(LabFault))
        interrupted = usable > 0 and chance > 1 - INTERRUPTED
        incomplete = usable > 0 and not interrupted and chance > 1 - INTERRUPTED - INCOMPLETE
        committed_at = EPOCH + number * DAY
        received_at = committed_at + 6 * HOUR + _late(rng, lateness)
        slots.append(_Slot(position, committed_at, received_at, usable, fault, interrupted, incomplete))
        usable += slots[-1].is_usable
    raise AssertionError


def _late(rng: Random, lateness: str) -> float:
    if lateness == "all":
        return rng.uniform(8, 9) * DAY
    return rng.uniform(1, 5) * DAY if lateness == "some" and rng.random() < 0.2 else 0.0


def _boundary(rng: Random, slots: Sequence[_Slot], usable: int) -> int:
    """Return the usable run from which on tests have other names; the previous run was complete."""
    unfit = {slot.usable for slot in slots if slot.interrupted}
    return rng.choice([number for number in range(FIRST_EPISODE, usable - LEAST_LEFT) if number not in unfit])


class _Stories:
    """Creates tests of every class, for a lab with so many usable runs."""

    def __init__(self, rng: Random, usable: int) -> None:
        self._rng = rng
        self._count = usable
        names = rng.choice((pytest_names, kernel_names))(rng, 260)
        rng.shuffle(names)
        self._names = names

    def ordinary(self) -> list[SimulatedTest]:
        """Return the tests with one name."""
        one_each = (
            TruthClass.TWO_RUNS,
            TruthClass.AGAIN,
            TruthClass.SKIPPED_FIRST,
            TruthClass.ABSENT_FIRST,
            TruthClass.SKIPPED_INSIDE,
            TruthClass.FLAKY_PROVED,
            TruthClass.FLAKY_REGRESSION,
            TruthClass.BORN_FAILING,
            TruthClass.ALWAYS_FAILED,
        )
        tests = [self._steady() for _ in range(50)]
        tests += [self._lasting(TruthClass.REGRESSION, self._begin()) for _ in range(3)]
        tests += [self._single() for _ in range(6)]
        tests += [self._flaky(TruthClass.FLAKY) for _ in range(2)]
        tests += [self._of_class(truth) for truth in one_each]
        if self._rng.random() < 0.4:
            tests += self._mass()
        if self._rng.random() < 0.4:
            begin = self._begin()
            tests += [self._broken(TruthClass.ONE_RUN_MASS, [(begin, begin)]) for _ in range(self._mass_size())]
        return tests

    def renamed(self, pairs: Sequence[tuple[str, str]], start: int) -> list[SimulatedTest]:
        """Return tests that have other names from a usable run on; one of them fails meanwhile."""
        tests = [self._steady() for _ in pairs]
        begin = self._rng.randint(min(2, start - 2), start - 2) if start > 2 else 1
        tests[0] = self._lasting(TruthClass.RENAMED, begin, end=self._rng.choice((self._count - 1, start + 2)))
        for test, (old, new) in zip(tests, pairs, strict=True):
            test.names = [old] * start + [new] * (self._count - start)
        return tests

    def replaced(self, pairs: Sequence[tuple[str, str]], start: int) -> list[SimulatedTest]:
        """Return tests that end before a usable run, and others that begin with it."""
        tests = []
        for old, new in pairs:
            tests += [self._steady(old), self._steady(new)]
            tests[-2].letters[start:] = ABSENT * (self._count - start)
            tests[-1].letters[:start] = ABSENT * start
        return tests

    def _of_class(self, truth: TruthClass) -> SimulatedTest:
        begin, end = self._begin(), self._count - 1
        match truth:
            case TruthClass.TWO_RUNS:
                return self._broken(truth, [(begin, begin + 1)])
            case TruthClass.AGAIN:
                first = self._rng.randint(FIRST_EPISODE, max(FIRST_EPISODE, self._count - 10))
                return self._broken(truth, [(first, first + 2), (first + 6, first + 8)])
            case TruthClass.SKIPPED_FIRST | TruthClass.ABSENT_FIRST:
                test = self._lasting(truth, begin)
                test.letters[begin - 1] = SKIPPED if truth is TruthClass.SKIPPED_FIRST else ABSENT
                return test
            case TruthClass.SKIPPED_INSIDE:
                test = self._lasting(truth, begin - 1)
                test.letters[begin] = SKIPPED
                return test
            case TruthClass.BORN_FAILING:
                test = self._broken(truth, [(begin, end)])
                test.letters[:begin] = ABSENT * begin
                return test
            case TruthClass.ALWAYS_FAILED:
                return self._broken(truth, [(0, self._rng.choice((end, max(begin, 3))))])
            case _:
                return self._flaky(truth)

    def _steady(self, name: str = "") -> SimulatedTest:
        letter = SKIPPED if self._rng.random() < 0.05 else PASSED
        return SimulatedTest(TruthClass.STEADY, [letter] * self._count, [name or self._names.pop()] * self._count)

    def _broken(self, of_class: TruthClass, episodes: Sequence[tuple[int, int]]) -> SimulatedTest:
        letters = [PASSED] * self._count
        for first, last in episodes:
            letters[first : last + 1] = FAILED * (last + 1 - first)
        test = SimulatedTest(of_class, letters, [self._names.pop()] * self._count)
        if of_class is not TruthClass.ONE_RUN_MASS:
            test.episodes = list(episodes)
        return test

    def _lasting(self, of_class: TruthClass, begin: int, end: int | None = None) -> SimulatedTest:
        last = self._count - 1
        if end is None:
            end = self._rng.choice((last, self._rng.randint(begin + LEAST_LEFT - 1, last)))
        return self._broken(of_class, [(begin, min(end, last))])

    def _single(self) -> SimulatedTest:
        test = SimulatedTest(TruthClass.SINGLE, [PASSED] * self._count, [self._names.pop()] * self._count)
        position = self._rng.randint(1, 5)
        while position < self._count:
            test.letters[position] = FAILED
            position += self._rng.randint(3, 15)
        return test

    def _flaky(self, of_class: TruthClass) -> SimulatedTest:
        """Return a test that sometimes fails; with reruns it only fails if those fail as well."""
        test = SimulatedTest(of_class, [PASSED] * self._count, [self._names.pop()] * self._count)
        rate, reruns = self._rng.choice(RATES), of_class is TruthClass.FLAKY_PROVED
        for number in range(1, self._count):
            if self._rng.random() < rate:
                if reruns and self._rng.random() >= rate:
                    test.proved.add(number)
                else:
                    test.letters[number] = FAILED
        if of_class is TruthClass.FLAKY_REGRESSION:
            begin = self._begin()
            test.letters[begin - 1] = PASSED
            test.letters[begin:] = FAILED * (self._count - begin)
            test.episodes = [(begin, self._count - 1)]
        return test

    def _mass(self) -> list[SimulatedTest]:
        """Return tests that fail together and stay so, and two that began to fail one run before and stay so longer."""
        begin = self._begin()
        end = self._rng.randint(begin + 2, self._count - 1)
        tests = [self._broken(TruthClass.MASS, [(begin, end)]) for _ in range(self._mass_size())]
        return tests + [self._broken(TruthClass.BEFORE_MASS, [(begin - 1, self._count - 1)]) for _ in range(2)]

    def _mass_size(self) -> int:
        return self._rng.randint(*MASS)

    def _begin(self) -> int:
        return self._rng.randint(FIRST_EPISODE, self._count - LEAST_LEFT)


def _run(rng: Random, slot: _Slot, tests: Sequence[SimulatedTest]) -> SimulatedRun:
    number = slot.usable
    letters = {test.names[number]: test.letters[number] for test in tests if test.letters[number] != ABSENT}
    flaky = frozenset(test.names[number] for test in tests if number in test.proved)
    if slot.fault is not None:
        letters, flaky = _faulty(slot.fault, list(letters)), frozenset()
    elif slot.interrupted or slot.incomplete:
        ran = [test for test in tests if rng.random() < 0.5 and len({*test.letters[number - 1 : number + 1]}) == 1]
        names = {test.names[number] for test in ran}
        letters, flaky = {name: letter for name, letter in letters.items() if name in names}, frozenset()
    usable = number if slot.is_usable else None
    return SimulatedRun(
        slot.position,
        slot.committed_at,
        slot.received_at,
        letters,
        usable,
        slot.fault,
        slot.interrupted,
        slot.incomplete,
        flaky,
    )


def _faulty(fault: LabFault, names: Sequence[str]) -> dict[str, str]:
    match fault:
        case LabFault.NOTHING_RAN:
            return {}
        case LabFault.UNREADABLE:
            return dict.fromkeys(sorted({name.partition("::")[0] for name in names}), FAILED)
        case LabFault.ALL_SKIPPED:
            return dict.fromkeys(names, SKIPPED)
        case LabFault.ONE_CAUSE:
            return dict.fromkeys(names, FAILED)
        case LabFault.RUNNER:
            return {"pytest::internal": FAILED}
