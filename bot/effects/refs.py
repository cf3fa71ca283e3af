"""Move branches forward, never by force."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from bot.core.errors import TryAgain, UserError
from bot.effects import texts
from bot.github.access import CONTENTS, WORKFLOWS, WritePermissions
from bot.github.addresses import branch_on_github
from bot.github.commits.refs import AHEAD, DIVERGED, branch_head, compared
from bot.github.commits.workflow_files import may_lack_workflows, move_changes_workflows
from bot.github.errors import is_forbidden, is_unprocessable
from bot.plan.effect import Applied, EffectContext
from bot.plan.failure_text import NEEDS_WORKFLOWS, refusal_text

REFS = "/repos/{+repo}/git/refs"
ONE_REF = "/repos/{+repo}/git/refs/heads/{branch}"


@dataclass(frozen=True, slots=True)
class MoveBranch:
    """Move a branch forward to a commit, or create it there; if that is not a fast-forward, don't change it.

    Its value is the commit of the branch afterwards.
    """

    permissions: ClassVar[WritePermissions] = frozenset({CONTENTS, WORKFLOWS})

    branch: str
    sha: str

    @property
    def effect_key(self) -> str:
        """The branch."""
        return f"branch:{self.branch}"

    async def apply(self, context: EffectContext) -> Applied:
        """Read the branch, then move it without force, so that GitHub refuses anything but a fast-forward.

        Raises `UserError` if the branch has other commits, is protected, or the App may not write to it, and `TryAgain`
        if somebody else moved it meanwhile.
        """
        names = {"branch": self.branch, "sha": self.sha[:7]}
        repository, page = context.repository.full_name, branch_on_github(self.branch)
        head = await branch_head(context.github, repository, self.branch)
        if head == self.sha:
            return Applied(texts.BRANCH_THERE.format(**names), changed=False, value=self.sha, page=page)
        if head is None:
            await self._write(context, None)
            return Applied(texts.BRANCH_CREATED.format(**names), value=self.sha, page=page)
        status = (await compared(context.github, repository, head, self.sha)).status
        if status == DIVERGED:
            raise UserError(texts.CANNOT_MOVE.format(**names) + texts.HAS_OTHER_COMMITS.format(**names))
        if status != AHEAD:
            return Applied(texts.BRANCH_CONTAINS.format(**names), changed=False, value=head, page=page)
        await self._write(context, head)
        return Applied(texts.BRANCH_MOVED.format(**names, before=head[:7]), value=self.sha, page=page)

    async def _write(self, context: EffectContext, head: str | None) -> None:
        repository = context.repository.full_name
        try:
            if head is None:
                body = {"ref": f"refs/heads/{self.branch}", "sha": self.sha}
                await context.github.post(REFS, url_vars={"repo": repository}, data=body)
            else:
                url_vars = {"repo": repository, "branch": self.branch}
                # Without force, GitHub answers 422 if it is not a fast-forward:
                # https://docs.github.com/en/rest/git/refs#update-a-reference
                await context.github.patch(ONE_REF, url_vars=url_vars, data={"sha": self.sha, "force": False})
        except Exception as error:
            if not (is_forbidden(error) or is_unprocessable(error)):
                raise
            # GitHub answers 422 both for a protected branch and for a branch that somebody has moved meanwhile. Its
            # texts change, so only the branch shows the cause.
            if await branch_head(context.github, repository, self.branch) != head:
                raise TryAgain(texts.BRANCH_CHANGED.format(branch=self.branch)) from error
            reason = str(refusal_text(error))
            if may_lack_workflows(error) and await move_changes_workflows(context.github, repository, head, self.sha):
                reason = NEEDS_WORKFLOWS
            raise UserError(texts.CANNOT_MOVE.format(branch=self.branch) + reason.rstrip(".")) from error
