"""`nightjar results measurements`: what tests measure on the nightly branch or in report files, and what moved."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import click
import sqlalchemy as sa
from nightjar_formats.measurements import Measurement
from nightjar_formats.model import TargetKey
from nightjar_formats.terminal import escape_controls

from bot.cli.results import texts
from bot.cli.results.measured_files import measured_tests, row_of_measured
from bot.cli.support import AS_WRITTEN, REPOSITORY, env_file_option, json_option, start_logging, stopping_at_faults
from bot.config.environment import DatabaseSettings
from bot.core.errors import UserError
from bot.core.terminal import table
from bot.core.utc import iso_utc
from bot.engine.database import Database
from bot.results.explain.lookup import find_target
from bot.results.measurements.changes import analysis_of
from bot.results.measurements.moved import MovedSeries
from bot.results.measurements.texts import number_text
from bot.results.store.history.timelines import all_targets
from bot.results.store.measurements.moved import moved_of_test, moved_series
from bot.results.store.measurements.read import MeasuredNight, measured_series, metrics_of_test
from bot.results.store.store import ResultsStore
from bot.results.store.tables.points import suites_on_targets

LIMIT = 50
SHORT = 10


@dataclass(frozen=True, slots=True)
class ListedSeries:
    """What a test measures on a target, night by night, and between which bounds the next night is expected."""

    target: TargetKey
    suite: str
    name: str
    nights: Sequence[MeasuredNight]
    expected: tuple[float, float] | None


@click.command(
    epilog=f"""{AS_WRITTEN}
    Examples:
      nightjar results measurements
      nightjar results measurements --target example-lab/adreno --json
      nightjar results measurements --test tests/te/test_tile.py::test_tile
      nightjar results measurements benchmark.json
    """,
)
@click.argument("files", metavar="[FILE]...", nargs=-1, type=click.Path(path_type=Path))
@click.option("--test", default="", help="The test's ID: also list all that it measures, with the newest numbers.")
@click.option("--target", help="LAB/TARGET, or the name of its check run. Default: all targets.")
@click.option("--repo", "--repository", "repository", type=REPOSITORY, help="OWNER/NAME. Default: all repositories.")
@click.option("--limit", type=click.IntRange(1), default=LIMIT, show_default=True, help="The most changes to list.")
@json_option
@env_file_option()
def measurements(
    files: tuple[Path, ...], test: str, target: str | None, repository: str | None, limit: int, as_json: bool
) -> None:
    """List which measurements of nightly runs changed, newest first; or what the tests of report files measure.

    Works beside a running server. Only DATABASE_URL is needed, and nothing for files.
    """
    if files:
        _list_files(files, test.strip(), target or repository, as_json)
        return
    with stopping_at_faults():
        settings = DatabaseSettings.from_environment()
        start_logging(settings)
        url = settings.database_url.get_secret_value()
        Database(url).must_exist()
        store = ResultsStore(url)
        store.open()
        try:
            moved, series = store.read(_listing, test.strip(), target, repository, limit)
        finally:
            store.close()
        if test and not series:
            raise UserError(texts.NO_MEASUREMENTS.format(test=test))
    if as_json:
        document = {"moved": [_moved_json(change) for change in moved]}
        click.echo(
            json.dumps(document | ({"series": [_series_json(item) for item in series]} if test else {}), indent=2)
        )
        return
    if series:
        click.echo(table(texts.SERIES_HEADER, [_series_row(item) for item in series]) + "\n")
    click.echo(table(texts.MOVES_HEADER, [_moved_row(change) for change in moved]) if moved else texts.NO_MOVES)


def _list_files(files: Sequence[Path], test: str, stored_only: str | None, as_json: bool) -> None:
    with stopping_at_faults():
        if stored_only:
            raise UserError(texts.ONLY_STORED)
        measured = [item for item in measured_tests(files) if test in ("", item.test)]
    if as_json:
        rows = [{"file": item.file, "test": item.test, **item.measurement._asdict()} for item in measured]
        click.echo(json.dumps({"measurements": rows}, indent=2))
        return
    rows_of_table = [row_of_measured(item) for item in measured]
    click.echo(table(texts.MEASURED_HEADER, rows_of_table) if measured else texts.NOTHING_MEASURED)


def _listing(
    connection: sa.Connection, test: str, target: str | None, repository: str | None, limit: int
) -> tuple[list[MovedSeries], list[ListedSeries]]:
    """Return the changes, and the series of a test; none without one. Raises `UserError`."""
    key = find_target(connection, repository, target) if target else None
    all_repositories = sorted({stored.repository for stored in all_targets(connection)})
    repositories = [key.repository] if key else [name for name in all_repositories if repository in (None, name)]
    moved = list[MovedSeries]()
    for name in repositories:
        moved += moved_of_test(connection, name, test, key) if test else moved_series(connection, name, key, limit)
    moved.sort(key=lambda change: change.cursor, reverse=True)
    series = [item for name in repositories for item in _series(connection, name, test, key)] if test else []
    return moved[:limit], series


def _series(connection: sa.Connection, repository: str, test: str, target: TargetKey | None) -> Iterator[ListedSeries]:
    lab, target_name = (target.lab, target.target) if target else (None, None)
    for suite in suites_on_targets(connection, repository, lab, target_name):
        for name in sorted({metric.name for metric in metrics_of_test(connection, repository, suite.name, test)}):
            nights = measured_series(connection, suite.target, suite.name, test, name)
            if nights:
                newest = nights[-1]
                numbers = [night.value for night in nights if night.unit == newest.unit]
                is_exact = Measurement(name, newest.value, newest.unit).is_exact
                expected = None if is_exact else analysis_of(numbers).predicted
                yield ListedSeries(suite.target, suite.name, name, nights, expected)


def _moved_json(change: MovedSeries) -> dict[str, Any]:
    document = asdict(change) | asdict(change.target)
    moments = {name: iso_utc(document[name]) for name in ("since_at", "confirmed_at")}
    ended_at = iso_utc(change.ended_at) if change.ended_in else None
    return document | moments | {"ended_at": ended_at, "state": str(change.state), "text": change.text}


def _series_json(item: ListedSeries) -> dict[str, Any]:
    nights = [night._asdict() | {"committed_at": iso_utc(night.committed_at)} for night in item.nights]
    named = asdict(item.target) | {"suite": item.suite, "name": item.name}
    return named | {"expected": item.expected, "nights": nights}


def _moved_row(change: MovedSeries) -> tuple[str, ...]:
    state = texts.ENDED_AT.format(sha=change.ended_in[:SHORT]) if change.ended_in else str(change.state)
    committed = datetime.fromtimestamp(change.since_at, UTC).strftime("%Y-%m-%d %H:%M UTC")
    row = (change.since[:SHORT], committed, change.target.full_name, change.test, change.text, state)
    return tuple(map(escape_controls, row))


def _series_row(item: ListedSeries) -> tuple[str, ...]:
    newest, expected = item.nights[-1], ""
    unit = newest.unit and f" {newest.unit}"
    if item.expected:
        low, high = map(number_text, item.expected)
        expected = texts.EXPECTED.format(low=low, high=high, unit=unit)
    value = texts.VALUE.format(value=number_text(newest.value), unit=unit)
    nights = f"{len(item.nights):,}"
    row = (item.target.full_name, item.suite, item.name, nights, value, newest.sha[:SHORT], expected)
    return tuple(map(escape_controls, row))
