"""SIGKILL around every write of the sticky comment's sections: each is written once, for the current head."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

from bot.effects.texts import OUT_OF_DATE
from bot.github.text import sticky
from sandbox.model.issues import Comment
from tests.handlers.ci_reports.test_artifacts import junit
from tests.robustness.conversation import Conversation
from tests.robustness.crashes import Crash, Point, alone
from tests.robustness.place import BOT, open_place

COMMENTS = "/repos/{owner}/{repo}/issues/{issue_number}/comments"
COMMENT = "/repos/{owner}/{repo}/issues/comments/{comment_id}"
KEYS = {
    "docs": {"context": "docs/pr-head", "link": "https://docs.example.org/{number}/{build}"},
    "skipped_tests": {"workflow": "Tests", "artifacts": ["*"]},
}
EDITS = 4
"""The section of tests, the mark on both, and each of them again."""


class Pushed(Conversation):
    """CI builds docs and runs tests; somebody pushes; CI does both again."""

    async def talk(self) -> None:
        """Let CI and people act in turn."""
        await self._built(1)
        await self._tested("passed")
        self.pull.push()
        await self.until(lambda: self._body().count(OUT_OF_DATE) == 2)
        await self._built(2)
        await self._tested("skipped")

    async def _built(self, build: int) -> None:
        url = f"https://ci.example.org/docs/PR-{self.pull.number}/{build}/"
        self.repository.set_status("hubot", self.pull.head_sha, "docs/pr-head", "success", target_url=url)
        await self.until(lambda: f"/{self.pull.number}/{build}" in self._body())

    async def _tested(self, status: str) -> None:
        run = self.repository.add_workflow_run(self.pull.head_sha, "Tests")
        run.upload("cpu", {"a.xml": junit(add=status)})
        run.finish("success")
        await self.until(lambda: f"**Skipped tests** at `{self.pull.head_sha[:7]}`" in self._body())

    def _body(self) -> str:
        return "".join(comment.body for comment in self.comments)

    @property
    def comments(self) -> list[Comment]:
        """Return the bot's comments."""
        return self.pull.comments_by(BOT)


def around(method: str, route: str, number: int) -> list[Point]:
    return [Point(Pushed, "github", method, route, number, side) for side in ("before", "after")]


async def test_a_kill_around_any_write_loses_and_repeats_no_section(tmp_path: Path, sqlite_url: str) -> None:
    points = around("POST", COMMENTS, 0) + [point for n in range(EDITS) for point in around("PATCH", COMMENT, n)]
    async with open_place(tmp_path, sqlite_url) as place:
        crash = Crash(place, alone(points))
        conversations = crash.side_by_side.conversations.values()
        place.configure([conversation.repository.full_name for conversation in conversations], **KEYS)
        await place.start()
        await crash.kill_at_every_point()
        await crash.side_by_side.end()
        for name, conversation in crash.side_by_side.conversations.items():
            assert isinstance(conversation, Pushed)
            (comment,) = conversation.comments
            assert sticky.sections_of(comment.body).keys() == {"docs-link", "skipped-tests"}, name
            assert OUT_OF_DATE not in comment.body, name
            comment_actions = Counter(
                {
                    action: count
                    for action, count in conversation.action_counts.items()
                    if action.startswith("issue_comment")
                }
            )
            assert comment_actions == {"issue_comment.created": 1, "issue_comment.edited": EDITS}, name
