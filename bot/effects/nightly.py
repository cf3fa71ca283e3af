"""The last word on a night: what is known of the branch that labs test, where they and people look for it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from bot.effects.base import Applied, EffectContext
from bot.effects.issues import KeepIssue
from bot.effects.refs import CANNOT
from bot.effects.statuses import SetStatus
from bot.github.refs import branch_head

STATUS = "nightly"
DESCRIPTION = "the branch {branch} moved here on {day}, for labs to test"
TITLE = "The branch {branch} cannot be moved"
BODY = """\
Labs test the commit at the head of `{branch}`, which I move every day to a newer commit of `{source}`. But {trouble}.

I try again every hour and every day, and close this issue when it works."""
NOT_MOVED = "left as it was, for the move has failed"
KEPT = "remembered where {branch} is"


@dataclass(frozen=True, slots=True)
class ConcludeNightly:
    """Look how the move went and where the branch is now, and tell labs, the commit, and people if need be.

    `chosen` is the commit that it was to be moved to, empty where there was none; `before` is where it was, empty
    where there was no branch. `fine`: nothing keeps it from being moved, so that an issue may be closed. `at` and `day`
    are when the timer was due, in ISO 8601.
    """

    branch: str
    source: str
    chosen: str
    before: str
    commits: int | None
    fine: bool
    at: str
    day: str
    why: str
    why_not_newer: tuple[Mapping[str, Any], ...]

    @property
    def target(self) -> str:
        """The branch."""
        return f"nightly:{self.branch}"

    async def apply(self, context: EffectContext) -> Applied:
        """Keep what is known first, then write the status and the issue; each of it looks before it writes."""
        failed = next((sibling.text for sibling in await context.siblings() if sibling.failed), "")
        names = {"branch": self.branch, "source": self.source, "trouble": failed, "day": self.day}
        if failed and not failed.startswith(CANNOT.format(**names)):
            # GitHub was away: the timer comes back within the hour, and there is nothing that people could do.
            return Applied(NOT_MOVED, changed=False)
        head = await branch_head(context.github, context.repository.full_name, self.branch)
        await self._remember(context, head, failed)
        if self.chosen and head == self.chosen:
            description = DESCRIPTION.format(**names)
            await SetStatus(self.chosen, STATUS, "success", description).apply(context)
        if failed:
            issue = KeepIssue(self._issue, TITLE.format(**names), BODY.format(**names))
            return Applied((await issue.apply(context)).text)
        if self.fine:
            await KeepIssue(self._issue).apply(context)
        return Applied(KEPT.format(**names))

    @property
    def _issue(self) -> str:
        return f"nightly:{self.branch}"

    async def _remember(self, context: EffectContext, head: str | None, trouble: str) -> None:
        key = nightly_key(context.repository.id)
        record = await context.records.get(key) or {}
        moved = {name: record.get(name) for name in ("sha", "previous_sha", "moved_at", "commits")}
        if head != moved["sha"] or record.get("branch") != self.branch:
            ours = bool(self.chosen) and head == self.chosen
            moved = {
                "sha": head,
                "previous_sha": self.before if self.before != head and self.before else None,
                "moved_at": self.at if ours else None,
                "commits": self.commits if ours else None,
            }
        looked = {"looked_at": self.at, "why": self.why, "trouble": trouble}
        listed = [dict(one) for one in self.why_not_newer]
        await context.records.put(key, {"branch": self.branch, **moved, **looked, "why_not_newer": listed})


def nightly_key(repository_id: int) -> str:
    """Return the key of the record that says where a repository's nightly branch is."""
    return f"nightly:{repository_id}"
