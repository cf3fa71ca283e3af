"""Measure a large JUnit file from its first byte to the database, compared with parsers that only read it.

Run `python -m benchmarks.results_parse`. Each way has its own process: `python -m benchmarks.results_parse_one`.
"""

from __future__ import annotations

import asyncio
import json
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

from benchmarks import junit_file
from benchmarks.report import Options, Row, command
from benchmarks.stage import DURABLE, POSTGRESQL
from tests.postgres import running_server

TITLE = "A JUnit file of 300,000 cases, parsed and stored"
CASES = 300_000
WAYS = {
    "expat": "expat, callbacks that count",
    "junitparser": "junitparser",
    "read": "our reader alone",
    "collected": "… names resolved, folded to columns",
    "stored": "… and stored: a new suite",
    "again": "… and stored: the same tests once more",
}


async def measure(options: Options) -> list[Row]:
    """Read the same file in each way."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        path = folder / "junit.xml"
        files = junit_file.write(path, options.count(CASES))
        (folder / "files.json").write_text(json.dumps(files), encoding="utf-8")
        if options.database == POSTGRESQL:
            with running_server(DURABLE) as server:
                return await _every(folder, server.create_database)
        return await _every(folder, lambda: f"sqlite:///{tempfile.mkdtemp(dir=folder)}/nightjar.db")


async def _every(folder: Path, new_database: Callable[[], str]) -> list[Row]:
    rows: list[Row] = []
    url = ""
    for way, label in WAYS.items():
        url = new_database() if way == "stored" else url
        took = await _one(way, folder, url)
        first = rows[0] if rows else {"CPU s": took["cpu"]}
        rows.append(
            {
                "what": label,
                "s": round(took["seconds"], 2),
                "CPU s": round(took["cpu"], 2),
                "of expat's CPU": round(took["cpu"] / float(first["CPU s"]), 1),
                "memory growth MiB": round(took["growth"], 1),
            }
        )
    return rows


async def _one(way: str, folder: Path, url: str) -> dict[str, float]:
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "benchmarks.results_parse_one", way, folder, url, stdout=asyncio.subprocess.PIPE
    )
    output, _ = await process.communicate()
    if process.returncode:
        raise RuntimeError(f"{way} failed")
    measured: dict[str, float] = json.loads(output)
    return measured


main = command(measure, TITLE)

if __name__ == "__main__":
    main()
