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
from tests.robustness.place import BOT, SECRET, Place, open_place
from tests.robustness.side_by_side import SideBySide

COPIES = 10


async def post(place: Place, delivery: SentDelivery, copies: int) -> Counter[int]:
    """Post a delivery several times at once, and count the answers."""
    async with aiohttp.ClientSession() as session:

        async def once() -> int:
            url, headers = f"{place.bot.url}/webhook", headers_of(delivery)
            async with session.post(url, data=delivery.payload, headers=headers) as answer:
                return answer.status

        return Counter(await asyncio.gather(*(once() for _ in range(copies))))


async def test_every_delivery_three_times_has_the_effect_of_one(
    undisturbed: Undisturbed, tmp_path: Path, sqlite_url: str
) -> None:
    async with open_place(tmp_path, sqlite_url) as place:
        side_by_side = SideBySide(place, {kind.__name__: kind for kind in CONVERSATIONS})
        await place.start()
        place.github.webhooks.duplicate(3)
        side_by_side.begin()
        await side_by_side.end()
        assert side_by_side.differences(undisturbed.seen) == {}


async def test_an_event_that_two_hooks_deliver_is_handled_once(
    undisturbed: Undisturbed, tmp_path: Path, sqlite_url: str
) -> None:
    async with open_place(tmp_path, sqlite_url) as place:
        side_by_side = SideBySide(place, {kind.__name__: kind for kind in CONVERSATIONS})
        await place.start()
        for conversation in side_by_side.conversations.values():
            conversation.repository.add_webhook(f"{place.bot.url}/webhook", SECRET, "*")
        side_by_side.begin()
        deliveries = await side_by_side.end()
        assert side_by_side.differences(undisturbed.seen) == {}
        texts = [delivery["job"]["text"] for delivery in deliveries if delivery["event"] == "issue_comment"]
        assert any("reported this first, and was handled: issue_comment:created:" in text for text in texts)


@pytest.mark.parametrize("kind", ["sqlite", "postgresql"])
async def test_a_delivery_posted_many_times_at_once_and_again_later_is_handled_once(
    kind: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    url = request.getfixturevalue("sqlite_url" if kind == "sqlite" else "postgres_url")
    async with open_place(tmp_path, url) as place:
        repository = place.add_repository("octocat")
        place.configure([repository.full_name])
        await place.start()
        pull = repository.open_pull_request("hubot")
        repository.add_workflow_run(pull.head_sha, "CI", "failure", {"unit": "failure"})
        await place.quiet()
        place.github.webhooks.hold()
        comment = pull.comment("hubot", "@ci rerun")
        (delivery,) = place.github.webhooks.held
        place.github.webhooks.held.clear()
        place.github.webhooks.release()
        assert await post(place, delivery, COPIES) == {202: COPIES}
        await place.quiet()
        assert await post(place, delivery, COPIES) == {202: COPIES}
        place.github.webhooks.send_under_new_guid(delivery)
        deliveries = await place.quiet()
        assert sum(record["guid"] == delivery.guid for record in deliveries) == 1
        assert pull.reactions(comment, by=BOT) == ["eyes", "+1"]
        assert len(pull.comments_by(BOT)) == 1
        assert [run.attempt for run in repository.workflow_runs] == [2]
