"""Ingest a nightly run of 3.6 million results like the bot: its pool reads reports, and one writer stores them.

There are 20 targets with 180,000 tests in one JUnit file each. First all names are new; a second run has the same.
"""

from __future__ import annotations

import asyncio
import os
import shutil
import tempfile
import time
from functools import partial
from pathlib import Path

from nightjar_formats.model import Claims, RunKey

from benchmarks import junit_file
from benchmarks.report import Options, Row, command
from bot.app.services import new_pool
from bot.core.untrusted.pool import Pool
from bot.core.untrusted.queue import Owner
from bot.results.compare.searching import write_in_thread
from bot.results.ingest.parse import parse_run
from bot.results.state import Admission, Run, RunState
from bot.results.store.store import ResultsStore

TITLE = "A nightly run of 3.6 million results of 20 targets, ingested"
TARGETS, CASES = 20, 180_000
RUNS = ("all names are new", "the same tests")
AT_ONCE = 3
"""Runs that are read or stored at the same time: one more than processes that read."""
REPOSITORY, LAB, SUITE = "octocat/compiler", "example-lab", "operators"
DAY = 86_400.0


async def measure(options: Options) -> list[Row]:
    """Write the files of all targets, then ingest them; only that is timed."""
    folder = Path(tempfile.mkdtemp(prefix="nightjar-bench-"))
    store = ResultsStore(f"sqlite:///{folder}/nightjar.db")
    store.open()
    pool = new_pool()
    rows: list[Row] = []
    cases = options.count(CASES)
    try:
        for number, label in enumerate(RUNS):
            paths = [folder / f"{target}.xml" for target in range(TARGETS)]
            for target, path in enumerate(paths):
                listed = junit_file.write(path, cases, number * TARGETS + target)
            nightly = _NightlyRun(store, pool, number, frozenset(listed))
            began = time.perf_counter()
            await asyncio.gather(*(nightly.ingest(target, path) for target, path in enumerate(paths)))
            seconds = time.perf_counter() - began
            rows.append(_row(label, TARGETS * cases, seconds))
    finally:
        pool.close()
        store.close()
        shutil.rmtree(folder)
    return rows


class _NightlyRun:
    """One nightly run of all targets."""

    def __init__(self, store: ResultsStore, pool: Pool, number: int, listed: frozenset[str]) -> None:
        self._store, self._pool, self._number, self._listed = store, pool, number, listed
        self._turns = asyncio.Semaphore(AT_ONCE)

    async def ingest(self, target: int, path: Path) -> None:
        """Read a target's file in the pool, and store its run."""
        owner = Owner(REPOSITORY, f"{LAB}/board-{target}")
        async with self._turns:
            with path.open("rb") as file:
                size = os.fstat(file.fileno()).st_size
                limits, names = self._pool.limits.run, [("junit.xml", "junit")]
                columns, _ = await self._pool.run(owner, limits, parse_run, names, self._listed, files=[file])
            run = _run(target, self._number, size)
            await write_in_thread(partial(self._store.put, run, columns), self._pool, owner)


def _run(target: int, number: int, size: int) -> Run:
    key = RunKey(REPOSITORY, LAB, f"board-{target}", f"{number + 1:040x}", "1")
    admission = Admission(DAY * number, mainline=True)
    return Run(key, "etag", RunState.STORED, "", DAY * number, size, Claims(SUITE), admission)


def _row(label: str, results: int, seconds: float) -> Row:
    return {
        "nightly run": label,
        "results": results,
        "s": round(seconds, 1),
        "results a second": round(results / seconds),
    }


main = command(measure, TITLE, usual_rounds=1)

if __name__ == "__main__":
    main()
