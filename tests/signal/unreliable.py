"""`python -m tests.signal.unreliable`: targets whose results are unreliable for a while, next to reliable ones.

With `--write`, update the table in docs/signal.md.
"""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from random import Random

import click
from nightjar_formats.model import TargetKey

from bot.core.docs import replace_block, table
from bot.results.compare.health import SuiteHealth
from bot.results.service import ResultsService
from bot.results.store.store import ResultsStore
from tests.signal.generate import DAY, EPOCH, HOUR
from tests.signal.lab import FAILED, PASSED, UNRELIABLE, SimulatedLab, SimulatedRun, SimulatedTest, TruthClass
from tests.signal.measure import IN_MEMORY
from tests.signal.names import pytest_names
from tests.signal.replay import OTHER_TARGET, TARGET, Clock, Replay
from tests.signal.score import Score, score_of

PAGE = Path(__file__).parents[2] / "docs" / "signal.md"
BLOCK = "unreliable"
HEADER = ("what happens to a test", "cases", "reported", "not reported", "wrong", "wrong without the rule")
STEADY, FLIPPING = 80, 60
"""Tests that pass in every run, and tests that fail in every second of the unstable runs, by chance."""
FIRST, LAST, RUNS = 4, 13, 23
"""The first and the last unstable run, and how many there are in all."""
HELD = 8
"""The run from which on single failures are held, at the latest."""


@dataclass
class UnreliableScore:
    """The scores of unreliable targets, of the same without the rule, and of their neighbors in the repository."""

    unreliable: Score = field(default_factory=Score)
    without_rule: Score = field(default_factory=Score)
    neighbors: Score = field(default_factory=Score)


class EveryTargetReliable(ResultsService):
    """Results that are all called reliable, to compare the rule with."""

    async def unreliable(self, target: TargetKey, sha: str = "") -> Mapping[str, SuiteHealth]:
        """Return no unreliable suites."""
        del target, sha
        return {}


def unreliable_lab(seed: int) -> SimulatedLab:
    """Return a target whose tests flip back and forth in many runs, and then stop."""
    rng = Random(f"unreliable lab {seed}")
    names = pytest_names(rng, STEADY + FLIPPING + 4)
    rng.shuffle(names)
    tests = [_steady(names.pop()) for _ in range(STEADY)]
    for _ in range(FLIPPING):
        test = _steady(names.pop(), TruthClass.BACK_AND_FORTH)
        test.letters[FIRST : LAST + 1] = rng.choices((PASSED, FAILED), k=LAST + 1 - FIRST)
        tests.append(test)
    begins = [(TruthClass.BEFORE_UNRELIABLE, rng.randint(1, FIRST - 2)) for _ in range(2)]
    begins += [(TruthClass.WHILE_UNRELIABLE, rng.randint(HELD, LAST)) for _ in range(2)]
    return _lab(seed, tests + [_lasting(names.pop(), *begin) for begin in begins])


def neighbor_lab(seed: int) -> SimulatedLab:
    """Return another target of the same commits: some of its tests begin to fail, and all others pass."""
    rng = Random(f"neighbor of lab {seed}")
    names = pytest_names(rng, STEADY + 5)
    tests = [_steady(name) for name in names[:STEADY]]
    return _lab(
        seed, tests + [_lasting(name, TruthClass.REGRESSION, rng.randint(1, RUNS - 3)) for name in names[STEADY:]]
    )


def _steady(name: str, of_class: TruthClass = TruthClass.STEADY) -> SimulatedTest:
    return SimulatedTest(of_class, [PASSED] * RUNS, [name] * RUNS)


def _lasting(name: str, of_class: TruthClass, begin: int) -> SimulatedTest:
    test = _steady(name, of_class)
    test.letters[begin:] = FAILED * (RUNS - begin)
    test.episodes = [(begin, RUNS - 1)]
    return test


def _lab(seed: int, tests: list[SimulatedTest]) -> SimulatedLab:
    runs = []
    for number in range(RUNS):
        committed_at = EPOCH + number * DAY
        letters = {test.names[number]: test.letters[number] for test in tests}
        runs.append(SimulatedRun(number, committed_at, committed_at + 6 * HOUR, letters, number))
    return SimulatedLab(seed, runs, tests, [])


def measure_unreliable(seeds: Iterable[int], *, without_rule: bool = True) -> UnreliableScore:
    """Return the combined scores of the labs of some seeds."""
    measured = UnreliableScore()
    for seed in seeds:
        measured.unreliable.add(_scored(unreliable_lab(seed), neighbor_lab(seed), measured.neighbors))
        if without_rule:
            measured.without_rule.add(_scored(unreliable_lab(seed), results=EveryTargetReliable))
    return measured


def _scored(
    lab: SimulatedLab,
    neighbor: SimulatedLab | None = None,
    neighbors: Score | None = None,
    results: type[ResultsService] = ResultsService,
) -> Score:
    clock, place = Clock(), IN_MEMORY if IN_MEMORY.is_dir() else None
    with (
        tempfile.TemporaryDirectory(dir=place) as folder,
        closing(ResultsStore(f"sqlite:///{folder}/results.db", clock=clock)) as store,
    ):
        store.open()
        score = score_of(lab, asyncio.run(Replay(store, lab, clock, TARGET, results).arrivals()))
        if neighbor is not None and neighbors is not None:
            replay = Replay(store, neighbor, clock, OTHER_TARGET, results)
            neighbors.add(score_of(neighbor, asyncio.run(replay.arrivals())))
    return score


def rows(measured: UnreliableScore) -> Iterator[tuple[str, ...]]:
    """Yield the rows of the table."""
    for truth in sorted(UNRELIABLE, key=list(TruthClass).index):
        count, without = measured.unreliable.failures[truth], measured.without_rule.failures[truth]
        reported = (f"{number:,}" for number in (count.cases, count.right, count.missing, count.wrong))
        yield (truth.value, *reported, f"{without.wrong:,}")
    neighbor_count = measured.neighbors.failures[TruthClass.REGRESSION]
    numbers = (
        f"{number:,}"
        for number in (neighbor_count.cases, neighbor_count.right, neighbor_count.missing, neighbor_count.wrong)
    )
    yield ("fails and stays, on another target of the repository", *numbers, "-")


@click.command()
@click.option("--seeds", default=12, show_default=True, help="How many labs, from seed 0 on.")
@click.option("--write", is_flag=True, help="Write the table into docs/signal.md.")
def main(seeds: int, write: bool) -> None:
    """Simulate targets whose results are unreliable for a while, and print what is reported."""
    text = table(HEADER, rows(measure_unreliable(range(seeds))))
    click.echo(text)
    if write:
        PAGE.write_text(replace_block(PAGE.read_text(encoding="utf-8"), BLOCK, text), encoding="utf-8")


if __name__ == "__main__":
    main()
