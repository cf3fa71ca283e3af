"""News in three places at once: a slow place does not delay the others."""

from __future__ import annotations

import asyncio
from pathlib import Path

from bot.news.effects import MESSAGE_EVENT
from tests.bucket import World
from tests.conversations.channels import channels
from tests.conversations.lab import LabTown, junit, lab_town
from tests.conversations.town import BOT
from tests.waiting import until

FAILS = "AssertionError: 3 != 4"


async def nightly_run(place: LabTown, verdict: str) -> None:
    """Let a lab test a nightly run, and wait for all its effects."""
    place.upload(place.nightly_run(), {"ops.xml": junit(test_a=verdict, test_b="passed")})
    await place.settle()


async def test_a_channel_that_does_not_answer_delays_nothing_else(tmp_path: Path, aws_world: World) -> None:
    features = "regressions: {to: [discord, slack, issue]}"
    async with (
        channels() as chats,
        lab_town(
            f"sqlite:///{tmp_path}/nightjar.db", aws_world, features=features, environment=chats.environment
        ) as place,
    ):
        held = chats.discord.faults.pause("POST", "*", when="before")
        await nightly_run(place, "passed")
        await nightly_run(place, FAILS)
        last = asyncio.create_task(nightly_run(place, FAILS))
        await held.reached.wait()

        async def reported_elsewhere() -> bool:
            return bool(chats.slack.said) and bool([i for i in place.town.repo.issues.values() if i.user.login == BOT])

        await until(reported_elsewhere)
        assert chats.discord.said == []
        held.resume()
        await last
        assert chats.discord.said == chats.slack.said
        assert chats.discord.said[0].startswith("❌ 1 test began to fail")
        news = [
            delivery
            for delivery in await place.town.bot.engine.journal.recent(limit=500)
            if delivery.event == MESSAGE_EVENT.name
        ]
        assert len(news) == 2


async def test_a_deleted_webhook_fails_alone_and_its_replacement_gets_the_message(
    tmp_path: Path, aws_world: World
) -> None:
    features = "regressions: {to: [discord, slack]}"
    async with (
        channels() as chats,
        lab_town(
            f"sqlite:///{tmp_path}/nightjar.db", aws_world, features=features, environment=chats.environment
        ) as place,
    ):
        chats.discord.removed = True
        for verdict in ("passed", FAILS, FAILS):
            await nightly_run(place, verdict)
        (failure,) = await place.town.failures()
        assert failure.startswith(
            "Discord no longer accepts messages at the webhook of DISCORD_WEBHOOK_URL (404, code 10015)"
        )
        assert len(chats.slack.said) == 1
        chats.discord.removed = False
        (failed,) = await place.town.bot.engine.journal.recent(limit=500, failed=True)
        await place.town.bot.engine.replay(failed.guid)
        assert chats.discord.said == chats.slack.said
