"""Break the pure modules one small change at a time and count the changes that no test detects: `make mutants`.

Without arguments, each change of all pure modules, which takes days; or of the named ones; or with
`--sample 150 --seed 1` a random sample of them. Fails if less than 90 % of the changes are detected.
"""

from __future__ import annotations

import argparse
import sys
from math import sqrt
from pathlib import Path
from random import Random

import pytest

from scripts.forked_tests import ARGUMENTS
from scripts.imports import ROOT
from scripts.pure_modules import conversation_tests, pure_modules, recorded_tests
from scripts.tried_mutants import MutantTrials, all_changes

LEAST = 0.90
"""The share of mutants that tests must detect. Equivalent mutants, listed in docs/mutants.md, count as survivors."""
QUANTILE = 1.96
"""Of the normal distribution, for an interval of 95 %."""


def main() -> int:
    """Print the score and the survivors; return 1 if the whole score is too low."""
    parser = argparse.ArgumentParser(description="Count the small changes to pure modules that no test detects.")
    parser.add_argument("modules", nargs="*", help="paths of pure modules; all of them by default")
    parser.add_argument("--sample", type=int, help="try only this many random changes")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--calls", type=Path, default=ROOT / "build" / "calls.jsonl", help="which tests call what")
    arguments = parser.parse_args()
    changes = all_changes(arguments.modules or pure_modules())
    sys.stdout.write(f"{len(changes)} changes\n")
    if not changes:
        return 0
    if arguments.sample:
        changes = Random(arguments.seed).sample(changes, arguments.sample)  # noqa: S311 - not for secrets
    trials = MutantTrials(pure_modules(), changes, arguments.calls)
    if code := pytest.main([*ARGUMENTS, *recorded_tests(), *conversation_tests()], plugins=[trials]):
        return code
    detected = trials.detected.total()
    share = detected / trials.total
    lower, upper = interval_of(detected, trials.total)
    for stage, count in trials.detected.items():
        sys.stdout.write(f"{count} by {stage}\n")
    sys.stdout.write(f"{detected} of {trials.total} changes were detected: {share:.1%}; ")
    sys.stdout.write(f"95 % interval: {lower:.1%} to {upper:.1%}; at least {LEAST:.0%}\n")
    return 0 if share >= LEAST else 1


def interval_of(successes: int, total: int) -> tuple[float, float]:
    """Return Wilson's interval of 95 % of a share: https://doi.org/10.1080/01621459.1927.10502953."""
    share, square = successes / total, QUANTILE**2
    center = share + square / (2 * total)
    half = QUANTILE * sqrt(share * (1 - share) / total + square / (4 * total**2))
    return (center - half) / (1 + square / total), (center + half) / (1 + square / total)


if __name__ == "__main__":
    sys.exit(main())
