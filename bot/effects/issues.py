"""Issues that the bot opens where somebody has to do something, and closes when that is over."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from bot.effects.base import Applied, EffectContext
from bot.payload import Payload

OURS = "/repos/{+repo}/issues{?creator,state}"
ISSUES = "/repos/{+repo}/issues"
ONE_ISSUE = "/repos/{+repo}/issues/{number}"
MARKER = "<!-- nightjar:issue:{key} -->"

NONE_OPEN = "there was no issue to be closed"
OPENED, CLOSED = "opened an issue", "closed the issue #{number}"
SAYS_SO, CHANGED = "the issue #{number} says so already", "the issue #{number} says so now"
LEFT_CLOSED = "somebody closed the issue #{number}, so it was left alone"


@dataclass(frozen=True, slots=True)
class KeepIssue:
    """Keep one issue of a key open as long as its trouble lasts: with a `body`; without one, close it.

    It is opened once: one that a person closes stays closed until the trouble is over and comes back.
    """

    key: str
    title: str = ""
    body: str = ""
    news: str = ""
    news_key: str = ""

    @property
    def target(self) -> str:
        """The key."""
        return f"issue:{self.key}"

    async def apply(self, context: EffectContext) -> Applied:
        """Look for the open issue by its marker and our author id, then open, change or close it, or do nothing."""
        record = f"issue:{context.repository.id}:{self.key}"
        known = (await context.records.get(record) or {}).get("number")
        if not self.body and known is None:
            return Applied(NONE_OPEN, changed=False)
        found = await self._open_one(context)
        if not self.body:
            return await self._close(context, found, record)
        body = f"{MARKER.format(key=self.key)}\n{self.body}"
        if found is None and known is not None:
            return Applied(LEFT_CLOSED.format(number=known), changed=False)
        if found is None:
            where, data = {"repo": context.repository.full_name}, {"title": self.title, "body": body}
            made = Payload(await context.github.post(ISSUES, url_vars=where, data=data), "issue")
            await context.records.put(record, {"number": made.integer("number")})
            return Applied(OPENED)
        number = found.integer("number")
        await context.records.put(record, {"number": number})
        if found.text("body") == body:
            return Applied(SAYS_SO.format(number=number), changed=False)
        await self._change(context, number, {"body": body})
        return Applied(CHANGED.format(number=number))

    async def _close(self, context: EffectContext, found: Payload | None, record: str) -> Applied:
        if found is not None:
            number = found.integer("number")
            await self._change(context, number, {"state": "closed", "state_reason": "completed"})
        await context.records.put(record, {})
        return Applied(CLOSED.format(number=number)) if found is not None else Applied(NONE_OPEN, changed=False)

    async def _open_one(self, context: EffectContext) -> Payload | None:
        where = {"repo": context.repository.full_name, "creator": context.me.login, "state": "open"}
        async for item in context.github.getiter(OURS, url_vars=where):
            issue = Payload(item, "issue")
            ours = issue.has("user", "id") and issue.integer("user", "id") == context.me.user_id
            if ours and issue.text("body").startswith(MARKER.format(key=self.key)):
                return issue
        return None

    async def _change(self, context: EffectContext, number: int, change: dict[str, Any]) -> None:
        where = {"repo": context.repository.full_name, "number": str(number)}
        await context.github.patch(ONE_ISSUE, url_vars=where, data=change)
