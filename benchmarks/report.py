"""Options and output of the measurements: a table for people, or JSON lines."""

from __future__ import annotations

import asyncio
import json
import tempfile
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median

import click

from benchmarks.machine import busy, described
from benchmarks.stage import DATABASES, SQLITE

ROUNDS = 3
Row = dict[str, str | float]
"""One line of a table: numbers are measurements, texts name them."""


@dataclass(frozen=True, slots=True)
class Options:
    """The options of a measurement. `quick` takes a tenth of the time, to see that it runs."""

    quick: bool
    database: str

    def seconds(self, usual: float) -> float:
        """Return how many seconds a part takes."""
        return usual / 5 if self.quick else usual

    def count(self, usual: int) -> int:
        """Return the number of items of a part."""
        return max(1, usual // 20) if self.quick else usual


Measurement = Callable[[Options], Awaitable[list[Row]]]


def command(measure: Measurement, title: str, usual_rounds: int = ROUNDS) -> click.Command:
    """Create the command of one measurement, which runs it several times and reports medians."""

    @click.command(help=title)
    @click.option("--json", "as_json", is_flag=True, help="One JSON object per row.")
    @click.option("--quick", is_flag=True, help="Once and briefly, to see that it runs.")
    @click.option("--database", type=click.Choice(DATABASES), default=SQLITE, show_default=True)
    @click.option("--rounds", default=usual_rounds, show_default=True, help="Rounds; the medians are reported.")
    def run(as_json: bool, quick: bool, database: str, rounds: int) -> None:
        rows = asyncio.run(_repeated(measure, Options(quick, database), 1 if quick else rounds))
        if as_json:
            click.echo("\n".join(json.dumps(row) for row in rows))
            return
        with tempfile.TemporaryDirectory() as folder:
            click.echo(f"{title} ({database})\n{described(Path(folder))}\n")
        click.echo(table(rows))

    return run


async def _repeated(measure: Measurement, options: Options, rounds: int) -> list[Row]:
    taken = []
    for number in range(rounds):
        load_before = busy()
        taken.append([row | {"busy": float(load_before)} for row in await measure(options)])
        click.echo(f"round {number + 1} of {rounds}, load average {load_before} to {busy()}", err=True)
    return [_median(rows) for rows in zip(*taken, strict=True)]


def _median(rows: Sequence[Row]) -> Row:
    return {
        key: first if isinstance(first, str) else round(median(float(row[key]) for row in rows), 3)
        for key, first in rows[0].items()
    }


def table(rows: Sequence[Row]) -> str:
    """Write rows as a Markdown table for the README."""
    heads = list(rows[0])
    lines = [heads, ["---" if isinstance(rows[0][head], str) else "--:" for head in heads]]
    lines += [[_cell(row[head]) for head in heads] for row in rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _cell(value: str | float) -> str:
    if isinstance(value, str):
        return value
    if abs(value) >= 100 or value == int(value):
        return f"{value:,.0f}"
    return f"{value:.1f}" if abs(value) >= 10 else f"{value:.2f}" if abs(value) >= 1 else f"{value:.3f}"
