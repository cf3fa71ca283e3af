"""Compare real kernels with themselves, and with more of the same work, as `@ci benchmark` compares base and head.

Each comparison runs until its interval is 2 % to each side. A slowdown is work: of 100 calls, 102, 105 or 110. The
kernels are those of ONNX Runtime and Apache TVM if `make suite-demo`'s environment is installed
(`make .venv-suite/.ready`), else of NumPy.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from nightjar_formats.measurements import Better, Measurement
from nightjar_formats.runs.few_tests import HEAD
from nightjar_lab.benchmark import MeasurementKey, SideRun, compare

from benchmarks.report import Options, Row, command

TITLE = "Two sides that run in turn on this machine"
ROOT = Path(__file__).parents[1]
SUITE = ROOT / ".venv-suite"
PAIRS = 200
"""Comparisons of equal sides; of each slowdown, a quarter."""
SLOWDOWNS = (0, 2, 5, 10)
"""Percent."""
CALLS = 100
PRECISION, SECONDS = 0.02, 30.0


@dataclass(slots=True)
class Kernels:
    """A process that runs kernels."""

    process: subprocess.Popen[str]
    names: list[str] = field(default_factory=list)

    def seconds(self, name: str, calls: int) -> float:
        """Return how long so many calls of a kernel take: the median of a few times."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write(f"{name}\t{calls}\n")
        self.process.stdin.flush()
        return float(self.process.stdout.readline())


@contextmanager
def kernels() -> Iterator[Kernels]:
    """Start the process, and end it."""
    python = str(SUITE / "bin" / "python") if (SUITE / ".ready").exists() else sys.executable
    environment = {**os.environ, "OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1", "TVM_NUM_THREADS": "1"}
    arguments = [python, str(ROOT / "benchmarks" / "pair_kernels.py")]
    with subprocess.Popen(
        arguments, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        yield Kernels(process, process.stdout.readline().rstrip("\n").split("\t"))
        process.stdin.close()


async def measure(options: Options) -> list[Row]:
    """Compare each kernel in turn."""
    rows: list[Row] = []
    with kernels() as running:
        for slowdown in SLOWDOWNS:
            pairs = options.count(PAIRS if slowdown == 0 else PAIRS // 4)
            blocks = differ = held = precise = 0
            for number in range(pairs):
                report = compare(
                    PRECISION, SECONDS, _runner(running, running.names[number % len(running.names)], slowdown)
                )
                ratio = report.measurements[0].interval
                blocks += report.blocks
                differ += ratio.excludes_one
                held += ratio.low <= 1 + slowdown / 100 <= ratio.high
                precise += ratio.width <= PRECISION
            rows.append(
                {
                    "kernels": ", ".join(running.names),
                    "slowdown": f"{slowdown} %",
                    "comparisons": pairs,
                    "exclude 1, %": 100 * differ / pairs,
                    "hold the slowdown, %": 100 * held / pairs,
                    "precise, %": 100 * precise / pairs,
                    "blocks": blocks / pairs,
                }
            )
    return rows


def _runner(running: Kernels, name: str, slowdown: int) -> Callable[[str, int], SideRun]:
    def run(side: str, _: int) -> SideRun:
        seconds = running.seconds(name, CALLS + slowdown if side == HEAD else CALLS)
        key = MeasurementKey(name, "latency")
        return SideRun({key: Measurement("latency", seconds, "s", Better.LOWER)}, ())

    return run


main = command(measure, TITLE, usual_rounds=1)

if __name__ == "__main__":
    main()
