"""Find the context of a failing test in earlier runs of its target and in runs of other targets. No I/O."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from nightjar_formats.model import BAD, GOOD, SeenTest, Status

from bot.results.compare.flaky import WINDOW
from bot.results.compare.lasting import Segment


@dataclass(frozen=True, slots=True)
class FailureContext:
    """Since when a test fails, how often it failed before, and where else it fails.

    It has failed since the commit `since`, which is empty if it began to fail in the current run; it last passed at
    `good`, which is empty if it never passed in the runs that were read. `older`: earlier runs exist that were not
    read. It failed in `failed` of the `runs` runs before the failure began. `also_on` are other targets, as LAB/TARGET,
    whose newest run has the failure. `passes_on_simulators` and `passes_on_device` are paired targets whose newest run
    has a pass.
    """

    since: str = ""
    good: str = ""
    older: bool = False
    failed: int = 0
    runs: int = 0
    also_on: tuple[str, ...] = ()
    passes_on_simulators: tuple[str, ...] = ()
    passes_on_device: str = ""


def failure_context(
    history: Sequence[Segment],
    shas: Sequence[str],
    *,
    older: bool = False,
    also_on: Sequence[str] = (),
    passes_on: tuple[tuple[str, ...], str] = ((), ""),
) -> FailureContext:
    """Return the context of a failing test from its segments over earlier runs, whose commits are `shas`.

    As in `lasting_failure`, the failure began at the first failed run after the last pass, and a flaky run is a pass.
    Among the runs before that, a flaky run counts as failed. `passes_on` is as `PairedTargets.passes` returns it.
    """
    since, good = _beginning(history, len(shas))
    failed, runs = _failed_and_ran(history, since)
    return FailureContext(
        since=shas[since] if since < len(shas) else "",
        good=shas[good] if good >= 0 else "",
        older=older,
        failed=failed,
        runs=runs,
        also_on=tuple(also_on),
        passes_on_simulators=passes_on[0],
        passes_on_device=passes_on[1],
    )


def shows_all(history: Sequence[Segment], runs: int) -> bool:
    """Return whether runs before the history of a failing test would say no more about it.

    That is so if it passed after the first WINDOW runs of it, so that all runs count that a context counts.
    """
    return _beginning(history, runs)[1] >= WINDOW


def _beginning(history: Sequence[Segment], runs: int) -> tuple[int, int]:
    """Return the run in which a failure began, and that of the last pass; `runs` and -1 if there is none."""
    since, end = runs, runs
    for begin, seen in reversed(history):
        if _is_good(seen):
            return since, end - 1
        if seen is not None and seen.status in BAD:
            since = begin
        end = begin
    return since, -1


def _is_good(seen: SeenTest | None) -> bool:
    return seen is not None and (seen.status in GOOD or seen.flaky)


def _failed_and_ran(history: Sequence[Segment], until: int) -> tuple[int, int]:
    """Count the runs in which the test failed or was flaky, and those in which it ran, in the WINDOW before `until`."""
    failed = runs = 0
    first, end = max(0, until - WINDOW), until
    for begin, seen in reversed(history):
        if begin >= end:
            continue
        length = end - max(begin, first)
        end = begin
        if length <= 0:
            break
        if seen is not None and (seen.status is not Status.SKIPPED or seen.flaky):
            runs += length
            failed += length if seen.status in BAD or seen.flaky else 0
    return failed, runs
