"""Read a JUnit file in one way, and print its cost as JSON: `results_parse_one WAY FOLDER URL`."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable
from pathlib import Path
from xml.parsers import expat

import junitparser
from nightjar_formats import readers
from nightjar_formats.columns.collect import Columns, collect
from nightjar_formats.model import Claims, RunKey
from nightjar_formats.runs.identity import Resolver

from benchmarks.processes import KIB, peak_bytes, resident_bytes
from bot.results.state import Admission, Run, RunState
from bot.results.store.store import ResultsStore

MIB = KIB * KIB


def main() -> None:
    """Read the file and print the cost."""
    way, folder, url = sys.argv[1], Path(sys.argv[2]), sys.argv[3]
    work = _prepared(way, folder, url)
    bytes_before = resident_bytes("self")
    began, cpu = time.perf_counter(), time.process_time()
    work()
    seconds, cpu = time.perf_counter() - began, time.process_time() - cpu
    print(json.dumps({"seconds": seconds, "cpu": cpu, "growth": (peak_bytes("self") - bytes_before) / MIB}))


def _prepared(way: str, folder: Path, url: str) -> Callable[[], object]:
    path = folder / "junit.xml"
    if way == "expat":
        return lambda: _expat(path)
    if way == "junitparser":
        return lambda: sum(1 for suite in junitparser.JUnitXml.fromfile(str(path)) for _ in suite)
    if way == "read":
        return lambda: _read(path)
    resolver = Resolver(json.loads((folder / "files.json").read_text(encoding="utf-8")))
    if way == "collected":
        return lambda: _collected(path, resolver)
    store = ResultsStore(url)
    store.open()
    return lambda: store.put(_run(way), _collected(path, resolver))


def _expat(path: Path) -> None:
    parser = expat.ParserCreate()
    seen = 0

    def start(_: str, __: dict[str, str]) -> None:
        nonlocal seen
        seen += 1

    parser.StartElementHandler = start
    parser.EndElementHandler = lambda _: None
    parser.CharacterDataHandler = lambda _: None
    with path.open("rb") as file:
        parser.ParseFile(file)


def _read(path: Path) -> int:
    with path.open("rb") as file:
        return sum(1 for _ in readers.read_runs(file, path.name, "junit"))


def _collected(path: Path, resolver: Resolver) -> Columns:
    with path.open("rb") as file:
        return collect(readers.read_runs(file, path.name, "junit"), resolver.resolve, resolver.head_of)


def _run(run_id: str) -> Run:
    key = RunKey("octocat/compiler", "example-lab", "adreno", "a" * 40, run_id)
    return Run(key, "etag", RunState.STORED, "", time.time(), 0, Claims("relax"), Admission(1.0, mainline=True))


if __name__ == "__main__":
    main()
