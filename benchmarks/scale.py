"""Measure how costs grow: each row at 1, 10, 100 and 1,000 times its smallest size, with the law that fits.

python -m benchmarks.scale                    all rows, in about 25 minutes
python -m benchmarks.scale --quick            the two smallest sizes, to see that everything runs
python -m benchmarks.scale --only first-sight one row
python -m benchmarks.scale --store            also writes benchmarks/scale.json, from which docs/deploy.md is generated

The rows: `benchmarks/scale_rows.py`.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import click

from benchmarks.machine import busy, described
from benchmarks.report import Row, table
from benchmarks.scale_rows import ROWS
from benchmarks.scaling import ScalePlace, Scaling, scaling
from benchmarks.stage import DATABASES, DURABLE, POSTGRESQL, SQLITE
from bot.core import logs
from tests.postgres import running_server
from tests.tables import with_tables

STORED = Path(__file__).with_name("scale.json")
STEPS = (1, 10, 100, 1000)
QUICK_STEPS = STEPS[:2]


def in_words(row: Scaling) -> Row:
    """Write a row of the table for people."""
    steps = zip(row.sizes, row.figures, strict=True)
    return {
        "row": row.name,
        "what": f"{row.what}, {row.unit}",
        "figures": "; ".join(f"{size:,}: {figure:g}" for size, figure in steps),
        "of": row.counted,
        "grows": f"{row.grows} ({row.exponent:+.2f})",
        "law": row.law,
        "goal": f"≤ {row.goal:g}",
        "": row.met,
    }


def measured(name: str, database: str, steps: Sequence[int]) -> Scaling:
    """Measure a row at some multiples of its base, each in a new folder and on a new database."""
    row, figures = ROWS[name], dict[int, float]()
    with contextlib.ExitStack() as held:
        server = held.enter_context(running_server(DURABLE)) if (row.database or database) == POSTGRESQL else None
        for step in steps:
            folder = Path(held.enter_context(tempfile.TemporaryDirectory(prefix="nightjar-scale-")))
            url = server.create_database() if server else with_tables(f"sqlite:///{folder}/nightjar.db")
            figure = row.measure(ScalePlace(folder, url), row.base * step)
            figures[row.base * step] = figure if isinstance(figure, float) else asyncio.run(figure)
    return scaling(name, row, figures)


@click.command(help="How costs grow with the number of repositories, jobs and records.")
@click.option("--json", "as_json", is_flag=True, help="One JSON object per row.")
@click.option("--quick", is_flag=True, help="The two smallest sizes, to see that everything runs.")
@click.option("--store", is_flag=True, help=f"Also write {STORED.name}, from which docs/deploy.md is generated.")
@click.option("--database", type=click.Choice(DATABASES), default=SQLITE, show_default=True)
@click.option("--only", type=click.Choice(list(ROWS)), multiple=True, help="Measure this row alone.")
def main(as_json: bool, quick: bool, store: bool, database: str, only: tuple[str, ...]) -> None:
    """Measure the rows, and print them."""
    logs.configure()
    with tempfile.TemporaryDirectory() as folder:
        machine = described(Path(folder))
    circumstances = {"machine": machine, "date": f"{datetime.now(UTC):%d %B %Y}"}
    rows = []
    for name in only or tuple(ROWS):
        row = measured(name, database, QUICK_STEPS if quick else STEPS)
        rows.append(row)
        if store:
            _store({**asdict(row), **circumstances, "database": ROWS[name].database or database})
        click.echo(f"{name}: {row.met} (load average {busy()})", err=True)
    if as_json:
        click.echo("\n".join(json.dumps(asdict(row)) for row in rows))
        return
    click.echo(f"{machine}; {database}\n\n{table([in_words(row) for row in rows])}")


def _store(row: Mapping[str, Any]) -> None:
    """Write a row into the stored file, which keeps the other ones."""
    stored = json.loads(STORED.read_text(encoding="utf-8"))["rows"] if STORED.exists() else []
    by_name = {other["name"]: other for other in (*stored, row)}
    ordered = [by_name[name] for name in ROWS if name in by_name]
    STORED.write_text(json.dumps({"rows": ordered}, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
