"""SIGKILL around every request of team tags: whoever subscribed to a topic is mentioned once."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

from tests.robustness.conversation import Conversation
from tests.robustness.crashes import Crash, Point, alone
from tests.robustness.place import BOT, open_place

COMMENTS = "/repos/{owner}/{repo}/issues/{issue_number}/comments"
COMMENT = "/repos/{owner}/{repo}/issues/comments/{comment_id}"
ISSUE = "/repos/{owner}/{repo}/issues/{issue_number}"
KEYS = {"teams": {"topics": {"hexagon": ["@octocat"]}, "issue": 1}}
MENTIONS = "cc @monalisa, @octocat and @triager, for `adreno`, `hexagon`."


class Tagged(Conversation):
    """An issue lists who subscribed to what; a pull request has a tag, and gets a label."""

    async def hold(self) -> None:
        """Open the list and the pull request, and add a label."""
        self.repository.open_issue("hubot", "Who follows what", "- hexagon @triager\n- adreno @monalisa")
        self.pull = self.repository.open_pull_request("hubot", "[hexagon] Faster")
        await self.until(lambda: self.pull.comments_by(BOT))
        self.pull.label("hubot", "adreno")
        await self.until(lambda: MENTIONS in self.pull.comments_by(BOT)[0].body)


def around(method: str, route: str, number: int) -> list[Point]:
    return [Point(Tagged, "github", method, route, number, side) for side in ("before", "after")]


async def test_a_kill_around_any_request_mentions_everybody_once(tmp_path: Path, sqlite_url: str) -> None:
    points = [*around("POST", COMMENTS, 0), *around("PATCH", COMMENT, 0), *around("GET", ISSUE, 0)]
    points += [*around("GET", COMMENTS, 0), *around("GET", COMMENTS, 1)]
    async with open_place(tmp_path, sqlite_url) as place:
        crash = Crash(place, alone(points))
        conversations = crash.side_by_side.conversations
        place.configure([conversation.repository.full_name for conversation in conversations.values()], **KEYS)
        await place.start()
        await crash.kill_at_every_point()
        await crash.side_by_side.end()
        for name, conversation in conversations.items():
            (comment,) = conversation.pull.comments_by(BOT)
            assert MENTIONS in comment.body, name
            comment_actions = Counter(
                {
                    action: count
                    for action, count in conversation.action_counts.items()
                    if action.startswith("issue_comment")
                }
            )
            assert comment_actions == {"issue_comment.created": 1, "issue_comment.edited": 1}, name
