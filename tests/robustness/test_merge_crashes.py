"""SIGKILL around a merge: a merge happens once, a cancelled merge does not happen, and labels are right."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from sandbox import PullRequest
from tests.robustness.conversation import Conversation
from tests.robustness.crashes import Crash, Point, packed, points_of, spread
from tests.robustness.place import BOT, Place, open_place, plain
from tests.robustness.side_by_side import SideBySide

CPU, QUEUED = "cpu/pr-head", "queued"
KEYS: dict[str, Any] = {
    "slow_tests": False,
    "cc_reviewers": False,
    "repository_file": False,
    "merge": {"required": [CPU], "label": "ready-for-merge"},
}
KINDS = {
    "ApproveRun",
    "EndPendingMerge",
    "EnsureLabel",
    "StorePendingMerge",
    "LeaveQueue",
    "RequestRefresh",
    "MergePull",
    "UpdateBranch",
}


class Merging(Conversation):
    """A pull request that somebody asks the bot to merge."""

    def open(self, **values: Any) -> PullRequest:
        """Open the pull request."""
        self.pull = self.repository.open_pull_request("hubot", "Faster", **values)
        return self.pull

    async def say(self, text: str) -> None:
        """Comment, and wait until the bot has answered."""
        # GitHub does not order a push and a comment of the same second.
        self.place.github.clock.advance(seconds=1)
        await self.done(self.pull.comment(self.repository.owner, text))

    def approve(self) -> None:
        """Approve the head."""
        self.pull.review(self.repository.owner, "Good.", "APPROVED")

    def pass_checks(self) -> None:
        """Let CI report success."""
        self.repository.set_status(self.repository.owner, self.pull.head_sha, CPU, "success")

    def seen(self) -> dict[str, Any]:
        """Return what is on the base branch, and what people see of the pull request."""
        repository, pull = self.repository, self.pull
        return {
            "main": [commit.message for commit in repository.git.ancestry(repository.branch("main"))],
            "pull": (pull.state, [label.name for label in pull.labels], pull.queued is not None),
            "comments": [
                (plain(comment.body, repository), sorted(pull.reactions(comment))) for comment in pull.comments
            ],
            "head": len(repository.git.commits[pull.head_sha].parents),
            "runs": [(run.status, run.conclusion, run.attempt) for run in repository.workflow_runs],
            "action_counts": dict(self.action_counts),
        }


class WhenGreen(Merging):
    """The pull request is merged once its checks pass."""

    async def hold(self) -> None:
        """Wait for the checks, and for the merge."""
        pull = self.open()
        self.approve()
        await self.say("@ci merge when green")
        self.pass_checks()
        await self.until(lambda: pull.merged_at and not pull.labels)


class Pushed(Merging):
    """A push cancels the merge."""

    async def hold(self) -> None:
        """Ask for a merge, then push."""
        self.open()
        await self.say("@ci merge when green")
        self.pull.push()
        await self.until(lambda: len(self.pull.comments_by(BOT)) == 2)


class Queued(Merging):
    """The pull request enters the merge queue and leaves it again."""

    async def hold(self) -> None:
        """Ask for a merge, then cancel it."""
        self.repository.push(QUEUED, by=self.repository.owner)
        self.repository.classic_queues.add(QUEUED)
        pull = self.open(base=QUEUED)
        self.pass_checks()
        self.approve()
        await self.until(lambda: pull.labels)
        await self.say("@ci merge")
        await self.say("@ci cancel")
        await self.until(lambda: pull.queued is None)


class Behind(Merging):
    """The bot updates the branch of the pull request."""

    async def hold(self) -> None:
        """Move the base branch, then ask for a merge."""
        self.open()
        self.repository.push("main", {"README.md": "# Moved on\n"}, by=self.repository.owner)
        await self.say("@ci update")


class Approved(Merging):
    """The bot approves a workflow that waits for approval."""

    async def hold(self) -> None:
        """Let the workflow wait, and approve the pull request."""
        self.open()
        self.repository.add_workflow_run(self.pull.head_sha, "CI", "action_required")
        await self.say("@ci approve ci")


CONVERSATIONS = (WhenGreen, Pushed, Queued, Behind, Approved)


def configure(place: Place, side_by_side: SideBySide) -> None:
    """Switch merging on, and everything unrelated off."""
    place.configure([conversation.repository.full_name for conversation in side_by_side.conversations.values()], **KEYS)


async def undisturbed(folder: Path) -> tuple[list[Point], dict[type[Conversation], dict[str, Any]], set[str]]:
    """Return the requests of the undisturbed conversations, what people see in the end, and the effects used."""
    async with open_place(folder, f"sqlite:///{folder}/undisturbed.db") as place:
        side_by_side = SideBySide(place, {kind.__name__: kind for kind in CONVERSATIONS})
        configure(place, side_by_side)
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


async def test_a_kill_around_any_write_of_a_merge_merges_once_and_says_so_once(tmp_path: Path, sqlite_url: str) -> None:
    points, seen, kinds = await undisturbed(tmp_path)
    assert kinds >= KINDS
    assert seen[WhenGreen]["main"] == ["Faster (#1)", "Begin"]
    assert seen[Behind]["head"] == 2
    assert seen[Approved]["runs"] == [("queued", None, 1)]
    assert (
        seen[Queued]["action_counts"]["pull_request.enqueued"]
        == seen[Queued]["action_counts"]["pull_request.dequeued"]
        == 1
    )
    around = [point.at(side) for point in points if point.writes for side in ("before", "after")]
    assert any(point.route.endswith("/merge") for point in around)
    # The number of refreshes depends on how they coincide; that one happens does not.
    reads = spread([point for point in points if not point.writes and point.number == 0], 8)
    async with open_place(tmp_path, sqlite_url) as place:
        crash = Crash(place, packed([*around, *reads], points))
        configure(place, crash.side_by_side)
        await place.start()
        await crash.kill_at_every_point()
        await crash.side_by_side.end()
        assert crash.side_by_side.differences(seen) == {}
