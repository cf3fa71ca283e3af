"""`python -m tests.signal.pairs`: how often intervals of ratios are right, if they are computed after every block.

Each seed is a series of runs for every kind of noise, as A B B A, and the same series with a slower B. With `--write`,
update the table in docs/signal.md.
"""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path
from random import Random
from statistics import fmean, variance

import click
from nightjar_formats.pairs import LEAST_BLOCKS, Block, ratio_of

from bot.core.docs import replace_block, table
from bot.results.measurements.student import quantile
from tests.signal.measured_noise import NOISES, series
from tests.signal.measurements import seeds_of

PAGE = Path(__file__).parents[2] / "docs" / "signal.md"
BLOCK = "measured-pairs"
PRECISION, MOST_BLOCKS = 0.02, 60
SLOWDOWNS = (1.0, 1.02, 1.05, 1.1)
"""By how much B is slower than A."""
ROUNDING = 1e-9
HEADER = (
    "noise",
    "blocks on average",
    "equal sides: intervals that exclude 1",
    "Student's",
    "intervals without the true ratio",
    "2 % noticed",
    "5 % noticed",
    "10 % noticed",
)


@dataclass(slots=True)
class PairErrors:
    """What intervals say, each when it is short enough: `differ` counts those that exclude 1, by the true ratio.

    `without_truth` are the intervals, with any true ratio, that do not have it. `student` are the intervals of Student
    for equal sides that exclude 1.
    """

    runs: int = 0
    blocks: int = 0
    differ: Counter[float] = field(default_factory=Counter)
    without_truth: int = 0
    student: int = 0


def measured_pairs(noise: str, seeds: Iterable[int]) -> PairErrors:
    """Return the errors of intervals that are computed after each block, until they are short enough."""
    errors = PairErrors()
    for seed in seeds:
        values = series(noise, Random(f"pairs {noise} {seed}"), 4 * MOST_BLOCKS)
        errors.runs += 1
        for slowdown in SLOWDOWNS:
            blocks = _blocks(values, slowdown)
            ratio, count = None, 0
            for count in range(LEAST_BLOCKS, MOST_BLOCKS + 1):
                ratio = ratio_of(blocks[:count])
                if ratio is not None and ratio.width <= PRECISION:
                    break
            assert ratio is not None
            errors.differ[slowdown] += ratio.excludes_one
            # If all runs took equally long, the interval is a point, up to rounding.
            errors.without_truth += not ratio.low * (1 - ROUNDING) <= slowdown <= ratio.high * (1 + ROUNDING)
            if slowdown == 1.0:
                errors.blocks += count
                errors.student += _student_excludes_one(blocks)
    return errors


def _blocks(values: list[float], slowdown: float) -> list[Block]:
    return [
        (values[place], values[place + 1] * slowdown, values[place + 2] * slowdown, values[place + 3])
        for place in range(0, len(values), 4)
    ]


def _student_excludes_one(blocks: list[Block]) -> bool:
    """Return whether Student's interval excludes 1 when it is short enough."""
    shares = [math.log(second * third / first / fourth) / 2 for first, second, third, fourth in blocks]
    middle = margin = 0.0
    for count in range(LEAST_BLOCKS, MOST_BLOCKS + 1):
        middle = fmean(shares[:count])
        margin = quantile(0.975, count - 1) * math.sqrt(variance(shares[:count]) / count)
        if margin <= PRECISION:
            break
    return abs(middle) > margin


def rows(measured: dict[str, PairErrors]) -> Iterator[tuple[str, ...]]:
    """Yield the rows of the table."""
    for noise, errors in measured.items():
        equal, *slower = (errors.differ[slowdown] for slowdown in SLOWDOWNS)
        counts = equal, errors.student, errors.without_truth / len(SLOWDOWNS), *slower
        yield noise, f"{errors.blocks / errors.runs:.1f}", *(f"{count / errors.runs:.1%}" for count in counts)


@click.command()
@click.option("--seeds", default="0-999", show_default=True, help="The first and the last seed, as in 0-999.")
@click.option("--json", "as_json", is_flag=True, help="Print counts as JSON.")
@click.option("--write", is_flag=True, help="Write the table into docs/signal.md.")
def main(seeds: str, as_json: bool, write: bool) -> None:
    """Simulate two sides that run in turn, and print how often the intervals of their ratio are right."""
    measured = {noise: measured_pairs(noise, seeds_of(seeds)) for noise in NOISES}
    text = table(HEADER, rows(measured))
    click.echo(json.dumps({noise: asdict(errors) for noise, errors in measured.items()}, indent=2) if as_json else text)
    if write:
        PAGE.write_text(replace_block(PAGE.read_text(encoding="utf-8"), BLOCK, text), encoding="utf-8")


if __name__ == "__main__":
    main()
