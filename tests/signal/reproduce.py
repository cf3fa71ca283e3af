"""`python -m tests.signal.reproduce`: how often the intervals of `@ci reproduce` contain the true failure rate.

Each request is about a test with a planted rate, which the bot does not know. Its runs are drawn with that rate.
"""

from __future__ import annotations

import json
import random
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import click

from bot.core.docs import replace_block
from bot.results.rates import FailureRate, RepeatVerdict, repeat_verdict
from handlers.device_tests.reproduce.command import REPEATS

PAGE, BLOCK = Path(__file__).parents[2] / "docs" / "signal.md", "reproduce"
REQUESTS = 1_000
RATES = (0.0, 0.02, 0.05, 0.1, 0.2, 0.3, 0.5, 0.7, 0.9, 1.0)
RUNS = (5, 10, 20, 50)
HEADER = ["failure rate", *(f"{runs} runs" for runs in RUNS)]
ANY_RATE = "any, all equally likely"


@dataclass(frozen=True)
class Coverage:
    """How many of some requests had an interval with the true rate. `fixed` and `same` are about repetitions.

    In `same` repetitions, the rate was the same at the new head; in `fixed` of them, the bot said that it was fixed.
    """

    requests: int
    covered: int
    same: int = 0
    fixed: int = 0

    @property
    def share(self) -> float:
        """The share of requests whose interval had the true rate."""
        return self.covered / self.requests


@cache
def interval_of(rate: FailureRate) -> tuple[float, float]:
    """Return the interval of a rate: thousands of requests have the same few."""
    return rate.interval


def drawn(chance: random.Random, rate: float, runs: int) -> FailureRate:
    """Return what some runs of a test with a rate show."""
    return FailureRate(sum(chance.random() < rate for _ in range(runs)), runs)


def covered(seed: int, rates: Iterable[float] | None, runs: int, requests: int = REQUESTS) -> Coverage:
    """Simulate requests about tests of these rates in turn; None draws a rate for each request."""
    chance, planted = random.Random(f"{seed}:{runs}"), list(rates or ())
    covered_count = same = fixed = 0
    for number in range(requests):
        rate = planted[number % len(planted)] if planted else chance.random()
        first, second = drawn(chance, rate, runs), drawn(chance, rate, runs)
        low, high = interval_of(first)
        covered_count += low <= rate <= high
        if first.failed and rate:
            same += 1
            fixed += repeat_verdict(first, second) is RepeatVerdict.FIXED
    return Coverage(requests, covered_count, same, fixed)


def table(seed: int) -> str:
    """Return the coverage of each planted rate and number of runs as a table."""
    lines = [f"| {' | '.join(HEADER)} |", "| --- |" + " ---: |" * len(RUNS)]
    for rate in (None, *RATES):
        shares = [covered(seed, None if rate is None else [rate], runs).share for runs in RUNS]
        name = ANY_RATE if rate is None else f"{rate:.2f}"
        lines.append(f"| {name} | {' | '.join(f'{share:.1%}' for share in shares)} |")
    return "\n".join(lines)


@click.command()
@click.option("--seed", default=0, show_default=True, help="Another seed simulates other requests.")
@click.option("--json", "as_json", is_flag=True, help="Print counts as JSON.")
@click.option("--write", is_flag=True, help="Write the table into docs/signal.md.")
def main(seed: int, as_json: bool, write: bool) -> None:
    """Simulate 1,000 requests for each rate and number of runs, and print how many intervals have the true rate."""
    if as_json:
        coverage = covered(seed, None, REPEATS)
        rates = {f"{rate:.2f}": {str(runs): covered(seed, [rate], runs).share for runs in RUNS} for rate in RATES}
        summary = {
            "requests": coverage.requests,
            "runs": REPEATS,
            "covered": coverage.share,
            "unchanged": coverage.same,
            "unchanged_called_fixed": coverage.fixed,
            "covered_by_rate": rates,
        }
        click.echo(json.dumps(summary, indent=2))
        return
    text = table(seed)
    click.echo(text)
    if write:
        PAGE.write_text(replace_block(PAGE.read_text(encoding="utf-8"), BLOCK, text), encoding="utf-8")


if __name__ == "__main__":
    main()
