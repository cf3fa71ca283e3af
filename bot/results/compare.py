"""What changed between two runs, and whether a run says anything about the code at all: no I/O."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from bot.results.model import Seen


@dataclass(frozen=True, slots=True)
class Counts:
    """How many tests ended in which way; `flaky` are counted among the others too."""

    passed: int = 0
    failed: int = 0
    errored: int = 0
    skipped: int = 0
    xfailed: int = 0
    xpassed: int = 0
    flaky: int = 0


@dataclass(frozen=True, slots=True)
class Comparison:
    """One suite's run beside its baseline: sorted test IDs by what happened to them.

    `new` are all tests that the baseline does not have, those that fail (which are new failures too) included. `gone`
    are all that only the baseline has, but for `precluded`: their file could not be collected this time, so nobody
    knows. `renamed` are pairs of (before, now). Without a baseline (`has_baseline` false) only `counts`, `failing`
    and `flaky` say anything.
    """

    counts: Counts
    has_baseline: bool
    failing: tuple[str, ...] = ()
    new_failures: tuple[str, ...] = ()
    still_failing: tuple[str, ...] = ()
    fixed: tuple[str, ...] = ()
    new: tuple[str, ...] = ()
    gone: tuple[str, ...] = ()
    precluded: tuple[str, ...] = ()
    newly_skipped: tuple[str, ...] = ()
    flaky: tuple[str, ...] = ()
    renamed: tuple[tuple[str, str], ...] = ()
    infra: str = ""
    """Why this run says nothing about the code, in words for people; then nothing is told as new, gone or fixed."""
    mass: bool = False
    """So much failed at once that one cause is likelier than many: nothing of it is confirmed."""


def compare(now: Mapping[str, Seen], baseline: Mapping[str, Seen] | None, *, exit_status: int | None) -> Comparison:
    """Compare one suite's merged results with those of its baseline."""
    raise AssertionError
