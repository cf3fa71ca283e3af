"""Measure the dashboard on 10^8 results: each page, rendered and stored, its SQL, memory, and webhooks meanwhile.

A *rendered* page is what a signed-in reader gets, or anybody after a change. A *stored* page is what everybody else
gets until the repository's results change. The benchmark first creates the store of results, which takes some minutes.
`NIGHTJAR_PAGES_STORE` names a file to copy it from, or to create it in. `/operate` and the page that mutes a test are
left out: they are for people who have signed in.
"""

from __future__ import annotations

import asyncio
import contextlib
import gzip
import os
import shutil
import tempfile
import time
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import median
from typing import Any

import click
import sqlalchemy as sa
from nightjar_formats.model import RunKey
from nightjar_formats.runs.artifacts import LOG

from benchmarks.load import Load, generate
from benchmarks.pages_store import (
    LABS,
    REPOSITORY,
    SUITE,
    StoreSize,
    create_store,
    flaky_test,
    log_of_run,
    sha_of_run,
    store_head,
    targets_of,
)
from benchmarks.report import Options, Row, command
from benchmarks.results_store import name_of
from benchmarks.stage import SQLITE, BenchmarkStage, open_stage
from benchmarks.traffic import templates, write
from bot.aws.store_folder import store_folder_of
from bot.engine.service import Engine
from bot.results.store.store import ResultsStore
from bot.results.store.tables import revisions
from bot.results.store.write.pending_checks import announced, scheduled_checks
from handlers.searches.handler import MOST_COMMITS
from handlers.searches.records import CULPRIT_SEARCH, SEARCH_SUMMARY, SearchSummary
from tests.handlers.dashboard.site import dashboard_site
from tests.handlers.dashboard.stored_history import REPOSITORY_ID
from tests.handlers.dashboard.stored_searches import REQUEST, a_search

TITLE = "The dashboard on a store of 10^8 results"
STORE = "NIGHTJAR_PAGES_STORE"
QUICK = StoreSize(runs=20)
RENDERED, STORED, REQUESTS = 20, 100, 1_000
SECONDS, ROUNDS, RATE = 10.0, 3, 50.0
TENTH = 10
PULL, PULLS = 5, 20
RESTED_WITHIN = 15.0
KILOBYTE, MEBIBYTE = 1_000, 1 << 20

HERE = f"/r/{REPOSITORY}"
FIRST, SECOND = (f"{LABS[0]}/board-{number}" for number in range(2))
CULPRIT = a_search(replace(REQUEST, bad="b" * 40), MOST_COMMITS)
"""A search in as many commits as the bot searches at most."""


@dataclass(frozen=True, slots=True)
class MeasuredPage:
    """A page to measure, with its address."""

    name: str
    address: str


def measured_pages(size: StoreSize) -> list[MeasuredPage]:
    """Return the pages to measure on a store of this size."""
    newest, older = sha_of_run(size.runs - 1), sha_of_run(size.runs - 8)
    run, series = f"{HERE}/runs/{FIRST}/{newest}/run-1", f"id={name_of(42)}&measurement=latency"
    addresses = {
        "overview": "/",
        "grid: 20 targets": HERE,
        "grid: a target": f"{HERE}?target={FIRST}",
        "grid: folders of a suite": f"{HERE}?target={FIRST}&suite={SUITE}",
        "grid: new failures of all": f"{HERE}?status=new-failure",
        "grid: a part of names": f"{HERE}?q=operators_77",
        "run": run,
        "test on 20 targets": f"{HERE}/tests?id={name_of(4242)}",
        "test, flaky on 20 targets": f"{HERE}/tests?id={flaky_test(size.tests)}",
        "test on one target": f"{HERE}/tests?id={name_of(4242)}&target={FIRST}",
        "compare": f"{HERE}/compare?target={FIRST}&base={older}&head={newest}",
        "flaky": f"{HERE}/flaky",
        "slow": f"{HERE}/slow",
        "skipped": f"{HERE}/skipped",
        "commit": f"{HERE}/commits/{newest}",
        "compare two targets": f"{HERE}/compare/targets?target={FIRST}&against={SECOND}",
        "log of a run": f"{run}/files/log.txt",
        "log of a run, at a test": f"{run}/files/log.txt?test={name_of(4242)}",
        "fixes": f"{HERE}/fixes",
        "measurements": f"{HERE}/measurements",
        "measurements of a target": f"{HERE}/measurements?target={FIRST}",
        "measurement on 20 targets": f"{HERE}/measurements/series?{series}",
        "measurement on one target": f"{HERE}/measurements/series?{series}&target={FIRST}",
        "map of measurements": f"{HERE}/measurements/map?target={FIRST}&base={older}&head={newest}",
        "map of all targets": f"{HERE}/measurements/map?target={FIRST}&base={older}&head={newest}&all_targets=true",
        "badge of a measurement": f"{HERE}/badge.svg?{series}&target={FIRST}",
        "searches": f"{HERE}/searches",
        "search for a culprit": f"{HERE}/searches/{CULPRIT.id}",
        "lab": f"{HERE}/labs/{LABS[0]}",
        "labs": f"{HERE}/labs",
        "all labs": "/labs",
        "search: a part of names": "/search?q=operators_77",
        "search of a repository": f"{HERE}/search?q=operators_77",
        "search: a commit": f"/search?q={newest[:8]}",
        "pull requests": f"{HERE}/pulls",
        "pull request": f"{HERE}/pulls/{PULL}",
        "nightly": f"{HERE}/nightly",
        "picture of the grid": f"{HERE}/grid.png",
        "badge": f"{HERE}/badge/{FIRST}.svg",
        "feed": f"{HERE}/regressions.atom",
        "commands": "/help",
    }
    return [MeasuredPage(name, address.replace("[", "%5B").replace("]", "%5D")) for name, address in addresses.items()]


HOT = ("overview", "grid: 20 targets", "grid: a target", "run", "test on one target", "compare", "flaky", "lab")
"""The pages that the load asks for."""


async def measure(options: Options) -> list[Row]:
    """Measure each page, then memory, throughput, and webhooks during page loads."""
    if options.database != SQLITE:
        raise SystemExit("the store of the pages is made in SQLite alone")
    size = QUICK if options.quick else StoreSize()
    pages = measured_pages(size)
    with _stored(size) as path:
        sql = await _sql_of(path, pages)
        async with open_stage(config=_config(), database_url=f"sqlite:///{path}") as stage:
            await _deliveries(stage)
            _store_head(path, size, stage)
            await _store_search(path, stage.repo.id)
            rows, other_rows = list[Row](), list[Row]()
            for work in (_throughput, _webhooks):
                other_rows += await work(stage, pages, options)
                click.echo(other_rows[-3:], err=True)
            await _rested(stage)
            with closing(ResultsStore(f"sqlite:///{path}")) as store:
                for page in pages:
                    rows.append(await _page_row(stage, store, page, sql[page.name], options))
                    click.echo(rows[-1], err=True)
                return rows + other_rows + await _memory(stage, store, pages, options)


@contextlib.contextmanager
def _stored(size: StoreSize) -> Iterator[Path]:
    """Create the store, or copy an existing one, because the bot writes to it. It is removed at the end."""
    folder = Path(tempfile.mkdtemp(prefix="nightjar-bench-"))
    path = folder / "nightjar.db"
    made = Path(os.environ.get(STORE) or path)
    try:
        create_store(made, size)
        if made != path:
            shutil.copyfile(made, path)
        _show_all_checks(path)
        _store_log(path, size)
        yield path
    finally:
        shutil.rmtree(folder)


def _show_all_checks(path: Path) -> None:
    """Mark the check runs of all runs as written. Otherwise the bot writes thousands of them during the measurement."""
    store = ResultsStore(f"sqlite:///{path}")
    store.open()
    for check in store.read(scheduled_checks, REPOSITORY, time.time(), 0.0, 0.0):
        store.write(announced, check)
    store.close()


def _store_log(path: Path, size: StoreSize) -> None:
    """Store the log of the run whose pages are measured in the folder beside the database."""
    key = RunKey(REPOSITORY, LABS[0], targets_of(LABS[0])[0], sha_of_run(size.runs - 1), "run-1")
    folder = store_folder_of(str(path)) / "results" / key.folder
    folder.mkdir(parents=True)
    (folder / LOG).write_bytes(log_of_run())


async def _store_search(path: Path, repository_id: int) -> None:
    """Store the search for a culprit."""
    summary = SearchSummary.of(CULPRIT)
    async with Engine(f"sqlite:///{path}") as engine:
        await engine.records.put(CULPRIT_SEARCH.of(repository_id, CULPRIT.id), CULPRIT)
        await engine.records.put(SEARCH_SUMMARY.of(repository_id, summary.place), summary)


def _store_head(path: Path, size: StoreSize, stage: BenchmarkStage) -> None:
    """Store results of the head of the pull request whose page is measured."""
    head = next(pull.head_sha for pull in stage.repo.pulls if pull.number == PULL)
    store = ResultsStore(f"sqlite:///{path}")
    store.open()
    store_head(store, size, head, PULL, time.time())
    store.close()
    _show_all_checks(path)


def _config() -> str:
    labs = "".join(f"        {lab}: {{targets: [{', '.join(targets_of(lab))}]}}\n" for lab in LABS)
    return (
        "http: {pages_per_minute: 100000}\n"
        f"repositories:\n  {REPOSITORY}:\n    nightly:\n    merge:\n"
        f"    results:\n      poll: 1d\n      labs:\n{labs}"
    )


async def _sql_of(path: Path, pages: list[MeasuredPage]) -> dict[str, tuple[float, int]]:
    """Return the milliseconds and the number of each page's statements: the median of three."""
    taken, began = list[float](), list[float]()
    event: Any = sa.event
    start_listener = event.listens_for(sa.Engine, "before_cursor_execute")(lambda *_: began.append(time.perf_counter()))
    end_listener = event.listens_for(sa.Engine, "after_cursor_execute")(
        lambda *_: taken.append(time.perf_counter() - began.pop())
    )
    sql_by_page = {}
    try:
        folder = Path(tempfile.mkdtemp(prefix="nightjar-bench-"))
        # The site stores a repository with an ID of its own, so it gets a copy.
        shutil.copyfile(path, folder / "copy.db")
        await _store_search(folder / "copy.db", REPOSITORY_ID)
        async with dashboard_site(
            folder, config=_config(), public={REPOSITORY}, filled=lambda _: None, database=f"sqlite:///{folder}/copy.db",
            clock=time.time, bucket=store_folder_of(str(path)),
        ) as site:  # fmt: skip
            for page in pages:
                measurements = []
                for _ in range(4):
                    site.store.write(revisions.grow, REPOSITORY)
                    taken.clear()
                    await site.get(page.address)
                    measurements.append((1000 * sum(taken), len(taken)))
                sql_by_page[page.name] = (
                    round(median(milliseconds for milliseconds, _ in measurements[1:]), 1),
                    measurements[-1][1],
                )
        shutil.rmtree(folder)
    finally:
        event.remove(sa.Engine, "before_cursor_execute", start_listener)
        event.remove(sa.Engine, "after_cursor_execute", end_listener)
    return sql_by_page


async def _deliveries(stage: BenchmarkStage) -> None:
    """Have the bot handle comments on some pull requests, for their pages."""
    path = stage.folder / "comments.json"
    write(path, templates(stage.github, stage.repo, PULLS)["comments"])
    await generate(Load(stage.bot.port, str(path), 4, 30.0, warm_up=0.0, count=20 * PULLS))
    await _rested(stage)


async def _rested(stage: BenchmarkStage) -> None:
    """Wait for the jobs of deliveries, but not for jobs that wait for the bucket, which does not exist."""
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(RESTED_WITHIN):
            await stage.drained()


async def _page_row(
    stage: BenchmarkStage, store: ResultsStore, page: MeasuredPage, sql: tuple[float, int], options: Options
) -> Row:
    await _render(stage, store, page.address)
    cpu = stage.cpu()
    rendered = [await _render(stage, store, page.address) for _ in range(options.count(RENDERED))]
    cpu = 1000 * (stage.cpu() - cpu) / len(rendered)
    stored = [await _ask(stage, page.address) for _ in range(options.count(STORED) + 1)][1:]
    async with stage.http.get(stage.bot.url + page.address) as answer:
        size = len(gzip.compress(await answer.read(), 6))
    return {
        "what": page.name,
        "rendered p50 ms": _at(rendered, 0.5),
        "p99 ms": _at(rendered, 0.99),
        "CPU ms": round(cpu, 1),
        "SQL ms": sql[0],
        "statements": float(sql[1]),
        "stored p50 ms": _at(stored, 0.5),
        "stored p99 ms": _at(stored, 0.99),
        "kB sent": round(size / KILOBYTE, 1),
        "other": "",
    }


async def _ask(stage: BenchmarkStage, address: str) -> float:
    began = time.perf_counter()
    async with stage.http.get(stage.bot.url + address, headers={"Accept": "text/html"}) as answer:
        body = await answer.read()
        if answer.status != 200:
            raise AssertionError(f"{address}: {answer.status} {body[:300]!r}")
    return time.perf_counter() - began


async def _render(stage: BenchmarkStage, store: ResultsStore, address: str) -> float:
    """Request a page after a change of the results, so that the bot renders it."""
    store.write(revisions.grow, REPOSITORY)
    return await _ask(stage, address)


def _at(waits: list[float], share: float) -> float:
    return round(1000 * sorted(waits)[min(len(waits) - 1, int(share * len(waits)))], 1)


async def _memory(stage: BenchmarkStage, store: ResultsStore, pages: list[MeasuredPage], options: Options) -> list[Row]:
    grown, count = [stage.memory()], options.count(REQUESTS)
    for first in (0, count):
        for number in range(first, first + count):
            address = pages[number % len(pages)].address
            await (_ask(stage, address) if number % TENTH else _render(stage, store, address))
        grown.append(stage.memory())
    text = " → ".join(f"{used_bytes / MEBIBYTE:.0f}" for used_bytes in grown)
    return [_other("MiB in memory, before, and after 1,000 and 2,000 requests, a tenth of them rendered", text)]


async def _throughput(stage: BenchmarkStage, pages: list[MeasuredPage], options: Options) -> list[Row]:
    """Request hot pages with eight connections. The bot has one core of the machine, the load generator another."""
    rows = []
    for page in pages:
        await _ask(stage, page.address)
    cores = sorted(os.sched_getaffinity(0))
    _pin(stage.bot.pid, {cores[0]})
    try:
        for name, some in (("hot pages", HOT), ("… the grid alone", HOT[1:2])):
            cpu = stage.cpu()
            load = _load_of(stage, pages, some, options.seconds(SECONDS) / 3)
            waits = await generate(replace(load, connections=8, rate=None))
            cpu_each = 1000 * (stage.cpu() - cpu) / waits.sent
            text = f"{waits.per_second:.0f}/s on one core, p99 {waits.p99:.0f} ms; CPU ms each {cpu_each:.1f}"
            rows.append(_other(f"{name}, as fast as they come", text))
    finally:
        _pin(stage.bot.pid, set(cores))
    return rows


def _pin(pid: int, cores: set[int]) -> None:
    for thread in Path(f"/proc/{pid}/task").iterdir():
        with contextlib.suppress(ProcessLookupError):
            os.sched_setaffinity(int(thread.name), cores)


def _load_of(stage: BenchmarkStage, pages: list[MeasuredPage], some: tuple[str, ...], seconds: float) -> Load:
    addresses = tuple(page.address for page in pages if page.name in some)
    return Load(stage.bot.port, "", 16, seconds, RATE, pages=addresses)


async def _webhooks(stage: BenchmarkStage, pages: list[MeasuredPage], options: Options) -> list[Row]:
    """Send 50 webhooks a second, alone and together with 50 page requests a second, in turn."""
    path = stage.folder / "templates.json"
    write(path, templates(stage.github, stage.repo, PULLS)["unwanted"])
    seconds = options.seconds(SECONDS)
    hooks = Load(stage.bot.port, str(path), 16, seconds, RATE)
    alone, beside, read = [], [], []
    for _ in range(1 if options.quick else ROUNDS):
        await _rested(stage)
        alone.append(await generate(hooks))
        await _rested(stage)
        results = await asyncio.gather(generate(hooks), generate(_load_of(stage, pages, HOT, seconds)))
        beside.append(results[0])
        read.append(results[1])
    statuses = {status for waits in (*alone, *beside) for status in waits.statuses}
    if statuses != {"202"} or any(set(waits.statuses) != {"200"} for waits in read):
        raise AssertionError(f"not everything was answered: {alone} {beside} {read}")
    waits_by_label = {
        "webhooks at 50/s, alone": alone,
        "webhooks at 50/s, beside 50 pages a second": beside,
        "pages at 50/s, beside webhooks": read,
    }
    return [
        _other(
            label,
            f"p50 {median(waits.p50 for waits in rounds):.1f} ms, p99 {median(waits.p99 for waits in rounds):.1f} ms",
        )
        for label, rounds in waits_by_label.items()
    ]


COLUMNS = (
    *("rendered p50 ms", "p99 ms", "CPU ms", "SQL ms", "statements"),
    *("stored p50 ms", "stored p99 ms", "kB sent"),
)


def _other(label: str, text: str) -> Row:
    return {
        "what": label,
        **dict.fromkeys(COLUMNS, ""),
        "other": text,
    }


main = command(measure, TITLE, usual_rounds=1)

if __name__ == "__main__":
    main()
