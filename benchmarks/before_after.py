"""Measure the code of an earlier commit and this code in turn, in one run, and print the medians side by side.

    git worktree add /tmp/before COMMIT && make -C /tmp/before .venv/.ready
    python -m benchmarks.before_after /tmp/before webhooks first_write --rounds 5

Each code is measured by its own benchmark of that name, in its own processes. Only rows of both tables are printed:
they are matched by position if both have as many, otherwise by their first cell.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from statistics import median

import click

from benchmarks.machine import busy
from benchmarks.report import Row, table

ROUNDS = 5
LOAD = "busy"
"""The column with the load of the machine."""
Rounds = Sequence[Sequence[Row]]


@click.command(help="Measure BEFORE, a folder with other code and its .venv, and this code in turn.")
@click.argument("old_tree", metavar="BEFORE", type=click.Path(exists=True, file_okay=False, path_type=Path))
@click.argument("names", nargs=-1, required=True)
@click.option("--rounds", default=ROUNDS, show_default=True, help="Rounds; the medians are reported.")
@click.option("--quick", is_flag=True, help="Briefly, to see that it runs.")
def main(old_tree: Path, names: tuple[str, ...], rounds: int, quick: bool) -> None:
    """Run each benchmark in both folders, `rounds` times. The last one of a round is the first one of the next."""
    pythons = {old_tree.absolute(): old_tree.absolute() / ".venv/bin/python", Path.cwd(): Path(sys.executable)}
    for name in names:
        taken: dict[Path, list[list[Row]]] = {folder: [] for folder in pythons}
        load = busy()
        for number in range(rounds):
            for folder in list(pythons)[:: 1 if number % 2 == 0 else -1]:
                taken[folder].append(_measured(pythons[folder], folder, name, quick=quick))
        click.echo(f"{name}: {rounds} rounds, load average {load} when it began, {busy()} at the end\n")
        click.echo(table(side_by_side(*taken.values())) + "\n")


def _measured(python: Path, folder: Path, name: str, *, quick: bool) -> list[Row]:
    command: list[str | Path] = [
        python,
        "-m",
        f"benchmarks.{name}",
        "--json",
        "--rounds",
        "1",
        *(["--quick"] if quick else []),
    ]
    # Its log of rounds goes to standard error, as ours does.
    done = subprocess.run(command, cwd=folder, stdout=subprocess.PIPE, check=True, text=True)
    return [json.loads(line) for line in done.stdout.splitlines()]


def side_by_side(old_rounds: Rounds, new_rounds: Rounds) -> list[Row]:
    """Return the old and new median of each number in both, and the new divided by the old one."""
    rows: list[Row] = []
    for row, earlier in _pairs(old_rounds[0], new_rounds[0]):
        for head in (head for head in row if head in earlier and head != LOAD and not isinstance(row[head], str)):
            median_before = median(
                float(rows_of_round[old_rounds[0].index(earlier)][head]) for rows_of_round in old_rounds
            )
            median_after = median(float(rows_of_round[new_rounds[0].index(row)][head]) for rows_of_round in new_rounds)
            if not median_before and not median_after:
                continue
            ratio = f"{median_after / median_before:.2f}" if median_before else ""
            rows.append({"what": _name(row), "": head, "before": median_before, "after": median_after, "ratio": ratio})
    return rows


def _pairs(old_rows: Sequence[Row], new_rows: Sequence[Row]) -> list[tuple[Row, Row]]:
    """Return each new row with the old one, by place if there are as many, otherwise by the first text in the row."""
    if len(old_rows) == len(new_rows):
        return list(zip(new_rows, old_rows, strict=True))
    old_by_name = {_first(row): row for row in old_rows}
    return [(row, old_by_name[_first(row)]) for row in new_rows if _first(row) in old_by_name]


def _first(row: Row) -> str:
    return next((value for value in row.values() if isinstance(value, str)), "")


def _name(row: Row) -> str:
    """Return the first two cells as the name of a row: in `webhooks`, the second one is the server."""
    return ", ".join(value for value in list(row.values())[:2] if isinstance(value, str))


if __name__ == "__main__":
    main()
