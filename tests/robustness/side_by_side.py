"""Many conversations at once, each in its own repository, with one bot."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Mapping, Sequence
from typing import Any

from sandbox import Repository
from tests.robustness.conversation import Conversation
from tests.robustness.place import Place, failures, tracebacks

OWNER = "example-lab"


class SideBySide:
    """Conversations, each under the key that tells it apart; app.yaml names their repositories."""

    def __init__(
        self, place: Place, kinds: Mapping[str, type[Conversation]], *, beside: Sequence[Repository] = ()
    ) -> None:
        self.place = place
        self.conversations = {
            name: kind(place, place.add_repository(f"{OWNER}-{n}")) for n, (name, kind) in enumerate(kinds.items())
        }
        self._tasks: list[asyncio.Task[None]] = []
        own = {conversation.repository.full_name: conversation.KEYS for conversation in self.conversations.values()}
        place.configure([*(repository.full_name for repository in beside), *own], own)

    def begin(self) -> None:
        """Begin every conversation."""
        self._tasks = [asyncio.create_task(conversation.hold()) for conversation in self.conversations.values()]

    async def during(self, wait: Awaitable[object]) -> None:
        """Wait for what these conversations lead to; if one of them fails meanwhile, end all, and raise its error."""
        waiting = asyncio.ensure_future(wait)
        running = {*self._tasks}
        try:
            while not waiting.done():
                ended, _ = await asyncio.wait({waiting, *running}, return_when=asyncio.FIRST_COMPLETED)
                for task in running & ended:
                    task.result()
                running -= ended
        except BaseException:
            waits = [waiting, *self._tasks]
            for pending in waits:
                pending.cancel()
            # Each closes its connections; the first error is more than theirs.
            await asyncio.gather(*waits, return_exceptions=True)
            raise

    async def finish(self) -> None:
        """Wait until every conversation is over."""
        await asyncio.gather(*self._tasks)

    async def end(self) -> list[dict[str, Any]]:
        """Wait until every conversation is over and no work is left; return the deliveries.

        No delivery may have failed, except where the conversation is about a failure.
        """
        await self.finish()
        deliveries = await self.place.quiet()
        refused = {conversation.REFUSED for conversation in self.conversations.values() if conversation.REFUSED}
        unexpected = [message for message in failures(deliveries) if not any(words in message for words in refused)]
        assert unexpected == [], "\n".join(unexpected)
        traceback_texts = tracebacks(self.place.bot)
        assert traceback_texts == [], "\n".join(traceback_texts)
        return deliveries

    def differences(self, undisturbed: Mapping[type[Conversation], Mapping[str, Any]]) -> dict[str, Any]:
        """Return how conversations differ from the undisturbed ones, by their keys."""
        differences = {}
        for name, conversation in self.conversations.items():
            seen, expected = conversation.seen(), undisturbed[type(conversation)]
            if seen != expected:
                differences[name] = {key: (seen[key], expected[key]) for key in expected if seen[key] != expected[key]}
        return differences
