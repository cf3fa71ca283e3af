"""SIGKILL while the bot searches for the last good commit, and while it moves the branch: it moves once."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

from tests.robustness.conversation import Conversation
from tests.robustness.crashes import watch
from tests.robustness.test_crashes import killed_and_started_again

BRANCH = "refs/heads/last-successful"


class LastGoodMoves(Conversation):
    """The last good branch advances, by a timer that somebody runs."""

    async def hold(self) -> None:
        """Make a commit good that the branch does not have yet."""
        push = partial(self.repository.push, "main", by="hubot")
        self.repository.move(BRANCH, push().sha, "octocat")
        good = push().sha
        self.repository.set_status("hubot", good, "cpu", "success")
        await self.place.run_timer(self.repository, "last-good", "once")
        await self.until(lambda: self.repository.refs[BRANCH] == good)

    def seen(self) -> dict[str, Any]:
        """Return where the branch is, and how often the bot did each thing."""
        at_the_head = self.repository.refs[BRANCH] == self.repository.branch("main")
        return {
            "at the head": at_the_head,
            "issues": len(self.repository.issues),
            "action_counts": dict(self.action_counts),
        }


async def test_a_kill_around_any_request_of_a_scan_loses_and_repeats_nothing(tmp_path: Path) -> None:
    (tmp_path / "undisturbed").mkdir()
    undisturbed = await watch(tmp_path / "undisturbed", [LastGoodMoves])
    assert {"MoveBranch", "StoreRecord"} <= undisturbed.kinds
    points = [*undisturbed.around_writes, *undisturbed.at_reads]
    assert len(points) > 10
    await killed_and_started_again(tmp_path, undisturbed, points)
