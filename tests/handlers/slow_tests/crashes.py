"""A merged pull request is reverted, with crashes around every request."""

from __future__ import annotations

from typing import Any

from tests.robustness.conversation import Conversation


class Reverting(Conversation):
    """Somebody merges a pull request and has it reverted."""

    async def talk(self) -> None:
        """Merge it, and wait for the one draft that reverts it."""
        self.pull.merge("octocat", "squash")
        await self.done(self.pull.comment("hubot", "@ci revert"))
        (draft,) = (pull for pull in self.repository.pulls if pull is not self.pull)
        await self.until(lambda: "hubot" in str(self.repository.status(draft.head_sha, "ci/slow-tests")))

    def seen(self) -> dict[str, Any]:
        """Return what people see, and the pull requests that revert."""
        drafts = [(pull.title, pull.draft, pull.state) for pull in self.repository.pulls if pull is not self.pull]
        return {**super().seen(), "drafts": drafts}


CONVERSATIONS = (Reverting,)
