"""The same webhook more than once: with one GUID, at once or later, or with the GUIDs of several hooks."""

from __future__ import annotations

import asyncio
from collections import Counter
from pathlib import Path

import aiohttp
import pytest

from sandbox import SentDelivery
from sandbox.webhooks import headers_of
from tests.robustness.conversation import CONVERSATIONS
from tests.robustness.crashes import Undisturbed
from tests.robustness.place import BOT, SECRET, Place, place
from tests.robustness.side_by_side import SideBySide

COPIES = 10


async def post(here: Place, delivery: SentDelivery, copies: int) -> Counter[int]:
    """Post a delivery several times at once, and count the answers."""
    async with aiohttp.ClientSession() as session:

        async def once() -> int:
            url, headers = f"{here.bot.url}/webhook", headers_of(delivery)
            async with session.post(url, data=delivery.payload, headers=headers) as answer:
                return answer.status

        return Counter(await asyncio.gather(*(once() for _ in range(copies))))


async def test_every_delivery_three_times_has_the_effect_of_one(
    undisturbed: Undisturbed, tmp_path: Path, sqlite_url: str
) -> None:
    async with place(tmp_path, sqlite_url) as here:
        talks = SideBySide(here, {kind.__name__: kind for kind in CONVERSATIONS})
        await here.start()
        here.github.webhooks.duplicate(3)
        talks.begin()
        await talks.end()
        assert talks.differences(undisturbed.seen) == {}


async def test_an_event_that_two_hooks_deliver_is_handled_once(
    undisturbed: Undisturbed, tmp_path: Path, sqlite_url: str
) -> None:
    async with place(tmp_path, sqlite_url) as here:
        talks = SideBySide(here, {kind.__name__: kind for kind in CONVERSATIONS})
        await here.start()
        for talk in talks.talks.values():
            talk.repository.add_webhook(f"{here.bot.url}/webhook", SECRET, "*")
        talks.begin()
        deliveries = await talks.end()
        assert talks.differences(undisturbed.seen) == {}
        said = [one["job"]["text"] for one in deliveries if one["event"] == "issue_comment"]
        assert any("reported this first, and was handled: issue_comment:created:" in text for text in said)


@pytest.mark.parametrize("kind", ["sqlite", "postgresql"])
async def test_a_delivery_posted_many_times_at_once_and_again_later_is_handled_once(
    kind: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    url = request.getfixturevalue("sqlite_url" if kind == "sqlite" else "postgres_url")
    async with place(tmp_path, url) as here:
        repository = here.add_repository("octocat")
        here.configure([repository.full_name])
        await here.start()
        pull = repository.open_pull_request("hubot")
        repository.add_workflow_run(pull.head_sha, "CI", "failure", {"unit": "failure"})
        await here.quiet()
        here.github.webhooks.hold()
        comment = pull.comment("hubot", "@ci rerun")
        (message,) = here.github.webhooks.held
        here.github.webhooks.held.clear()
        here.github.webhooks.release()
        assert await post(here, message, COPIES) == {202: COPIES}
        await here.quiet()
        assert await post(here, message, COPIES) == {202: COPIES}
        here.github.webhooks.send_under_new_guid(message)
        deliveries = await here.quiet()
        assert sum(one["guid"] == message.guid for one in deliveries) == 1
        assert pull.reactions(comment, by=BOT) == ["eyes", "+1"]
        assert len(pull.comments_by(BOT)) == 1
        assert [run.attempt for run in repository.workflow_runs] == [2]
