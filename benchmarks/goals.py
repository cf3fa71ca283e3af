"""Print a table of all goals with what was measured for each: `python -m benchmarks.goals`.

python -m benchmarks.goals --quick             every row in some minutes, from short runs
python -m benchmarks.goals --only first-write  one part alone, with all its rows
python -m benchmarks.goals --rounds 5 --json   medians of five rounds, a JSON object for each row
"""

from __future__ import annotations

import asyncio
import json
import logging
import tempfile
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from statistics import median
from typing import NamedTuple

import click

from benchmarks import (
    accepted,
    commands,
    delivery_cost,
    durable,
    first_write,
    handled,
    month,
    nightly_results,
    replicas,
    results_corpus,
    results_parse,
)
from benchmarks.machine import busy, described
from benchmarks.report import Measurement, Options, Row, table
from benchmarks.stage import DATABASES, POSTGRESQL, SQLITE

log = logging.getLogger(__name__)

ROUNDS = 5
COMMAND = "python -m benchmarks.goals --only {part}"
NOTHING = "not measured"


class Figure(NamedTuple):
    """What a part has measured for a goal, and the number that is compared with the goal."""

    measured: float
    compared: float


Read = Callable[[Sequence[Row]], Figure | None]


@dataclass(frozen=True, slots=True)
class GoalPart:
    """A measurement; a long one runs at most `most_rounds` times."""

    measure: Measurement
    most_rounds: int = 100


@dataclass(frozen=True, slots=True)
class Goal:
    """A goal: at least `aim`, or at most."""

    label: str
    part: str
    aim: float
    read: Read
    unit: str
    at_least: bool = False

    def met(self, compared: float) -> bool:
        """Return whether a figure meets the goal."""
        return compared >= self.aim if self.at_least else compared <= self.aim


@dataclass(frozen=True, slots=True)
class Reached:
    """A goal with its measurements: the median of the rounds, the lowest and the highest."""

    goal: str
    aim: str
    measured: str
    ratio: float | None
    lowest: float | None
    highest: float | None
    rounds: int
    met: str
    command: str


PARTS = {
    "accepted": GoalPart(accepted.measure),
    "durable": GoalPart(durable.measure, 2),
    "durable-postgresql": GoalPart(lambda options: durable.measure(replace(options, database=POSTGRESQL)), 2),
    "delivery-cost": GoalPart(delivery_cost.measure),
    "first-write": GoalPart(first_write.at_goal_rate),
    "replicas": GoalPart(replicas.measure),
    "results-parse": GoalPart(results_parse.measure),
    "results-corpus": GoalPart(results_corpus.measure, 2),
    "nightly-results": GoalPart(nightly_results.measure, 2),
    "handled": GoalPart(handled.measure, 1),
    "commands": GoalPart(commands.measure),
    "month": GoalPart(month.measure, 1),
}


def cell(place: int, head: str) -> Read:
    """Read a cell of a row: the measured number, which is also the one to compare."""
    return lambda rows: Figure(_number(rows[place], head), _number(rows[place], head))


def _share(place: int, head: str, base_head: str) -> Read:
    """Read the result of a server, and its ratio to another's, which is compared; None without a ratio."""

    def read(rows: Sequence[Row]) -> Figure | None:
        ratio = _number(rows[place], base_head)
        return Figure(_number(rows[place], head), ratio) if ratio else None

    return read


def _named(label: str) -> Read:
    """Read the row of a name from a table of names and measurements."""

    def read(rows: Sequence[Row]) -> Figure:
        value = next(_number(row, "measured") for row in rows if row["what"] == label)
        return Figure(value, value)

    return read


def _worst(places: Sequence[int], head: str) -> Read:
    """Read the highest number of some rows."""

    def read(rows: Sequence[Row]) -> Figure:
        value = max(_number(rows[place], head) for place in places)
        return Figure(value, value)

    return read


def _of_probot(server: str, load: str, head: str) -> Read:
    """Read what a server needs for commands, and its ratio to what probot needs, which is compared."""

    def read(rows: Sequence[Row]) -> Figure | None:
        figures = {row["server"]: _number(row, head) for row in rows if row["commands"] == load}
        if commands.PROBOT not in figures:
            return None
        return Figure(figures[server], figures[server] / figures[commands.PROBOT])

    return read


def _nightly(rows: Sequence[Row]) -> Figure:
    """Read the duration of the slower nightly run, and its rate."""
    seconds = nightly_results.TARGETS * nightly_results.CASES / min(_number(row, "results a second") for row in rows)
    return Figure(seconds, seconds)


def _seen_beside_new(rows: Sequence[Row]) -> Figure:
    new, seen = (_number(rows[place], "CPU ms each") for place in (2, 3))
    return Figure(seen, seen / new)


def _number(row: Row, head: str) -> float:
    return float(row[head])


AIMS = {"durable": (1.2, 1.5, 2.0, 2.0), "durable-postgresql": (1.0, 1.2, 1.8, 1.8)}
"""Of both parts, the aim for each number of connections: a multiple of the best other server."""
ROWS_OF_KIND = len(accepted.CONNECTIONS) + 1
"""The rows that `durable` has for each kind of deliveries: the last one is that of half the load."""
STORED = (4, 5)
"""The rows of results_parse that include storing the results."""


def _beside_others(part: str) -> Iterator[Goal]:
    """Yield the goals of a comparison with others that store each delivery before they answer."""
    for number, kind in enumerate(durable.KINDS):
        first = number * ROWS_OF_KIND
        for place, (count, aim) in enumerate(zip(accepted.CONNECTIONS, AIMS[part], strict=True)):
            label = f"{kind} stored, connections: {count}, of the best"
            yield Goal(label, part, aim, _share(first + place, "nightjar /s", "of the best"), "/s", True)
        half = first + ROWS_OF_KIND - 1
        label = f"… p99 of {kind} at half of that load, of the best"
        yield Goal(label, part, 1.0, _share(half, "nightjar p99 ms", "p99 of the best"), "ms")


def _commands() -> Iterator[Goal]:
    """Yield the goals of commands beside probot with pg-boss, on both databases."""
    many = f"{commands.COUNTS[-1]:,} at once"
    for server in (commands.NIGHTJAR, commands.NIGHTJAR_POSTGRESQL):
        read = _of_probot(server, many, "handled /s")
        yield Goal(f"{server}: commands handled, {many}, of probot with pg-boss", "commands", 2, read, "/s", True)
        for load in (many, commands.ALONE):
            read = _of_probot(server, load, "both ms each")
            yield Goal(f"… CPU of one with its database's, {load}, of probot", "commands", 1, read, "ms")


GOALS = (
    *(goal for part in AIMS for goal in _beside_others(part)),
    *_commands(),
    Goal("p99 of 202 at half of that load", "accepted", 20, cell(4, "nightjar p99 ms"), "ms"),
    Goal(
        "CPU of a delivery that no handler accepts, all in, 500/s", "delivery-cost", 0.4, cell(0, "CPU ms each"), "ms"
    ),
    Goal("… as many as 64 connections take", "delivery-cost", 0.4, cell(4, "CPU ms each"), "ms"),
    Goal("CPU of one seen before, of a new one", "delivery-cost", 1, _seen_beside_new, "ms"),
    Goal("PostgreSQL, one replica, of SQLite", "replicas", 0.5, _share(1, "per second", "of SQLite"), "/s", True),
    Goal("… two replicas", "replicas", 0.9, _share(2, "per second", "of SQLite"), "/s", True),
    Goal("command to first write under 500/s, median", "first-write", 100, cell(0, "p50 ms"), "ms"),
    Goal("… p99", "first-write", 500, cell(0, "p99 ms"), "ms"),
    Goal("handled a second, 100,000 at once", "handled", 2_000, cell(0, "handled /s"), "/s", True),
    Goal("… one person over the limit writes all commands", "handled", 2_000, cell(1, "handled /s"), "/s", True),
    Goal("a month, 1.2 million deliveries, a second", "month", 2_000, _named("a second"), "/s", True),
    Goal("… the database, for each", "month", 2_000, _named("… of the month's, after retention"), "bytes"),
    Goal("… memory, most growth in a twelfth", "month", 5, _named("memory, MiB, largest growth of a twelfth"), "MiB"),
    Goal("300,000 JUnit cases stored, of expat's CPU", "results-parse", 1.8, _worst(STORED, "of expat's CPU"), "times"),
    Goal("… growth", "results-parse", 64, _worst(STORED, "memory growth MiB"), "MiB"),
    Goal("a nightly run of 3.6 million results", "nightly-results", 60, _nightly, "s"),
    Goal("a corpus, of expat's CPU", "results-corpus", 3, _named("parsed and stored, of expat's CPU"), "times"),
    Goal("… bytes for each result", "results-corpus", 9, _named("bytes for each result"), "bytes"),
)


def reached(goal: Goal, rounds: Sequence[Sequence[Row]]) -> Reached:
    """Compare the measurements of all rounds with the goal."""
    figures = [figure for figure in map(goal.read, rounds) if figure is not None]
    aim = f"{'≥' if goal.at_least else '≤'} {goal.aim:,g}"
    how = COMMAND.format(part=goal.part)
    if not figures:
        return Reached(goal.label, aim, NOTHING, None, None, None, 0, NOTHING, how)
    compared = [figure.compared for figure in figures]
    middle = median(compared)
    measured = f"{_shown(median(figure.measured for figure in figures))} {goal.unit}"
    met = "met" if goal.met(middle) else "**missed**"
    return Reached(goal.label, aim, measured, middle, min(compared), max(compared), len(figures), met, how)


def _shown(value: float) -> str:
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"


def in_words(row: Reached) -> Row:
    """Write a row of the table for people."""
    ratio, spread = "", ""
    if row.ratio is not None and row.lowest is not None and row.highest is not None:
        ratio = _shown(row.ratio)
        spread = f"{_shown(row.lowest)} to {_shown(row.highest)} ({row.rounds})"
    return {
        "goal": row.goal,
        "aim": row.aim,
        "measured": row.measured,
        "compared": ratio,
        "spread (rounds)": spread,
        "": row.met,
        "command": f"`{row.command}`",
    }


async def _measured(parts: Sequence[str], options: Options, rounds: int) -> Mapping[str, list[list[Row]]]:
    """Run all parts in turn, round by round. Print each measurement at once, so that a crash loses none."""
    taken: dict[str, list[list[Row]]] = defaultdict(list)
    for number in range(rounds):
        for name in parts:
            if number >= PARTS[name].most_rounds:
                continue
            load_before, began = busy(), datetime.now(UTC)
            try:
                rows = await PARTS[name].measure(options)
            except Exception:  # an hour of measurements must not be lost because one part fails
                log.exception("%s failed, and is left out of this round", name)
                continue
            taken[name].append(rows)
            seconds = (datetime.now(UTC) - began).total_seconds()
            click.echo(
                f"round {number + 1}, {name}: {seconds:.0f} s, load average {load_before} to {busy()}\n{table(rows)}\n",
                err=True,
            )
    return taken


@click.command(help="The goals, each with what was measured.")
@click.option("--json", "as_json", is_flag=True, help="One JSON object per goal.")
@click.option("--quick", is_flag=True, help="Once and briefly: bytes and rates only, no true figures of long runs.")
@click.option("--database", type=click.Choice(DATABASES), default=SQLITE, show_default=True)
@click.option("--rounds", default=ROUNDS, show_default=True, help="Rounds; long parts run once or twice.")
@click.option("--only", type=click.Choice(list(PARTS)), multiple=True, help="Measure this part alone.")
def main(as_json: bool, quick: bool, database: str, rounds: int, only: tuple[str, ...]) -> None:
    """Measure, and print the table."""
    parts = only or tuple(PARTS)
    load, date = busy(), f"{datetime.now(UTC):%d %B %Y, %H:%M} UTC"
    taken = asyncio.run(_measured(parts, Options(quick, database), 1 if quick else rounds))
    rows = [reached(goal, taken[goal.part]) for goal in GOALS if goal.part in parts]
    with tempfile.TemporaryDirectory() as folder:
        machine = described(Path(folder))
    if as_json:
        context = {"machine": machine, "date": date, "load": load}
        click.echo("\n".join(json.dumps(asdict(row) | context) for row in rows))
        return
    short = "; short runs (--quick)" if quick else ""
    click.echo(f"{machine}; {date}; load average {load} when it began, {busy()} at the end{short}.\n")
    click.echo(table([in_words(row) for row in rows]))


if __name__ == "__main__":
    main()
