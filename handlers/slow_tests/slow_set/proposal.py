"""Join what was measured of tests with what their files say: which may be marked, and which only by hand. Pure."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass

from bot.results.store.lists.function_costs import FunctionCost, FunctionCosts, FunctionName
from bot.results.store.lists.slow_tests import CUT_OFFS, CutOff
from handlers.slow_tests.slow_set import texts
from handlers.slow_tests.slow_set.decide import LEAST_SECONDS, SlowCandidate, SlowSet, choose_slow_set
from handlers.slow_tests.slow_set.source import FunctionSource

MOST_FILES = 40
"""The most files that are read: those whose tests take longest. Each costs a request to GitHub and a process."""
MOST_BY_HAND = 10

Sources = Mapping[FunctionName, FunctionSource]


@dataclass(frozen=True, slots=True)
class ByHand:
    """A test that takes long and that the bot cannot mark, and why."""

    function: FunctionName
    problem: str


@dataclass(frozen=True, slots=True)
class SlowSetProposal:
    """What to propose; `by_hand` are the slowest tests that pull requests run and the bot cannot mark."""

    chosen: SlowSet
    marked: tuple[FunctionName, ...]
    unmarked: tuple[FunctionName, ...]
    by_hand: tuple[ByHand, ...]
    cut_offs: tuple[CutOff, ...]


def files_to_read(measured: FunctionCosts, paths: Collection[str]) -> dict[str, set[str]]:
    """Return the functions to look for by file, of the files whose tests take longest; `paths` are those that exist.

    A test that pull requests run is of interest if it takes long. One that they skip may be marked as slow.
    """
    seconds, names = dict[str, float](), dict[str, set[str]]()
    for function, cost in measured.costs.items():
        is_skipped = cost.pull_seconds < cost.seconds
        if function.name and function.path in paths and (is_skipped or cost.pull_seconds >= LEAST_SECONDS):
            seconds[function.path] = seconds.get(function.path, 0.0) + cost.seconds
            names.setdefault(function.path, set()).add(function.name)
    longest = sorted(seconds, key=lambda path: (-seconds[path], path))[:MOST_FILES]
    return {path: names[path] for path in longest}


def propose(measured: FunctionCosts, sources: Sources, budget: float) -> SlowSetProposal:
    """Choose the slow tests among those whose marks can be changed; `budget` is in seconds."""
    candidates, by_hand = list[SlowCandidate](), list[ByHand]()
    function_of, fixed_seconds = dict[str, FunctionName](), 0.0
    for function, cost in measured.costs.items():
        source = sources.get(function)
        if source is not None and not source.problem and (source.is_slow or cost.pull_seconds >= LEAST_SECONDS):
            test = str(function)
            function_of[test] = function
            seconds = cost.seconds if source.is_slow else cost.pull_seconds
            candidates.append(SlowCandidate(test, seconds, _misses(cost, is_slow=source.is_slow), source.is_slow))
            continue
        if source is None or not source.is_slow:
            fixed_seconds += cost.pull_seconds
            if cost.pull_seconds >= LEAST_SECONDS:
                problem = source.problem if source is not None else _problem(function)
                by_hand.append(ByHand(function, problem))
    chosen = choose_slow_set(candidates, fixed_seconds, budget)
    by_hand.sort(key=lambda item: (-measured.costs[item.function].pull_seconds, str(item.function)))
    return SlowSetProposal(
        chosen,
        tuple(function_of[candidate.test] for candidate in chosen.marked),
        tuple(function_of[candidate.test] for candidate in chosen.unmarked),
        tuple(by_hand[:MOST_BY_HAND]) if chosen.seconds_before > budget else (),
        tuple(_cut_off(measured, seconds) for seconds in CUT_OFFS),
    )


def _misses(cost: FunctionCost, *, is_slow: bool) -> int:
    """Return the failures that are found a day later while the test is slow.

    Pull requests do not run a slow test, so what it would have caught there broke the nightly branch.
    """
    return len(cost.caught) + (cost.breaks if is_slow else 0)


def _problem(function: FunctionName) -> str:
    return texts.NOT_FOUND if function.name else texts.NOT_PYTHON


def _cut_off(measured: FunctionCosts, seconds: int) -> CutOff:
    above = [cost.pull_seconds for cost in measured.costs.values() if cost.pull_seconds > seconds]
    return CutOff(seconds, len(above), sum(above))
