"""Rows of `benchmarks.scale` about commands, workers and missed deliveries."""

from __future__ import annotations

from collections.abc import Sequence

import aiohttp
import psycopg
import pytest

from benchmarks.many_repositories import many_repositories
from benchmarks.scaling import ScalePlace
from benchmarks.stage import open_stage
from benchmarks.traffic import REPOSITORY
from benchmarks.workers import deferred, work_off
from bot.app.redelivery import Redelivery
from bot.core.metrics import Metrics
from bot.github.app import GitHubApp
from tests.conversations.town import REPOSITORY as TOWN
from tests.conversations.town import town
from tests.conversations.traced_statements import in_lines, traced_statements, without_frames
from tests.github.virtual import JumpingTime

COMMAND = "@ci help"
COMMANDS = 25
"""A person may write 30 an hour."""
NOTIFIED_WITHIN = 0.5
"""Seconds that the reader of notifications waits for the last ones."""


def listing(first: str, size: int) -> str:
    """Return an app.yaml with so many repositories, of which the App is installed in the first one."""
    return "repositories:\n" + "".join(f"  {name}:\n" for name in (first, *(f"{first}-{n}" for n in range(1, size))))


async def statements_of_command(place: ScalePlace, size: int) -> float:
    """Count the statements of a command, with the delivery of its answer, in a bot with so many repositories."""
    with pytest.MonkeyPatch.context() as patch:
        statements = traced_statements(patch)
        async with town(place.url, config=listing(TOWN, size)) as here:
            pull = here.repo.open_pull_request("octocat")
            await here.started()
            # The first command also reads what is remembered afterwards.
            for _ in range(2):
                await here.quiet()
                statements.clear()
                pull.comment("hubot", COMMAND)
                await here.quiet()
            return float(len(without_frames(in_lines(statements, place.url))))


async def cpu_of_command(place: ScalePlace, size: int) -> float:
    """Return the processor time of one of some commands at once, in a bot with so many repositories."""
    async with open_stage(config=listing(REPOSITORY, size), limits=False) as stage:
        pulls = [stage.repo.open_pull_request("hubot") for _ in range(1 + COMMANDS)]
        await stage.quiet()
        pulls[0].comment("hubot", COMMAND)
        await stage.quiet()
        began = stage.cpu()
        for pull in pulls[1:]:
            pull.comment("hubot", COMMAND)
        await stage.quiet()
        assert all(len(pull.comments_by("nightjar[bot]")) == 1 for pull in pulls)
        return 1000 * (stage.cpu() - began) / COMMANDS


async def notifications(place: ScalePlace, size: int) -> float:
    """Count what a worker of PostgreSQL notifies the others of while it handles so many waiting jobs."""
    async with place.engine() as engine, await psycopg.AsyncConnection.connect(place.url, autocommit=True) as listener:
        await deferred(engine.database, size)
        await listener.execute("LISTEN procrastinate_any_queue_v1")
        assert await work_off(engine.database, size) == size
        return float(len([note async for note in listener.notifies(timeout=NOTIFIED_WITHIN)]))


async def redelivery_round(place: ScalePlace, size: int) -> float:
    """Count the requests of a search for missed deliveries, after one that has seen so many that arrived."""
    name = "octo-org/compiler"
    async with (
        many_repositories(place.folder, [name]) as many,
        aiohttp.ClientSession() as session,
        place.engine() as engine,
    ):
        many.app.webhook_url = "http://127.0.0.1:9/webhook"  # the discard port, where nothing listens
        for _ in range(size):
            many.github.repositories[name].push("main", by="octocat")
        timing = JumpingTime().timing()
        settings = many.settings
        app = GitHubApp(
            session,
            app_id=settings.app_id,
            private_key=settings.private_key.get_secret_value(),
            api_url=settings.api_url,
            timing=timing,
        )

        async def known(guids: Sequence[str]) -> set[str]:
            return set(guids)

        sweep = Redelivery(app.as_app(), engine.records, known, Metrics("0"), now=many.github.clock.seconds)
        assert (await sweep.sweep()).asked == 0
        many.github.requests.clear()
        await sweep.sweep()
        return float(len(many.github.requests.records))
