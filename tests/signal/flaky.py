"""`python -m tests.signal.flaky`: how often the rule for flaky tests is right, on histories with known rates.

With `--write`, update the table in docs/signal.md. A history consists of the runs of one test, so no store is needed.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import groupby
from pathlib import Path
from random import Random

import click
from nightjar_formats.model import SeenTest, Status

from bot.core.docs import replace_block, table
from bot.results.compare.flaky import MOST_NEEDED, flakiness_of
from bot.results.compare.lasting import Segment, lasting_failure

PAGE = Path(__file__).parents[2] / "docs" / "signal.md"
BLOCK = "flaky"
HEADER = (
    "failed runs",
    "both outcomes",
    "failures listed as known flaky",
    "wrong reports in 1,000 runs",
    "after any two in a row",
    "real failures reported with the second run",
    "with the third at the latest",
)
CASES = ((0.0, 0.1), (0.01, 0.1), (0.03, 0.1), (0.1, 0.1), (0.2, 0.2), (0.3, 0.3), (0.1, 0.0), (0.3, 0.0))
"""The rates of the simulated tests: of failed runs, and of runs in which one commit had both outcomes."""
BEFORE, RUNS = 40, 60
"""Runs before anything is counted, and with those that are counted."""
BOTH, PASSED, FAILED = "p", "P", "F"
SEEN = {
    BOTH: SeenTest(Status.PASSED, flaky=True),
    PASSED: SeenTest(Status.PASSED),
    FAILED: SeenTest(Status.FAILED),
}


@dataclass(slots=True)
class RuleErrors:
    """The counts for tests with one pair of rates.

    `failures` are runs that failed first in a row, `listed` those that check runs list as known flaky; `wrong` are
    reports of tests that are only flaky, `of_two` those for any two failures in a row. `reported` counts the real
    failures by the number of failed runs before their report.
    """

    runs: int = 0
    failures: int = 0
    listed: int = 0
    wrong: int = 0
    of_two: int = 0
    reported: Counter[int] = field(default_factory=Counter)

    def within(self, runs: int) -> float:
        """Return the share of real failures that were reported within so many failed runs."""
        return sum(count for failed_runs, count in self.reported.items() if failed_runs <= runs) / self.reported.total()


def measured_errors(rate: float, proof: float, tests: int) -> RuleErrors:
    """Return the errors for so many tests that have these rates and then fail every time."""
    rng, errors = Random(f"flaky {rate} {proof}"), RuleErrors()
    for _ in range(tests):
        letters = "".join(rng.choices((FAILED, BOTH, PASSED), (rate, proof, 1 - rate - proof), k=RUNS))
        _count(letters, errors)
        broken = letters.rstrip(FAILED) + FAILED * MOST_NEEDED
        begin = len(broken) - MOST_NEEDED
        ends = range(1, MOST_NEEDED + 1)
        errors.reported[next((end for end in ends if _is_reported(broken[: begin + end])), MOST_NEEDED + 1)] += 1
    return errors


def _count(letters: str, errors: RuleErrors) -> None:
    is_reported = known_of_two = False
    for end in range(BEFORE + 1, RUNS + 1):
        history = letters[:end]
        errors.runs += 1
        if not history.endswith(FAILED):
            is_reported = known_of_two = False
            continue
        if not history.endswith(FAILED * 2):
            errors.failures += 1
            errors.listed += flakiness_of(_segments(history), end).explains
        of_two, reported = lasting_failure(_segments(history), end) is not None, _is_reported(history)
        errors.of_two += of_two and not known_of_two
        errors.wrong += reported and not is_reported
        is_reported, known_of_two = is_reported or reported, known_of_two or of_two


def _is_reported(history: str) -> bool:
    segments, runs = _segments(history), len(history)
    return lasting_failure(segments, runs) is not None and not flakiness_of(segments, runs).explains


def _segments(history: str) -> list[Segment]:
    segments, begin = list[Segment](), 0
    for letter, group in groupby(history):
        segments.append((begin, SEEN[letter]))
        begin += len(list(group))
    return segments


def rows(tests: int) -> Iterator[tuple[str, ...]]:
    """Yield the rows of the table."""
    for rate, proof in CASES:
        errors = measured_errors(rate, proof, tests)
        listed = f"{errors.listed / errors.failures:.1%}" if errors.failures else "-"
        wrong, of_two = (f"{1_000 * count / errors.runs:.1f}" for count in (errors.wrong, errors.of_two))
        shares = (f"{errors.within(runs):.1%}" for runs in (MOST_NEEDED - 1, MOST_NEEDED))
        yield (f"{rate:.0%}", f"{proof:.0%}", listed, wrong, of_two, *shares)


@click.command()
@click.option("--tests", default=2_000, show_default=True, help="How many tests of each pair of rates.")
@click.option("--write", is_flag=True, help="Write the table into docs/signal.md.")
def main(tests: int, write: bool) -> None:
    """Simulate flaky tests, and print how often the reports about them are wrong."""
    text = table(HEADER, rows(tests))
    click.echo(text)
    if write:
        PAGE.write_text(replace_block(PAGE.read_text(encoding="utf-8"), BLOCK, text), encoding="utf-8")


if __name__ == "__main__":
    main()
