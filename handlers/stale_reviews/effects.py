"""Reminders of pending reviews, each a new comment: GitHub notifies nobody of an edited one."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import ClassVar

from bot.core.events import Payload, PullRequest
from bot.effects.comments import delete_comment
from bot.github.access import ISSUES, WritePermissions
from bot.github.addresses import comment_on_github, pull_on_github
from bot.plan.effect import Applied, EffectContext
from handlers.stale_reviews.records import REMINDED_AT, Reminded
from handlers.stale_reviews.texts import ALREADY_REMINDED, NO_REVIEW_PENDING, RECENT_ACTIVITY, REMINDED_PEOPLE

PULL = "/repos/{+repo}/pulls/{number}"
COMMENTS = "/repos/{+repo}/issues/{number}/comments"
COMMENTS_SINCE = COMMENTS + "{?since}"
MARKER = "<!-- nightjar:stale-review -->"


@dataclass(frozen=True, slots=True)
class Remind:
    """Remind people of a pull request by a comment, unless somebody commented or they were reminded `since` a moment.

    `since` is in ISO 8601. There is one reminder per period, however often and by whichever process this is applied.
    """

    permissions: ClassVar[WritePermissions] = frozenset({ISSUES})

    number: int
    text: str
    since: str

    @property
    def effect_key(self) -> str:
        """The pull request."""
        return f"remind:{self.number}"

    async def apply(self, context: EffectContext) -> Applied:
        """Check in our record and on GitHub whether the reminder is needed, write it, then store its time."""
        key = REMINDED_AT.of(context.repository.id, self.number)
        reminded_at = (await context.records.get(key) or Reminded()).at
        if reminded_at > self.since and not context.writes.may_have_twins:
            return self._not_reminded(ALREADY_REMINDED)
        url_vars = {"repo": context.repository.full_name, "number": str(self.number)}
        pull = PullRequest.of(Payload(await context.github.getitem(PULL, url_vars=url_vars)))
        # The list was read for the plan, and a retry may come hours later.
        if pull.draft or not pull.is_open:
            return self._not_reminded(NO_REVIEW_PENDING)
        written = [comment async for comment in self._new_comments(context)]
        reminders = [comment for comment in written if _is_reminder(comment, context.me.user_id)]
        if reminders:
            await context.records.put(key, Reminded(max(comment.string("created_at") for comment in reminders)))
            # An earlier try may have posted a comment before it died. If there are two, the older one stays.
            for twin in sorted(comment.integer("id") for comment in reminders)[1:]:
                await delete_comment(context, twin)
            return self._not_reminded(ALREADY_REMINDED)
        if any(comment.text("user", "type") == "User" for comment in written):
            return self._not_reminded(RECENT_ACTIVITY)
        response = await context.github.post(COMMENTS, url_vars=url_vars, data={"body": f"{MARKER}\n{self.text}"})
        comment = Payload(response, "comment")
        await context.records.put(key, Reminded(comment.string("created_at")))
        page = comment_on_github(self.number, comment.integer("id"))
        return Applied(REMINDED_PEOPLE.format(number=self.number), page=page)

    async def _new_comments(self, context: EffectContext) -> AsyncIterator[Payload]:
        url_vars = {"repo": context.repository.full_name, "number": str(self.number), "since": self.since}
        async for item in context.github.getiter(COMMENTS_SINCE, url_vars=url_vars):
            comment = Payload(item, "comment")
            if comment.string("created_at") > self.since:  # GitHub also lists comments that were edited since
                yield comment

    def _not_reminded(self, reason: str) -> Applied:
        return Applied(reason.format(number=self.number), changed=False, page=pull_on_github(self.number))


def _is_reminder(comment: Payload, author_id: int) -> bool:
    is_own = comment.has("user", "id") and comment.integer("user", "id") == author_id
    # By author and by marker: people quote comments, hidden marks included.
    return is_own and comment.text("body").startswith(MARKER)
