"""SIGKILL around reminders and image updates: people are reminded once, and there is one pull request."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator
from functools import partial
from pathlib import Path
from typing import Any, ClassVar

import pytest

from sandbox.registry import RegistrySandbox
from tests.robustness.conversation import Conversation
from tests.robustness.crashes import Crash, Point, packed, points_of, spread
from tests.robustness.place import BOT, Place, open_place, plain
from tests.robustness.side_by_side import SideBySide

IN_TIMERS = {"EnsurePull", "Remind"}
FILE, BRANCH = "ci/jenkins/docker-images.ini", "refs/heads/nightly-docker-update"
TAGS = ("20260101-060115-61c9742ea", "20260201-060115-7a2b3c4d", "20260202-060115-8b3c4d5e")


class Reminded(Conversation):
    """A reviewer is reminded of a pull request that was opened a week ago."""

    async def hold(self) -> None:
        """Open it a week ago, and run the timer twice."""
        self.place.github.clock.advance(days=-8)
        self.pull = self.repository.open_pull_request("hubot", "Faster")
        self.pull.request_review("hubot", "triager")
        self.place.github.clock.advance(days=8)
        for run in ("first", "second"):
            await self.place.run_timer(self.repository, "stale-reviews", run)
            await self.until(lambda: self.pull.comments_by(BOT))

    def seen(self) -> dict[str, Any]:
        """Return the messages that people read."""
        return {
            "comments": [plain(comment.body, self.repository) for comment in self.pull.comments],
            "action_counts": dict(self.action_counts),
        }


class Images(Conversation):
    """Images get newer tags on two days, and need no update on the third."""

    hub: ClassVar[RegistrySandbox]

    async def hold(self) -> None:
        """Run the timer three times."""
        self._file(TAGS[0])
        for tag in TAGS[1:]:
            self.hub.push(self._image, tag, f"{tag[:4]}-{tag[4:6]}-{tag[6:8]}T00:00:00Z")
            await self.place.run_timer(self.repository, "docker-update", tag)
            await self.until(partial(self._is_proposed, tag))
        self._file(TAGS[-1])
        await self.place.run_timer(self.repository, "docker-update", "last")
        await self.until(lambda: BRANCH not in self.repository.refs)

    @property
    def _image(self) -> str:
        return f"tlcpack/{self.repository.owner.login}"

    def _is_proposed(self, tag: str) -> bool:
        return any(f"{self._image}:{tag}" in (pull.body or "") for pull in self.repository.pulls)

    def _file(self, tag: str) -> None:
        self.repository.push("main", {FILE: f"[jenkins]\nci: {self._image}:{tag}\n"}, by="hubot")

    def seen(self) -> dict[str, Any]:
        """Return the pull requests with their changes, and how often the bot did each thing."""
        pulls = [
            (pull.state, plain(pull.body or "", self.repository), [change.additions for change in pull.files])
            for pull in self.repository.pulls
        ]
        return {"pulls": pulls, "action_counts": dict(self.action_counts)}


@pytest.fixture
async def hub() -> AsyncIterator[RegistrySandbox]:
    Images.hub = RegistrySandbox()
    async with Images.hub.serve():
        yield Images.hub


def configure(place: Place, side_by_side: SideBySide, hub: RegistrySandbox) -> None:
    """Switch the timers on, but never scheduled, and everything unrelated off."""
    time_of_day = f"{(time.gmtime().tm_hour + 12) % 24:02}:00"
    place.configure(
        [conversation.repository.full_name for conversation in side_by_side.conversations.values()],
        slow_tests=False,
        cc_reviewers=False,
        repository_file=False,
        stale_reviews={"every": "10000d"},
        docker_update={"registry": hub.url, "at": time_of_day},
    )


async def undisturbed(
    folder: Path, hub: RegistrySandbox
) -> tuple[list[Point], dict[type[Conversation], dict[str, Any]], set[str]]:
    """Return the requests of the undisturbed conversations, what people see in the end, and the effects used."""
    async with open_place(folder, f"sqlite:///{folder}/undisturbed.db") as place:
        side_by_side = SideBySide(place, {kind.__name__: kind for kind in (Reminded, Images)})
        configure(place, side_by_side, hub)
        await place.start()
        side_by_side.begin()
        deliveries = await side_by_side.end()
        kinds = {effect["kind"] for delivery in deliveries for plan in delivery["plans"] for effect in plan["effects"]}
        conversations = side_by_side.conversations.values()
        return (
            [p for conversation in conversations for p in points_of(place, conversation)],
            {type(conversation): conversation.seen() for conversation in conversations},
            kinds,
        )


async def test_a_kill_around_any_write_of_a_timer_loses_and_repeats_nothing(
    tmp_path: Path, sqlite_url: str, hub: RegistrySandbox
) -> None:
    points, seen, kinds = await undisturbed(tmp_path, hub)
    assert kinds == IN_TIMERS
    assert len(seen[Reminded]["comments"]) == 1
    assert [(state, changed) for state, _, changed in seen[Images]["pulls"]] == [("closed", [1])]
    around = [point.at(side) for point in points if point.writes for side in ("before", "after")]
    assert len(around) == 2 * (1 + 4 + 4 + 2), "a comment; a branch and its pull request made, changed and closed"
    reads = spread([point for point in points if not point.writes], 4)
    async with open_place(tmp_path, sqlite_url) as place:
        crash = Crash(place, packed([*around, *reads], points))
        configure(place, crash.side_by_side, hub)
        await place.start()
        await crash.kill_at_every_point()
        await crash.side_by_side.end()
        assert crash.side_by_side.differences(seen) == {}
