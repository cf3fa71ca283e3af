"""SIGKILL during scans of main and the messages about it: each is sent once, and nothing is lost."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tests.robustness.conversation import Conversation
from tests.robustness.crashes import Crash, Point, packed, points_of
from tests.robustness.place import BOT, Place, open_place
from tests.robustness.side_by_side import SideBySide

KEYS: dict[str, Any] = {"slow_tests": False, "cc_reviewers": False, "main_failures": {"wait": "1s"}}


class MainBreaks(Conversation):
    """Somebody breaks main, then fixes it."""

    async def hold(self) -> None:
        """Break main and fix it, each after the previous step was reported."""
        self._push("All is well", "success")
        self._push("Break it", "failure")
        await self.until(lambda: self._states() == ["open"])
        self._push("Fix it", "success")
        await self.until(lambda: self._states() == ["closed"])

    def _push(self, message: str, state: str) -> None:
        sha = self.repository.push("main", by="hubot", message=message).sha
        self.repository.set_status("hubot", sha, "cpu/branch", state)

    def _states(self) -> list[str]:
        return [issue.state for issue in self.repository.issues.values() if issue.user.login == BOT]

    def seen(self) -> dict[str, Any]:
        """Return the issues, and for each comment whether it reports the recovery."""
        return {
            "issues": [
                (issue.title, issue.state, ["**main has recovered" in comment.body for comment in issue.comments])
                for issue in self.repository.issues.values()
            ]
        }


def configure(place: Place, side_by_side: SideBySide) -> None:
    """Switch alarms on, and everything unrelated off."""
    place.configure([conversation.repository.full_name for conversation in side_by_side.conversations.values()], **KEYS)


async def undisturbed(folder: Path) -> tuple[list[Point], dict[str, Any]]:
    """Return the requests of the undisturbed conversation, and what people see in the end."""
    async with open_place(folder, f"sqlite:///{folder}/undisturbed.db") as place:
        side_by_side = SideBySide(place, {"undisturbed": MainBreaks})
        configure(place, side_by_side)
        await place.start()
        side_by_side.begin()
        await side_by_side.end()
        (conversation,) = side_by_side.conversations.values()
        return points_of(place, conversation), conversation.seen()


async def test_a_kill_around_any_request_of_an_alarm_loses_and_repeats_nothing(tmp_path: Path, sqlite_url: str) -> None:
    points, seen = await undisturbed(tmp_path)
    assert seen["issues"] == [("main is failing", "closed", [True])]
    held = [point.at(side) for point in points if point.writes for side in ("before", "after")]
    held += [point for point in points if not point.writes]
    assert len(held) > 20
    async with open_place(tmp_path, sqlite_url) as place:
        crash = Crash(place, packed(held, points))
        configure(place, crash.side_by_side)
        await place.start()
        await crash.kill_at_every_point()
        await crash.side_by_side.end()
        assert crash.side_by_side.differences({MainBreaks: seen}) == {}
