"""Merge the base branch into a pull request's branch, as GitHub's button *Update branch* does."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from bot.core.errors import RefusedToPerson, UserError
from bot.core.events import Payload, PullRequest
from bot.github.access import CONTENTS, PULL_REQUESTS, WORKFLOWS, WritePermissions
from bot.github.addresses import pull_on_github
from bot.github.commits.refs import AHEAD, IDENTICAL, compared, is_update_of
from bot.github.commits.workflow_files import may_lack_workflows, move_changes_workflows
from bot.github.errors import is_forbidden, is_unprocessable, message_of
from bot.github.text.markdown import code
from bot.plan.effect import Applied, EffectContext
from bot.plan.failure_text import NEEDS_WORKFLOWS
from handlers.merge import texts

if TYPE_CHECKING:
    from bot.github.client import GitHub

PULL = "/repos/{+repo}/pulls/{number}"
UPDATE = "/repos/{+repo}/pulls/{number}/update-branch"
"""https://docs.github.com/rest/pulls/pulls#update-a-pull-request-branch"""

_NO_PUSH = "permission to update head repository"
"""A part of GitHub's text for a 403 if we may not push to the head's repository."""


@dataclass(frozen=True, slots=True)
class UpdateBranch:
    """Have GitHub merge `base` into a pull request that still has the head `sha`."""

    permissions: ClassVar[WritePermissions] = frozenset({CONTENTS, PULL_REQUESTS, WORKFLOWS})

    number: int
    sha: str
    base: str

    @property
    def effect_key(self) -> str:
        """The pull request's branch."""
        return f"update-branch:{self.number}"

    async def apply(self, context: EffectContext) -> Applied:
        """Check whether the update has happened or is needed, then ask GitHub, which merges a moment later.

        The request names the head, and GitHub refuses any other. Raises `RefusedToPerson` with the reason.
        """
        github, repository, names = context.github, context.repository.full_name, self._names
        answer, pull = await self._read_pull(github, repository)
        if not pull.is_open:
            raise RefusedToPerson(texts.UPDATE_CLOSED)
        if pull.head_sha != self.sha:
            return await self._handle_moved_head(github, repository, pull.head_sha)
        # `ahead` describes the head: it has every commit of the base.
        # https://docs.github.com/rest/commits/commits#compare-two-commits
        if (await compared(github, repository, self.base, self.sha)).status in (AHEAD, IDENTICAL):
            return Applied(texts.HAS_BASE.format(**names), changed=False, page=pull_on_github(self.number))
        url_vars = {"repo": repository, "number": str(self.number)}
        try:
            await github.put(UPDATE, url_vars=url_vars, data={"expected_head_sha": self.sha})
        except Exception as error:
            if not (is_forbidden(error) or is_unprocessable(error)):
                raise
            _, current = await self._read_pull(github, repository)
            # A head that has moved is one of the reasons for a 422:
            # https://docs.github.com/rest/pulls/pulls#update-a-pull-request-branch
            if current.head_sha != self.sha:
                return await self._handle_moved_head(github, repository, current.head_sha)
            if may_lack_workflows(error) and await move_changes_workflows(github, repository, self.sha, self.base):
                raise UserError(NEEDS_WORKFLOWS) from error
            refused = self._refusal(error, answer)
            if refused is None:
                raise
            raise refused from error
        return Applied(texts.UPDATE_STARTED.format(**names), page=pull_on_github(self.number))

    async def _read_pull(self, github: GitHub, repository: str) -> tuple[Payload, PullRequest]:
        answer = Payload(await github.getitem(PULL, url_vars={"repo": repository, "number": str(self.number)}))
        return answer, PullRequest.of(answer)

    async def _handle_moved_head(self, github: GitHub, repository: str, head_sha: str) -> Applied:
        if await is_update_of(github, repository, head_sha, self.sha):
            text = texts.UPDATED_ALREADY.format(**self._names)
            return Applied(text, changed=False, page=pull_on_github(self.number))
        raise RefusedToPerson(texts.UPDATE_HEAD_MOVED.format(old=code(self.sha[:7]), new=code(head_sha[:7])))

    def _refusal(self, error: Exception, pull: Payload) -> RefusedToPerson | None:
        """Return GitHub's refusal as an error for people; None if it is not one that we know."""
        message, base = message_of(error).casefold(), code(self.base)
        if is_forbidden(error) and _NO_PUSH in message:
            return RefusedToPerson(
                texts.UPDATE_FORK.format(fork=code(pull.text("head", "repo", "full_name")), base=base)
            )
        if not is_unprocessable(error):
            return None
        # GitHub answers 422 for every refusal; only its text tells a conflict from the others.
        if "conflict" in message:
            return RefusedToPerson(texts.UPDATE_CONFLICTS.format(base=base))
        return RefusedToPerson(texts.UPDATE_REFUSED.format(message=code(message_of(error))))

    @property
    def _names(self) -> dict[str, str]:
        return {"sha": self.sha[:7], "base": self.base}
