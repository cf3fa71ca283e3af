"""Commit statuses."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from bot.core.events import Payload
from bot.effects import texts
from bot.github.access import STATUSES, WritePermissions
from bot.github.addresses import commit_on_github
from bot.github.check_runs import three_byte
from bot.github.text.markdown import truncate
from bot.plan.effect import Applied, EffectContext

DESCRIPTION_LIMIT = 140
"""The most characters that GitHub accepts (https://docs.github.com/en/rest/commits/statuses)."""


@dataclass(frozen=True, slots=True)
class SetStatus:
    """Ensure that the newest status of a context on a commit has this state and description."""

    permissions: ClassVar[WritePermissions] = frozenset({STATUSES})

    sha: str
    context_name: str
    state: str
    description: str
    target_url: str = ""
    record: str = ""
    """The key of the record from which the status was decided, if the record may change before a retry."""
    recorded: Mapping[str, Any] | None = None
    """The content of the record at that time; if it has changed since, whoever changed it writes the new status."""

    @property
    def effect_key(self) -> str:
        """The commit and the context."""
        return f"status:{self.sha}:{self.context_name}"

    async def apply(self, context: EffectContext) -> Applied:
        """Compare with the record, if there is one, then with the newest status; write the status if it differs."""
        if self.record and await context.records.stored(self.record) != self.recorded:
            page = commit_on_github(self.sha, checks=True)
            text = texts.STATUS_OUTDATED.format(record=self.record, name=self.context_name)
            return Applied(text, changed=False, page=page)
        return await ensure_status(context, self.sha, self.context_name, self.state, self.description, self.target_url)


async def ensure_status(
    context: EffectContext, sha: str, name: str, state: str, description: str, target_url: str = ""
) -> Applied:
    """Write a status if the newest one differs: GitHub accepts only 1,000 for a commit and context.

    A status without a page is the same as one with a page: a push and its pull request report one decision under two
    locks, and only the pull request has a page. If both write before either reads, GitHub gets the same status twice,
    and shows the newest.
    """
    url_vars = {"repo": context.repository.full_name, "sha": sha}
    page = commit_on_github(sha, checks=True)
    # Truncate before comparing: otherwise a long text would always differ from GitHub's text.
    expected = (state, truncate(three_byte(description), DESCRIPTION_LIMIT))
    statuses = context.github.getiter("/repos/{+repo}/commits/{sha}/status", url_vars=url_vars, iterable_key="statuses")
    async for item in statuses:
        status = Payload(item)
        if status.string("context") == name:
            is_same = (status.string("state"), status.text("description")) == expected
            if is_same and target_url in ("", status.text("target_url")):
                return Applied(texts.STATUS_SAME.format(name=name), changed=False, page=page)
            # The combined status has only the newest of each context.
            # https://docs.github.com/en/rest/commits/statuses#get-the-combined-status-for-a-specific-reference
            break
    body = {"state": state, "context": name, "description": expected[1]}
    if target_url:
        body["target_url"] = target_url
    await context.github.post("/repos/{+repo}/statuses/{sha}", url_vars=url_vars, data=body)
    return Applied(texts.STATUS_SET.format(name=name, sha=sha[:7], description=description), page=page)
