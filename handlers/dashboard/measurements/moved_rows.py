"""List the stored changes of the series of a target, newest first, each with its newest values."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

import sqlalchemy as sa
from markupsafe import Markup
from nightjar_formats.model import TargetKey
from pydantic import Field

from bot.core.listing import counted
from bot.results.measurements.moved import MoveCursor, MovedSeries
from bot.results.measurements.texts import number_text
from bot.results.store.measurements.moved import moved_series
from bot.results.store.measurements.read import series_on_target
from bot.results.store.tables.names import find_ordinal
from bot.results.store.tables.points import suites_on_targets
from handlers.dashboard.measurements import texts
from handlers.dashboard.measurements.series_model import SeriesMove
from handlers.dashboard.shared.chart import sparkline

if TYPE_CHECKING:
    from bot.core.aliases import Aliases

MOST_DRAWN = 10
"""The newest changes of which the values are read: others are only in a CSV."""
NIGHTS = 60
"""The newest nights of which a row shows the values."""
CURSOR = r"^-?[0-9]{1,12}(\.[0-9]{1,9})?,[0-9A-Za-z]{1,64}$"
"""The place of a change in the list: the time of its commit in seconds, and its ID."""


class MovedRow(SeriesMove):
    """A change of the level of a series, with its newest values."""

    suite: str
    test: str
    measurement: str
    unit: str
    recent: list[float] = Field(description=f"The values of the newest {NIGHTS} nights, oldest first.")

    @property
    def line(self) -> Markup:
        """Draw the values."""
        return value_line(self.measurement, self.recent)


def value_line(name: str, values: list[float]) -> Markup:
    """Draw values, oldest first, as a line as high as a word."""
    if not values:
        return Markup("")
    label = texts.SPARK.format(
        name=name,
        nights=counted(len(values), "nightly commit"),
        lowest=number_text(min(values)),
        highest=number_text(max(values)),
        newest=number_text(values[-1]),
    )
    return sparkline(values, label)


def read_moved(
    connection: sa.Connection, target: TargetKey, place: str | None, aliases: Aliases, most: int
) -> tuple[list[MovedRow], str]:
    """Return the newest changes on a target, and the place of the last one if there are more than `most`, or "".

    With a `place`, as CURSOR has it, only older changes are returned.
    """
    cursor = None
    if place is not None:
        seconds, _, change = place.partition(",")
        cursor = MoveCursor(float(seconds), change)
    moved = moved_series(connection, target.repository, target, most + 1, cursor)
    listed = moved[:most]
    older = f"{listed[-1].since_at!r},{listed[-1].id}" if len(moved) > most else ""
    recent = _recent(connection, target, listed[:MOST_DRAWN], aliases)
    rows = [
        MovedRow.model_validate(
            SeriesMove.fields_of(move)
            | {"suite": move.suite, "test": move.test, "measurement": move.name, "unit": move.unit}
            | {"recent": recent.get((move.suite, move.test, move.name), [])}
        )
        for move in listed
    ]
    return rows, older


def _recent(
    connection: sa.Connection, target: TargetKey, moved: Iterable[MovedSeries], aliases: Aliases
) -> Mapping[tuple[str, str, str], list[float]]:
    """Return the newest values of the series that moved."""
    series_of: dict[str, set[tuple[str, str]]] = {}
    for move in moved:
        series_of.setdefault(move.suite, set()).add((move.test, move.name))
    suites = suites_on_targets(connection, target.repository, target.lab, target.target) if series_of else ()
    recent = {}
    for suite in suites:
        ordinals = {
            (ordinal, name): test
            for test, name in series_of.get(suite.name, ())
            if (ordinal := find_ordinal(connection, suite.row, test)) is not None
        }
        if ordinals:
            nights_of = series_on_target(connection, suite, ordinals, aliases, NIGHTS)
            for key, nights in nights_of.items():
                recent[suite.name, ordinals[key], key[1]] = [
                    night.value for night in nights if night.unit == nights[-1].unit
                ]
    return recent
