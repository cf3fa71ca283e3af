"""Print how much code four events run through: files, functions, calls from one file to another, and jobs.

Each runs three times in the real bot, against the sandbox's GitHub and S3, with a fresh event each time. Only what all
runs share counts, so that timers that tick meanwhile do not. With `--files`, each journey's files follow, in the order
in which they are first entered, with `--jobs` the kinds of its jobs. What runs in processes of their own, such as the
readers of reports, does not count, nor do functions without a name.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import logging
import os
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from functools import reduce
from pathlib import Path
from types import CodeType, FrameType
from typing import Any
from urllib.parse import quote

import aiohttp
import structlog

sys.path.insert(0, str(Path(__file__).parents[1]))

from bot.aws.client import Aws
from bot.engine.jobs.journal import DeliveryRecord
from bot.results.deliveries import CHECK_EVENT, RUN_ARRIVED
from bot.timers.timers import TIMER_EVENT
from sandbox.bucket import ENVIRONMENT, BucketServer
from tests.bucket import World
from tests.conversations.lab import TEST_FILE, Moments, junit, lab_town
from tests.conversations.nightly_runs import nightly_town
from tests.conversations.town import REPOSITORY, Town, town

ROOT = Path(__file__).parents[1]
OURS = tuple(f"{ROOT / folder}{os.sep}" for folder in ("bot", "handlers", "lab"))
HEADINGS = ("journey", "files", "functions", "calls across files", "jobs")
RUNS = 3
Act = Callable[[], Awaitable[object]]


@dataclass
class Journey:
    """The code of ours that one event ran through; `calls` has pairs of a caller and a called function."""

    name: str
    functions: dict[CodeType, None] = field(default_factory=dict)
    calls: set[tuple[CodeType, CodeType]] = field(default_factory=set)
    jobs: Counter[str] = field(default_factory=Counter)
    """The number of jobs of each kind."""

    def shared_with(self, other: Journey) -> Journey:
        """Return what this run and another one have in common, in the order of this run."""
        functions = {function: None for function in self.functions if function in other.functions}
        return Journey(self.name, functions, self.calls & other.calls, self.jobs & other.jobs)

    @property
    def files(self) -> list[str]:
        """Return the paths in the order in which the files were entered."""
        paths = dict.fromkeys(function.co_filename for function in self.functions)
        return [str(Path(path).relative_to(ROOT)) for path in paths]

    @property
    def figures(self) -> tuple[int, int, int, int]:
        """Return the numbers of files, functions, calls across files, and jobs."""
        crossing = sum(caller.co_filename != called.co_filename for caller, called in self.calls)
        return len(self.files), len(self.functions), crossing, self.jobs.total()


class Recorder:
    """Notes each call of a function of ours in any thread while a journey is recorded."""

    def __init__(self) -> None:
        self.journeys: list[Journey] = []
        self._recorded: Journey | None = None

    def start(self) -> None:
        """Profile this thread and those that start later: https://docs.python.org/3/library/sys.html#sys.setprofile."""
        threading.setprofile(self._profile)
        sys.setprofile(self._profile)

    async def _record_run(self, name: str, here: Town, act: Act, is_part: Callable[[DeliveryRecord], bool]) -> Journey:
        """Return what `act` runs, and count the jobs of the deliveries that begin meanwhile and are part of it."""
        await here.quiet()
        journey = Journey(name)
        earlier = {delivery.guid for delivery in await here.bot.engine.journal.recent(limit=500)}
        self._recorded = journey
        try:
            await act()
            await here.quiet()
        finally:
            self._recorded = None
        for delivery in await here.bot.engine.journal.recent(limit=500):
            if delivery.guid not in earlier and is_part(delivery):
                journey.jobs.update(_kinds(delivery))
        return journey

    async def record(
        self, name: str, here: Town, prepare: Callable[[], Awaitable[Act]], is_part: Callable[[DeliveryRecord], bool]
    ) -> None:
        """Prepare and record several acts, and keep what all of them have in common."""
        runs = [await self._record_run(name, here, await prepare(), is_part) for _ in range(RUNS)]
        self.journeys.append(reduce(Journey.shared_with, runs))

    def _profile(self, frame: FrameType, event: str, _: Any) -> None:
        journey, function = self._recorded, frame.f_code
        if journey is None or event != "call" or not _is_ours(function):
            return
        journey.functions.setdefault(function)
        if frame.f_back is not None and _is_ours(caller := frame.f_back.f_code):
            journey.calls.add((caller, function))


def _is_ours(function: CodeType) -> bool:
    return function.co_filename.startswith(OURS) and not function.co_name.startswith("<")


def _kinds(delivery: DeliveryRecord) -> Iterator[str]:
    """Yield the kind of each job of a delivery: its event, a stage of a handler, or an effect.

    What is stored together with a job has no job of its own: the only plan of a delivery, and effects on records.
    """
    kinds = {delivery.job.job_id: delivery.event}
    for plan in delivery.plans:
        kinds.setdefault(plan.job.job_id, f"{plan.stage} of {plan.handler}")
        for effect in plan.effects:
            kinds.setdefault(effect.job.job_id, effect.kind)
    yield from kinds.values()


def _is_comment(delivery: DeliveryRecord) -> bool:
    return delivery.event == "issue_comment"


def _is_result(delivery: DeliveryRecord) -> bool:
    return delivery.event in (RUN_ARRIVED.name, CHECK_EVENT.name)


def _is_nightly_tick(delivery: DeliveryRecord) -> bool:
    return delivery.event == TIMER_EVENT.name and ":nightly:" in delivery.guid


def _away_from_ticks() -> Moments:
    """Return a clock that begins just after a minute, so that no timer of the bot adds to a journey."""
    moments = Moments()
    moments.advance_to(time.time() // 60 * 60 + 62)
    return moments


async def _command(recorder: Recorder, folder: Path) -> None:
    async with town(f"sqlite:///{folder}/command.db", now=_away_from_ticks()) as here:
        await here.started()

        async def prepare() -> Act:
            pull = here.repo.open_pull_request("hubot", "Faster")

            async def act() -> None:
                pull.comment("hubot", "@ci run slow tests")

            return act

        await recorder.record("`@ci run slow tests`, from the socket to the last write", here, prepare, _is_comment)


async def _upload_and_page(recorder: Recorder, folder: Path) -> None:
    async with AsyncExitStack() as stack:
        server = stack.enter_context(BucketServer())
        os.environ.update(ENVIRONMENT, AWS_ENDPOINT_URL=server.url)
        aws = Aws()
        stack.callback(aws.close)
        world = World(server, aws)
        place = await stack.enter_async_context(lab_town(f"sqlite:///{folder}/results.db", world))

        async def upload_failure() -> Act:
            """Upload a good run, and one with a failure that is still to be ingested."""
            place.upload(place.nightly_run(), {"ops.xml": junit(test_add="passed")})
            await place.settle()
            place.upload(place.nightly_run(), {"ops.xml": junit(test_add="AssertionError: 3 != 4")})
            return place.settle

        async def open_page() -> None:
            page = f"/r/{REPOSITORY}/tests?id={quote(f'{TEST_FILE}::test_add')}"
            async with aiohttp.ClientSession() as session, session.get(place.town.url + page) as response:
                assert response.status == 200, await response.text()

        async def change_page() -> Act:
            """Ingest a run, so that the page is not in memory."""
            await (await upload_failure())()
            return open_page

        name = "a JUnit file in the bucket to its check run"
        await recorder.record(name, place.town, upload_failure, _is_result)
        assert place.check(place.town.repo.branch("nightly")).conclusion == "neutral"
        await recorder.record("the page of a test", place.town, change_page, _is_result)


async def _nightly_tick(recorder: Recorder, folder: Path) -> None:
    async with nightly_town(f"sqlite:///{folder}/nightly.db") as place:
        place.push("The first")
        await place.nightly_run()

        async def prepare() -> Act:
            place.push("Another")
            return place.nightly_run

        await recorder.record("a nightly tick to the moved ref", place.town, prepare, _is_nightly_tick)
        assert place.head == place.town.repo.branch("main")


async def _record_all() -> list[Journey]:
    recorder = Recorder()
    recorder.start()
    with tempfile.TemporaryDirectory() as folder:
        for journey in (_command, _upload_and_page, _nightly_tick):
            await journey(recorder, Path(folder))
    return recorder.journeys


def main() -> None:
    """Record the journeys and print them."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--files", action="store_true", help="list each journey's files, in order")
    parser.add_argument("--jobs", action="store_true", help="list the kinds of each journey's jobs")
    parser.add_argument("--json", action="store_true", help="print JSON")
    options = parser.parse_args()
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.CRITICAL))
    journeys = asyncio.run(_record_all())
    if options.json:
        keys = [heading.replace(" ", "_") for heading in HEADINGS[1:]]
        named = []
        for journey in journeys:
            figures = dict(zip(keys, journey.figures, strict=True))
            named.append({"journey": journey.name, **figures, "paths": journey.files, "kinds": dict(journey.jobs)})
        sys.stdout.write(json.dumps(named) + "\n")
        return
    lines = [f"| {' | '.join(HEADINGS)} |", "|---|--:|--:|--:|--:|"]
    for journey in journeys:
        lines.append(f"| {journey.name} | {' | '.join(f'{figure:,}' for figure in journey.figures)} |")
    for journey in journeys if options.files else ():
        lines += ["", f"{journey.name}:", *(f"- {path}" for path in journey.files)]
    for journey in journeys if options.jobs else ():
        lines += ["", f"{journey.name}:", *(f"- {kind}: {count}" for kind, count in journey.jobs.items())]
    sys.stdout.write("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
