"""Rows of `benchmarks.scale` about commands, workers and missed deliveries."""

from __future__ import annotations

from collections.abc import Sequence

import aiohttp
import psycopg
import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer

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
    """Count the requests of a search for missed deliveries a minute after one, when so many have arrived since."""
    name = "octo-org/compiler"

    async def accept(_: web.Request) -> web.Response:
        return web.Response(status=202)

    async def known(guids: Sequence[str]) -> set[str]:
        return set(guids)

    receiver = web.Application()
    receiver.router.add_post("/webhook", accept)
    async with (
        many_repositories(place.folder, [name]) as many,
        TestServer(receiver) as server,
        aiohttp.ClientSession() as session,
        place.engine() as engine,
    ):
        many.app.webhook_url = str(server.make_url("/webhook"))
        settings, pull = many.settings, many.github.repositories[name].open_pull_request("octocat")
        app = GitHubApp(
            session,
            app_id=settings.app_id,
            private_key=settings.private_key.get_secret_value(),
            api_url=settings.api_url,
            timing=JumpingTime().timing(),
        )
        search = Redelivery(app.as_app(), engine.records, known, Metrics("0"), now=many.github.clock.seconds)
        await many.github.delivered()
        await search.sweep()
        many.github.clock.advance(seconds=60)
        for _ in range(size):
            pull.comment("octocat", "No command")
        await many.github.delivered()
        assert sum(delivery.status_code == 202 for delivery in many.github.webhooks.deliveries) >= size
        many.github.requests.clear()
        await search.sweep()
        return float(len(many.github.requests.records))
