"""Write what the tests of a run measured, as blocks of numbers (`docs/decisions/measurements-in-blocks.md`)."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import sqlalchemy as sa
from nightjar_formats.limits import MAX_SUITE_MEASUREMENTS
from nightjar_formats.measurements import Better
from nightjar_formats.refused import TooMuch

from bot.results.store import texts
from bot.results.store.measurements.number_blocks import BLOCK, Decimal, block_of, decimal_of
from bot.results.store.tables import schema
from bot.results.store.tables.blobs import Measured
from bot.results.store.tables.names import SuiteRow


class Metric(NamedTuple):
    """What a measurement measures. One whose unit changes is another metric from then on."""

    name: str
    unit: str
    better: Better


class Placed(NamedTuple):
    """The position of a measurement in the blocks of its suite, and the base of its numbers."""

    position: int
    base: Decimal


@dataclass(frozen=True, slots=True)
class NumbersOfRun:
    """The numbers of a run, by block; `added` are the measurements that the suite lacked when it had `count`."""

    count: int
    added: Mapping[tuple[int, Metric], Placed] = field(default_factory=dict)
    blocks: Mapping[int, bytes] = field(default_factory=dict)


_METRICS, _MEASUREMENTS, _NUMBERS = schema.metrics, schema.measurements, schema.numbers
_METRICS_OF_SUITE = sa.select(_METRICS.c.id, _METRICS.c.name, _METRICS.c.unit, _METRICS.c.better).where(
    _METRICS.c.suite_id == sa.bindparam("suite")
)
_LAST = sa.select(sa.func.max(_MEASUREMENTS.c.position)).where(_MEASUREMENTS.c.suite_id == sa.bindparam("suite"))
_OF_SUITE = sa.select(
    *(_MEASUREMENTS.c[name] for name in ("ordinal", "metric_id", "position", "digits", "exponent"))
).where(_MEASUREMENTS.c.suite_id == sa.bindparam("suite"))


def count_of(connection: sa.Connection, suite: SuiteRow) -> int:
    """Return how many measurements the tests of a suite ever had."""
    last: int | None = connection.execute(_LAST, {"suite": suite.id}).scalar()
    return 0 if last is None else last + 1


def metrics_of(connection: sa.Connection, suite: SuiteRow) -> dict[int, Metric]:
    """Return the metrics of a suite, by their numbers."""
    rows = connection.execute(_METRICS_OF_SUITE, {"suite": suite.id})
    return {row.id: Metric(row.name, row.unit, Better(row.better)) for row in rows}


def placed_measurements(connection: sa.Connection, suite: SuiteRow) -> dict[tuple[int, Metric], Placed]:
    """Return all measurements of a suite, by the ordinal of their test and their metric."""
    metrics = metrics_of(connection, suite)
    return {
        (ordinal, metrics[metric]): Placed(position, Decimal(digits, exponent))
        for ordinal, metric, position, digits, exponent in connection.execute(_OF_SUITE, {"suite": suite.id})
    }


def lay_out_numbers(connection: sa.Connection, suite: SuiteRow, measured: Measured) -> NumbersOfRun:
    """Put what the tests of a run measured into the blocks of its suite.

    Raises `TooMuch` if the suite would have more than MAX_SUITE_MEASUREMENTS.
    """
    if not measured:
        return NumbersOfRun(count_of(connection, suite))
    numbers = {
        (ordinal, Metric(measurement.name, measurement.unit, measurement.better)): measurement.value
        for ordinal, measurements in measured
        for measurement in measurements
    }
    placed = placed_measurements(connection, suite)
    count = max((position for position, _ in placed.values()), default=-1) + 1
    # By metric, so that a block has numbers of one kind: they compress better.
    added = {
        (ordinal, metric): Placed(position, decimal_of(numbers[ordinal, metric]))
        for position, (metric, ordinal) in enumerate(
            sorted((metric, ordinal) for ordinal, metric in numbers.keys() - placed.keys()), start=count
        )
    }
    # Measurements are never removed, so the table would grow without limit if names differed in every run.
    if count + len(added) > MAX_SUITE_MEASUREMENTS:
        raise TooMuch(texts.TOO_MANY_MEASUREMENTS)
    numbers_of = defaultdict[int, dict[int, float]](dict)
    bases = defaultdict[int, dict[int, Decimal]](dict)
    for key, number in numbers.items():
        position, base = placed.get(key) or added[key]
        block, slot = divmod(position, BLOCK)
        numbers_of[block][slot], bases[block][slot] = number, base
    return NumbersOfRun(
        count, added, {block: block_of(numbers_of[block], bases[block]) for block in sorted(numbers_of)}
    )


def save_numbers(
    connection: sa.Connection, suite: SuiteRow, series: int, run: int, numbers: NumbersOfRun, *, is_new: bool
) -> bool:
    """Write the numbers of a run in place of its stored ones, if any; return False if those were the same.

    `series` and `run` are their numbers. With `is_new`, nothing is stored for the run yet.
    """
    if not is_new:
        if blocks_of_runs(connection, series, [run], numbers.count).get(run, {}) == numbers.blocks:
            return False
        forget_numbers(connection, suite, series, run)
    if numbers.added:
        _add(connection, suite, numbers.added)
    if numbers.blocks:
        connection.execute(
            _NUMBERS.insert(),
            [
                {"series_id": series, "block": block, "run_id": run, "numbers": blob}
                for block, blob in numbers.blocks.items()
            ],
        )
    return True


def blocks_of_runs(
    connection: sa.Connection, series: int, numbers: Collection[int], count: int
) -> dict[int, dict[int, bytes]]:
    """Return the blocks of runs whose suite has `count` measurements, by the number of the run and of the block."""
    blobs: dict[int, dict[int, bytes]] = {}
    for blocks in _blocks(count):
        statement = sa.select(_NUMBERS.c.run_id, _NUMBERS.c.block, _NUMBERS.c.numbers).where(
            _NUMBERS.c.series_id == series, _NUMBERS.c.block.in_(blocks), _NUMBERS.c.run_id.in_(numbers)
        )
        for run, block, blob in connection.execute(statement):
            blobs.setdefault(run, {})[block] = blob
    return blobs


def _blocks(count: int) -> Iterator[Sequence[int]]:
    """Yield the numbers of all blocks for `count` measurements, in chunks.

    Statements name them, because the key of the table has the block before the run: so each is looked up.
    """
    return schema.in_chunks(range(-(-count // BLOCK)))


def forget_numbers(connection: sa.Connection, suite: SuiteRow, series: int, run: int) -> None:
    """Remove the numbers of a run."""
    for blocks in _blocks(count_of(connection, suite)):
        of_run = (_NUMBERS.c.series_id == series, _NUMBERS.c.block.in_(blocks), _NUMBERS.c.run_id == run)
        connection.execute(_NUMBERS.delete().where(*of_run))


def _add(connection: sa.Connection, suite: SuiteRow, added: Mapping[tuple[int, Metric], Placed]) -> None:
    """Add measurements that the suite lacks, and their metrics."""
    number_of = {metric: number for number, metric in metrics_of(connection, suite).items()}
    for metric in sorted({metric for _, metric in added} - number_of.keys()):
        values = {"suite_id": suite.id, "name": metric.name, "unit": metric.unit, "better": metric.better.value}
        inserted = connection.execute(_METRICS.insert().values(values).returning(_METRICS.c.id))
        number_of[metric] = inserted.scalar_one()
    connection.execute(
        _MEASUREMENTS.insert(),
        [
            {
                "suite_id": suite.id,
                "ordinal": ordinal,
                "metric_id": number_of[metric],
                "position": position,
                "digits": base.digits,
                "exponent": base.exponent,
            }
            for (ordinal, metric), (position, base) in added.items()
        ],
    )
