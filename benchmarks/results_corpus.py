"""Measure parsing and storing a device lab's nightly runs, compared with raw expat, and one more run after all of them.

All figures are processor time of this process. Work that the bot gives to other processes also runs here.
"""

from __future__ import annotations

import io
import shutil
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from xml.parsers import expat

from nightjar_formats.model import Claims, RunKey, TargetKey

from benchmarks.device_corpus import BOARDS, BoardRun, runs
from benchmarks.report import Options, Row, command
from bot.core.memory import freeze_startup_objects
from bot.results.ingest.parse import parse_run
from bot.results.state import Admission, Run, RunState
from bot.results.store.store import ResultsStore

TITLE = "A device lab's 1,144 nightly runs, parsed and stored"
REPOSITORY, LAB, SUITE = "octocat/compiler", "example-lab", "devices"
DAY = 86_400.0
NAMES = [("twister.xml", "junit")]
FILES = frozenset(f"tests/kernel/topic_{number}/src/main.c" for number in range(64))


async def measure(options: Options) -> list[Row]:
    """Ingest every run."""
    freeze_startup_objects()  # as in the bot and in the processes of its pool
    rows = []
    for boards, detailed in ((3 if options.quick else BOARDS, False), (3, True)):
        folder = Path(tempfile.mkdtemp(prefix="nightjar-bench-"))
        try:
            rows += Corpus(folder, detailed=detailed).measure(boards)
        finally:
            shutil.rmtree(folder)
    return rows


class Corpus:
    """A store in a folder, and the seconds of processor time that its runs took."""

    def __init__(self, folder: Path, *, detailed: bool = False) -> None:
        self._detailed = detailed
        self._path = folder / "nightjar.db"
        self.store = ResultsStore(f"sqlite:///{self._path}")
        self.store.open()
        self.expat = self.parse = self.put = 0.0
        self.tests = 0
        self.puts: list[float] = []

    def measure(self, boards: int) -> list[Row]:
        """Ingest all runs of some boards; return the measurements."""
        for board_run in runs(boards, detailed=self._detailed):
            self.take(board_run)
        self.store.close()
        size = self._path.stat().st_size
        kind = "detailed reports: " if self._detailed else ""
        rows: list[tuple[str, float]] = [
            ("tests in all runs", self.tests),
            ("expat, callbacks that count: CPU s", round(self.expat, 2)),
            ("parsed and folded: CPU s", round(self.parse, 2)),
            ("stored: CPU s", round(self.put, 2)),
            ("parsed and stored, of expat's CPU", round((self.parse + self.put) / self.expat, 2)),
            ("stored, of expat's CPU", round(self.put / self.expat, 2)),
            ("the median put, CPU ms", round(1000 * sorted(self.puts)[len(self.puts) // 2], 1)),
            ("the longest put, CPU ms", round(1000 * max(self.puts), 1)),
            ("bytes for each result", round(size / self.tests, 2)),
        ]
        return [{"what": kind + label, "measured": measured} for label, measured in rows]

    def take(self, board_run: BoardRun) -> None:
        """Read a run with expat alone, then as the bot does, and store it."""
        self.expat += _timed(lambda: _count(board_run.report))
        began = time.process_time()
        parsed = parse_run([io.BytesIO(board_run.report)], NAMES, FILES)
        parse = time.process_time() - began
        put = _timed(lambda: self.store.put(run_of(board_run), parsed.columns))
        self.parse += parse
        self.put += put
        self.puts.append(put)
        self.tests += len(parsed.columns)


def run_of(board_run: BoardRun) -> Run:
    """Return everything about a run except its tests."""
    moment = DAY * board_run.version
    target = TargetKey(REPOSITORY, LAB, f"board-{board_run.board}")
    key = RunKey(REPOSITORY, LAB, target.target, f"{board_run.version + 1:040x}", "1")
    return Run(key, "etag", RunState.STORED, "", moment, 0, Claims(SUITE), Admission(moment, mainline=True))


def _timed(work: Callable[[], object]) -> float:
    began = time.process_time()
    work()
    return time.process_time() - began


def _count(report: bytes) -> None:
    parser = expat.ParserCreate()
    seen = 0

    def start(_: str, __: dict[str, str]) -> None:
        nonlocal seen
        seen += 1

    parser.StartElementHandler = start
    parser.EndElementHandler = lambda _: None
    parser.CharacterDataHandler = lambda _: None
    parser.Parse(report, True)


main = command(measure, TITLE, usual_rounds=1)

if __name__ == "__main__":
    main()
