"""Measure the gaps between the jobs of one pull request, and the cost of a job. Only the engine runs."""

from __future__ import annotations

import contextlib
import io
import itertools
import tempfile
import time
from functools import partial
from pathlib import Path
from statistics import median

from benchmarks.report import Options, Row, command
from benchmarks.stage import DRAINED_WITHIN, DURABLE, POSTGRESQL
from bot.core import logs
from bot.engine.service import Engine, WorkerPace
from tests.engine.running import opened, running, settled
from tests.engine.toy import World, body, writes
from tests.postgres import running_server
from tests.waiting import until

TITLE = "Deliveries with one handler and one effect each: three jobs that follow each other"
DELIVERIES = 20
PULLS = 20


async def measure(options: Options) -> list[Row]:
    """Queue deliveries of one pull request, then of many, and time a worker that processes them."""
    logs.configure(stream=io.StringIO(), pretty=False)
    with contextlib.ExitStack() as held:
        folder = Path(held.enter_context(tempfile.TemporaryDirectory()))
        server = held.enter_context(running_server(DURABLE)) if options.database == POSTGRESQL else None

        def fresh(name: str) -> str:
            return server.create_database() if server else f"sqlite:///{folder}/{name}.db"

        one_pull = await _work(fresh("one"), folder / "one.world", pulls=1, deliveries_each=DELIVERIES)
        many = await _work(fresh("many"), folder / "many.world", pulls=PULLS, deliveries_each=options.count(DELIVERIES))
    return [{"what": "one pull request"} | one_pull, {"what": f"{PULLS} pull requests at once"} | many]


async def _work(url: str, place: Path, *, pulls: int, deliveries_each: int) -> Row:
    with contextlib.closing(World(place)) as world:
        guids = [f"{number}-{pull}" for number in range(deliveries_each) for pull in range(pulls)]
        async with opened(url) as outside:
            for guid in guids:
                await outside.accept(guid, "issue_comment", body({"a": writes("x")}), f"pr:1#{guid.partition('-')[2]}")
        async with running(url, world, pace=WorkerPace()) as engine:
            began, cpu = time.perf_counter(), time.process_time()
            await until(partial(_drained, engine), deadline=DRAINED_WITHIN)
            took, used = time.perf_counter() - began, time.process_time() - cpu
            await settled(engine, guids[-1])
        starts: dict[str, list[float]] = {}
        for note, moment, _ in world.moments(""):
            starts.setdefault(note.split()[1].partition("-")[2], []).append(moment)
    gaps = [later - earlier for times in starts.values() for earlier, later in itertools.pairwise(times)]
    return {
        "jobs": len(guids) * 3,
        "jobs/s": round(len(guids) * 3 / took, 1),
        "CPU ms each": round(1000 * used / (len(guids) * 3), 2),
        "gap p50 ms": round(1000 * median(gaps), 1),
        "longest gap ms": round(1000 * max(gaps), 1),
    }


async def _drained(engine: Engine) -> bool:
    return not (await engine.backlog()).waiting


main = command(measure, TITLE)

if __name__ == "__main__":
    main()
