"""Merge a pull request directly or through the merge queue, and remove it from the queue."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from functools import partial
from typing import TYPE_CHECKING, ClassVar

from gidgethub import QueryError

from bot.core.errors import RefusedToPerson, TryAgain, UserError
from bot.core.run_in_thread import run_in_thread
from bot.github.access import CONTENTS, PULL_REQUESTS, WORKFLOWS, WritePermissions
from bot.github.addresses import GitHubPage, commit_on_github, pull_on_github
from bot.github.commits.ours import Ours
from bot.github.commits.refs import message_at
from bot.github.commits.workflow_files import may_lack_workflows, pull_changes_workflows
from bot.github.errors import is_conflict, is_forbidden, message_of
from bot.github.repositories.permissions import role_of
from bot.github.text import commit_message as merge_message
from bot.github.text.markdown import code
from bot.github.text.skip_directives import skips_ci
from bot.plan.effect import Applied, EffectContext
from bot.plan.failure_text import NEEDS_WORKFLOWS
from handlers.merge import texts
from handlers.merge.api import MergeFacts, commits_of, dequeue, enqueue, merge_facts_of, put_merge
from handlers.merge.config import MERGE
from handlers.merge.pending import pending_merge
from handlers.merge.readiness import MergeState, is_undecided, listed_blockers, merge_blockers
from handlers.merge.records import PendingMerge
from handlers.merge.snapshot import MAY_WRITE, merge_state_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from bot.github.text.commit_message import AuthoredCommit
    from handlers.merge.config import Merge

SQUASH, REBASE = "squash", "rebase"
COMPUTING_SECONDS = 2.0
"""Seconds before the next request for the merge state: the first request makes GitHub compute conflicts."""


_RACES = ("base branch was modified", "head branch was modified", "merge already in progress")
"""What GitHub says, in lower case, if another push or merge was faster; its advice is to try again."""


class MergeEnd(StrEnum):
    """The outcomes of a merge that did not fail."""

    MERGED = "merged"
    QUEUED = "queued"
    """The pull request is in GitHub's merge queue."""
    WAITS = "waits"
    """GitHub does not merge it yet."""
    CALLED_OFF = "called-off"


@dataclass(frozen=True, slots=True)
class MergeResult:
    """The result of `MergePull`; `message` is GitHub's text if it does not merge yet."""

    end: MergeEnd
    message: str = ""


@dataclass(frozen=True, slots=True)
class MergePull:
    """Merge a pull request as somebody asked, if it still has this head and nothing blocks it now.

    `waited`: merge only while the pending merge is stored, so that `@ci cancel` also stops a merge between two tries.
    """

    permissions: ClassVar[WritePermissions] = frozenset({CONTENTS, PULL_REQUESTS, WORKFLOWS})

    number: int
    pending: PendingMerge
    waited: bool = False

    @property
    def effect_key(self) -> str:
        """The pull request."""
        return merge_target(self.number)

    async def apply(self, context: EffectContext) -> Applied:
        """Check everything again, then merge exactly the head that was asked for.

        A merge cannot be undone, and this may run long after the decision, or twice. So it also checks again whether
        the person may still merge, and does nothing if the merge has already happened. Raises `RefusedToPerson` with
        the blockers, and `TryAgain` while GitHub computes conflicts.
        """
        config = context.config.of(MERGE)
        if config is None:
            raise RefusedToPerson(texts.MERGING_OFF)
        if self.waited and not await self._is_stored(context):
            return Applied(texts.WHY_CANCELLED, changed=False, value=MergeResult(MergeEnd.CALLED_OFF), page=self._page)
        repository = context.repository.full_name
        merge_state = await _read_merge_state(context, self.number)
        # An earlier try, or a worker that was frozen, may have merged it already.
        if merge_state.merged and merge_state.pull.head_sha == self.pending.sha:
            return self._merged_outcome(texts.WHY_MERGED_ALREADY, merge_state, changed=False)
        self._check(merge_state, config)
        if await role_of(context.github, repository, self.pending.by) not in MAY_WRITE:
            raise RefusedToPerson(texts.NO_ACCESS.format(by=code(self.pending.by.login)))
        squashed = config.method == SQUASH and not merge_state.rules.queue
        # Only a squash drops the other commits, and with them the credit of their authors.
        commits = await commits_of(context.github, repository, self.number) if squashed else []
        facts = await merge_facts_of(context.github, repository, self.number)
        if facts.is_queued:
            return self._queued_outcome(texts.WHY_QUEUED_ALREADY, merge_state, changed=False)
        # GitHub verifies the head of a merge but not its base, which may have changed since we read the merge state.
        if (facts.base, facts.head_sha) != (self.pending.base, self.pending.sha):
            raise TryAgain(texts.WHY_CHANGED, retry_in=COMPUTING_SECONDS)
        if facts.has_queue:
            return await self._enqueue(context, merge_state, facts)
        if config.method == REBASE:
            await self._check_message(context, merge_state)
        return await self._merge(
            context, merge_state, await self._merge_parameters(merge_state, config, facts, commits)
        )

    async def _is_stored(self, context: EffectContext) -> bool:
        stored = await pending_merge(context.records, context.repository.id, self.number)
        return stored is not None and stored.sha == self.pending.sha

    def _check(self, merge_state: MergeState, config: Merge) -> None:
        head, base = merge_state.pull.head_sha, merge_state.pull.base_ref
        if merge_state.pull.is_open and head != self.pending.sha:
            raise RefusedToPerson(texts.HEAD_MOVED_MEANWHILE.format(old=code(self.pending.sha[:7]), new=code(head[:7])))
        if merge_state.pull.is_open and base != self.pending.base:
            raise RefusedToPerson(texts.RETARGETED.format(new=code(base), old=code(self.pending.base)))
        blockers = merge_blockers(merge_state, config)
        if blockers:
            raise RefusedToPerson(texts.NOW_BLOCKED.format(why=listed_blockers(blockers)))
        if is_undecided(merge_state, blockers):
            raise TryAgain(texts.WHY_UNDECIDED, retry_in=COMPUTING_SECONDS)

    async def _check_message(self, context: EffectContext, merge_state: MergeState) -> None:
        """Raise `RefusedToPerson` if the head's message, which a rebase does not change, would make CI skip the base.

        CI reads only the message of the last commit of a push.
        https://docs.github.com/en/actions/how-tos/manage-workflow-runs/skip-workflow-runs
        """
        if skips_ci(await message_at(context.github, context.repository.full_name, self.pending.sha)):
            values = {"sha": code(self.pending.sha[:7]), "base": code(merge_state.pull.base_ref)}
            raise RefusedToPerson(texts.SKIPS_CI.format(**values))

    async def _merge_parameters(
        self, merge_state: MergeState, config: Merge, facts: MergeFacts, commits: Sequence[AuthoredCommit]
    ) -> dict[str, str]:
        """Return the merge method and the message; a rebase has no message because it creates no commit of its own."""
        if config.method == REBASE:
            return {"merge_method": REBASE}
        pull = merge_state.pull
        title, body = merge_message.rejoined(pull.title, pull.body)
        write = partial(merge_message.message, body, facts.templates, commits, pull.author)
        return {
            "merge_method": config.method,
            "commit_title": merge_message.title(title, self.number),
            "commit_message": await run_in_thread(write, body),
        }

    async def _merge(self, context: EffectContext, merge_state: MergeState, parameters: Mapping[str, str]) -> Applied:
        repository = context.repository.full_name
        try:
            # With `sha`, GitHub answers 409 instead of merging a head that somebody pushed since the check above.
            # https://docs.github.com/rest/pulls/pulls#merge-a-pull-request
            commit = await put_merge(context.github, repository, self.number, {"sha": self.pending.sha, **parameters})
        except Exception as error:
            if may_lack_workflows(error) and await pull_changes_workflows(context.github, repository, self.number):
                raise UserError(NEEDS_WORKFLOWS) from error
            # 405 and 409 have many causes, which differ only in GitHub's text. So read the merge state again.
            if not is_conflict(error):
                raise
            current = await _read_merge_state(context, self.number)
            # Somebody pressed GitHub's button at the same moment.
            if current.merged and current.pull.head_sha == self.pending.sha:
                return self._merged_outcome(texts.WHY_MERGED_ALREADY, current, changed=False)
            if self.waited and (current.blocked or current.behind):
                return self._waiting_outcome(message_of(error))
            if current.pull.is_open and current.mergeable is None:
                # The base has just moved, and GitHub computes conflicts again.
                raise TryAgain(texts.WHY_UNDECIDED, retry_in=COMPUTING_SECONDS) from error
            refused = texts.REFUSED.format(sha=code(self.pending.sha[:7]), message=code(message_of(error)))
            is_same = (current.pull.head_sha, current.pull.base_ref) == (self.pending.sha, self.pending.base)
            if current.pull.is_open and is_same and any(text in message_of(error).casefold() for text in _RACES):
                raise TryAgain(refused) from error
            raise RefusedToPerson(refused) from error
        return self._merged_outcome(texts.WHY_MERGED, merge_state, commit=commit)

    def _waiting_outcome(self, message: str) -> Applied:
        """Leave the merge pending: classic protection may require more approvals, and only admins can read it."""
        text = texts.WHY_REFUSED_YET.format(sha=self.pending.sha[:7])
        return Applied(text, changed=False, value=MergeResult(MergeEnd.WAITS, message), page=self._page)

    async def _enqueue(self, context: EffectContext, merge_state: MergeState, facts: MergeFacts) -> Applied:
        try:
            await enqueue(context.github, facts.node_id, self.pending.sha)
        except QueryError as error:
            # A missing permission has a text of its own, for the administrators: `bot.plan.failure_text`.
            if is_forbidden(error):
                raise
            # GitHub refuses a second entry, and somebody may have added this one since we looked.
            if (await merge_facts_of(context.github, context.repository.full_name, self.number)).is_queued:
                return self._queued_outcome(texts.WHY_QUEUED_ALREADY, merge_state, changed=False)
            raise RefusedToPerson(
                texts.QUEUE_REFUSED.format(sha=code(self.pending.sha[:7]), message=code(message_of(error)))
            ) from error
        return self._queued_outcome(texts.WHY_QUEUED, merge_state)

    def _merged_outcome(self, text: str, merge_state: MergeState, *, changed: bool = True, commit: str = "") -> Applied:
        outcome_text = text.format(sha=self.pending.sha[:7], base=merge_state.pull.base_ref, commit=commit[:7])
        page = commit_on_github(commit) or self._page
        return Applied(outcome_text, changed=changed, value=MergeResult(MergeEnd.MERGED), page=page)

    @property
    def _page(self) -> GitHubPage:
        return pull_on_github(self.number)

    def _queued_outcome(self, text: str, merge_state: MergeState, *, changed: bool = True) -> Applied:
        outcome_text = text.format(sha=self.pending.sha[:7], base=merge_state.pull.base_ref)
        return Applied(outcome_text, changed=changed, value=MergeResult(MergeEnd.QUEUED), page=self._page)


@dataclass(frozen=True, slots=True)
class LeaveQueue:
    """Remove a pull request that we added to the merge queue."""

    permissions: ClassVar[WritePermissions] = frozenset({CONTENTS, PULL_REQUESTS})

    number: int

    @property
    def effect_key(self) -> str:
        """The pull request's place in the queue."""
        return f"merge-queue:{self.number}"

    async def apply(self, context: EffectContext) -> Applied:
        """Remove it from the queue if it is there."""
        facts = await merge_facts_of(context.github, context.repository.full_name, self.number)
        if not facts.is_queued:
            return Applied(texts.WHY_NOT_IN_QUEUE, changed=False, page=pull_on_github(self.number))
        await dequeue(context.github, facts.node_id)
        return Applied(texts.WHY_REMOVED_FROM_QUEUE, page=pull_on_github(self.number))


async def _read_merge_state(context: EffectContext, number: int) -> MergeState:
    merge = context.config.of(MERGE)
    required = merge.required if merge is not None else ()
    own_contexts = Ours.of(context.me, context.config)
    return await merge_state_of(context.github, context.repository.full_name, number, own_contexts, required)


def merge_target(number: int) -> str:
    """Return the target of the effect that merges a pull request."""
    return f"merge:{number}"
