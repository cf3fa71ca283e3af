"""Measure a bot to which nothing happens: what it writes, asks GitHub, how often it wakes, its memory and its start.

The first minutes are left out: what a start does, it does once.
"""

from __future__ import annotations

import asyncio
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from benchmarks.processes import descendants, resident_bytes
from benchmarks.report import Options, Row, command
from benchmarks.stage import BenchmarkStage, open_stage
from benchmarks.traffic import REPOSITORY
from sandbox.bucket import BucketServer

TITLE = "An idle bot, per hour"
SETTLING = 75.0
"""Seconds before the measurement, so that every timer of each minute has run once."""
SECONDS = 300.0
HOUR = 3600.0
MIB, KB = 1024 * 1024, 1000
WITHOUT_LABS = f"repositories:\n  {REPOSITORY}:\n"
BUCKET = "device-results"
LAB = """
  {repository}:
    results:
      bucket: {bucket}
      labs:
        example-lab: {{targets: {{hexagon-v73: {{tier: 2, label: "test: hexagon"}}}}}}
"""


@dataclass(frozen=True, slots=True)
class IdleSample:
    """The counters of a process: seconds of CPU, bytes written, times that its threads woke, requests to GitHub."""

    moment: float
    cpu: float
    written: int
    wakes: int
    requests: int

    @classmethod
    def of(cls, stage: BenchmarkStage) -> Self:
        """Read the counters."""
        process = Path(f"/proc/{stage.bot.pid}")
        return cls(
            moment=time.perf_counter(),
            cpu=stage.cpu(),
            written=_field(process / "io", "write_bytes"),
            wakes=sum(_field(task / "status", "voluntary_ctxt_switches") for task in (process / "task").iterdir()),
            requests=len(stage.github.requests.records),
        )


async def measure(options: Options) -> list[Row]:
    """Measure a bot without labs, then one with a lab, then one with ten repositories with labs."""
    with BucketServer() as server:
        server.create_bucket(BUCKET)
        return [
            await _idle(options, "no labs", WITHOUT_LABS, server),
            await _idle(options, "one lab", with_labs(1), server),
            await _idle(options, "ten repositories with labs", with_labs(10), server),
        ]


def with_labs(repositories: int) -> str:
    """Return an app.yaml with so many repositories that have a lab; the App is installed on the first one."""
    names = [REPOSITORY, *(f"{REPOSITORY}-{number}" for number in range(2, repositories + 1))]
    return "repositories:" + "".join(LAB.format(repository=name, bucket=BUCKET) for name in names)


async def _idle(options: Options, label: str, config: str, server: BucketServer) -> Row:
    async with open_stage(options.database, config=config, bucket=server.environment) as stage:
        await asyncio.sleep(SETTLING)
        before = IdleSample.of(stage)
        await asyncio.sleep(options.seconds(SECONDS))
        after = IdleSample.of(stage)
        seconds = after.moment - before.moment
        row: Row = {
            "what": label,
            "written kB/h": round((after.written - before.written) / KB * HOUR / seconds, 1),
            "CPU s/h": round((after.cpu - before.cpu) * HOUR / seconds, 2),
            "wake-ups/s": round((after.wakes - before.wakes) / seconds, 2),
            "requests to GitHub/h": round((after.requests - before.requests) * HOUR / seconds, 1),
            "RSS MiB": round(stage.memory() / MIB, 1),
            "RSS of its processes MiB": round(sum(map(resident_bytes, descendants(stage.bot.pid))) / MIB, 1),
            "threads": _count_threads(stage.bot.pid),
        }
    return row


def _count_threads(pid: int) -> int:
    return len(list(Path(f"/proc/{pid}/task").iterdir()))


def _field(path: Path, name: str) -> int:
    for line in path.read_text(encoding="utf-8").splitlines():
        label, _, value = line.partition(":")
        if label == name:
            return int(value.split()[0])
    raise LookupError(f"{path} has no {name}")


main = command(measure, TITLE, usual_rounds=1)

if __name__ == "__main__":
    main()
