"""Measure the pages of measurements on 10^8 values: 20 targets, 250 nights, 20,000 values in each run.

Also the search for changes: of all series of a target, and after one more night. The pages are rendered in this
process, so that their processor time and their statements can be counted. NIGHTJAR_MEASURED_TARGETS=2 makes a tenth of
the store: a page is about one target, or about the six that a page shows side by side.
"""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

import click
import sqlalchemy as sa
from nightjar_formats.columns.collect import Columns, collect
from nightjar_formats.model import Case, Claims, RunKey, Status, TargetKey

from benchmarks.report import Options, Row, command
from benchmarks.results_store import Stopwatch, StoreCost
from bot.results.state import Admission, Run, RunState
from bot.results.store.measurements.search import find_moves, store_moves
from bot.results.store.store import ResultsStore
from bot.results.store.tables import revisions, schema
from tests.handlers.dashboard.site import DashboardSite, dashboard_site
from tests.results.measurements.corpus import MeasuringDevice

TITLE = "The pages of measurements on a store of 10^8 values"
TARGETS = "NIGHTJAR_MEASURED_TARGETS"
REPOSITORY, LAB, SUITE = "octocat/compiler", "example-lab", "operators"
NUMBERS = 5
"""What `MeasuringDevice` measures of each test."""
FLOWS = 8
REQUESTS = 100
DAY = 86_400.0
HERE = f"/r/{REPOSITORY}"


@dataclass(frozen=True, slots=True)
class MeasuredSize:
    """The size of the store: nightly runs of each target, and tests in each run."""

    targets: int = 20
    nights: int = 250
    tests: int = 4_000

    @property
    def values(self) -> int:
        """The number of values."""
        return self.targets * self.nights * self.tests * NUMBERS


QUICK = MeasuredSize(targets=2, nights=40, tests=400)


async def measure(options: Options) -> list[Row]:
    """Fill the store, search for changes, then measure each page."""
    size = QUICK if options.quick else MeasuredSize(targets=int(os.environ.get(TARGETS, "20")))
    with tempfile.TemporaryDirectory(prefix="nightjar-bench-") as name:
        folder = Path(name)
        began = Stopwatch()
        rows = _filled(folder / "nightjar.db", size)
        megabytes = (folder / "nightjar.db").stat().st_size / 1e6
        rows.append(_cost(f"{size.values:,} values stored: {megabytes:,.0f} MB", began.took()))
        targets = ", ".join(map(_target, range(size.targets)))
        async with dashboard_site(
            folder,
            config=f"repositories:\n  {REPOSITORY}:\n    results:\n      bucket: device-results\n"
            f"      labs:\n        {LAB}: {{targets: [{targets}]}}\n",
            public={REPOSITORY},
            filled=lambda _: None,
            database=f"sqlite:///{folder}/nightjar.db",
            clock=time.time,
        ) as site:
            for label, address in _addresses(size).items():
                rows.append(await _page_row(site, label, address, options.count(REQUESTS)))
                click.echo(rows[-1], err=True)
        return rows


def _addresses(size: MeasuredSize) -> dict[str, str]:
    test, first = _name(size.tests // 2), f"{LAB}/{_target(0)}"
    series = f"id={test}&measurement=latency".replace("[", "%5B").replace("]", "%5D")
    nights = f"base={_sha(size.nights - 8)}&head={_sha(size.nights - 1)}"
    return {
        "list of a target": f"{HERE}/measurements?target={first}",
        "list, a part of names": f"{HERE}/measurements?target={first}&q=lowering",
        "list, one measurement": f"{HERE}/measurements?target={first}&measurement=snr&page=9",
        "series on all targets": f"{HERE}/measurements/series?{series}",
        "series on one target": f"{HERE}/measurements/series?{series}&target={first}",
        "map of a target": f"{HERE}/measurements/map?target={first}&{nights}",
        "map of all targets": f"{HERE}/measurements/map?target={first}&{nights}&all_targets=true",
        "compare": f"{HERE}/compare?target={first}&{nights}",
        "run": f"{HERE}/runs/{first}/{_sha(size.nights - 1)}/1",
        "test": f"{HERE}/tests?{series.partition('&')[0]}",
        "badge": f"{HERE}/badge.svg?{series}&target={first}",
        "search": f"{HERE}/search?q=latency+{size.tests // 2}",
    }


def _target(number: int) -> str:
    return f"board-{number}"


def _name(test: int) -> str:
    return f"tests/test_lowering_{test // 400}.py::test_lowering_{test // FLOWS}[flow-{test % FLOWS}]"


def _sha(night: int) -> str:
    return f"{(night + 11) * 0x9E3779B97F4A7C15 % 2**160:040x}"[::-1]


def _filled(path: Path, size: MeasuredSize) -> list[Row]:
    """Fill a store, and search for changes; return what the search of a target costs, at first and each night.

    The runs of the first target are stored as uploaded ones are; those of the others are copies of its rows.
    """
    with closing(ResultsStore(f"sqlite:///{path}")) as store:
        store.open()
        names, searches = list(map(_name, range(size.tests))), list[StoreCost]()
        target = TargetKey(REPOSITORY, LAB, _target(0))
        for night, (run, columns) in enumerate(_runs(target, names, size)):
            store.put(run, columns)
            if night >= size.nights - 2:
                began = Stopwatch()
                store.write(store_moves, store.read(find_moves, target))
                searches.append(began.took())
        for number in range(1, size.targets):
            store.write(_copy_target, number, size)
    series = size.tests * NUMBERS
    return [
        _cost(f"search in {series:,} series of {size.nights - 1} nights", searches[0]),
        _cost("search after one more night", searches[1]),
    ]


def _copy_target(connection: sa.Connection, number: int, size: MeasuredSize) -> None:
    """Copy all rows of the first target. It is the only one of its suite, so its numbers in the tables are known."""
    rows, change = number * size.nights, schema.level_changes.c.id + f"-{number}"
    copies: list[tuple[sa.Table, str, dict[str, object]]] = [
        (schema.targets, "id", {"id": 1 + number, "target": sa.literal(_target(number))}),
        (schema.series, "id", {"id": 1 + number, "target_id": 1 + number}),
        (schema.runs, "target_id", {"id": schema.runs.c.id + rows, "target_id": 1 + number}),
        (schema.points, "series_id", {"id": schema.points.c.id + rows, "series_id": 1 + number}),
        (schema.checks, "target_id", {"target_id": 1 + number}),
        (schema.numbers, "series_id", {"series_id": 1 + number, "run_id": schema.numbers.c.run_id + rows}),
        (schema.searched_nights, "series_id", {"series_id": 1 + number}),
        (schema.level_changes, "series_id", {"id": change, "target_id": 1 + number, "series_id": 1 + number}),
    ]
    for table, key, changed in copies:
        _copy_rows(connection, table, table.c[key] == 1, changed)
    columns = schema.columns.c
    _copy_rows(connection, schema.columns, columns.run_id <= size.nights, {"run_id": columns.run_id + rows})


def _copy_rows(
    connection: sa.Connection, table: sa.Table, of_first: sa.ColumnElement[bool], changed: Mapping[str, object]
) -> None:
    """Insert copies of some rows of a table, with other values in the `changed` columns."""
    values = [sa.type_coerce(changed.get(column.name, column), column.type) for column in table.c]
    connection.execute(table.insert().from_select(list(table.c.keys()), sa.select(*values).where(of_first)))


def _runs(target: TargetKey, names: list[str], size: MeasuredSize) -> Iterator[tuple[Run, Columns]]:
    device, newest = MeasuringDevice(size.tests, seed=int(target.target.rpartition("-")[2])), time.time()
    cases = [Case(name, Status.PASSED) for name in names]
    for night in range(size.nights):
        columns = collect(cases, lambda case: (case.name, ""))
        columns.measurements = dict(zip(map(hash, names), device.night(), strict=True))
        moment = newest - (size.nights - night) * DAY
        key = RunKey(target.repository, target.lab, target.target, _sha(night), "1")
        admission = Admission(moment, mainline=True)
        yield Run(key, "etag", RunState.STORED, "", moment, 0, Claims(SUITE), admission), columns


def _cost(label: str, cost: StoreCost) -> Row:
    return {
        "what": label,
        "p50 ms": round(1000 * cost.seconds, 1),
        "p99 ms": "",
        "CPU ms": round(1000 * cost.cpu, 1),
        "statements": "",
    }


async def _page_row(site: DashboardSite, label: str, address: str, count: int) -> Row:
    statements = list[str]()
    event: Any = sa.event
    listener = event.listens_for(sa.Engine, "before_cursor_execute")(lambda *call: statements.append(call[2]))
    waits, used = list[float](), list[float]()
    try:
        for _ in range(count + 1):
            # The page is rendered after a change; writing that down is not part of the page.
            site.store.write(revisions.grow, REPOSITORY)
            statements.clear()
            began = Stopwatch()
            status, _, text = await site.get(address)
            cost = began.took()
            assert status == 200, (address, status, text[:300])
            waits.append(cost.seconds)
            used.append(cost.cpu)
    finally:
        event.remove(sa.Engine, "before_cursor_execute", listener)
    ordered = sorted(waits[1:])
    return {
        "what": label,
        "p50 ms": round(1000 * median(ordered), 1),
        "p99 ms": round(1000 * ordered[min(len(ordered) - 1, int(0.99 * len(ordered)))], 1),
        "CPU ms": round(1000 * median(used[1:]), 1),
        "statements": float(len(statements)),
    }


main = command(measure, TITLE, usual_rounds=1)

if __name__ == "__main__":
    main()
