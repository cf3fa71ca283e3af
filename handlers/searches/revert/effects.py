"""Effects of a draft that reverts the culprit of a search: its head before it is opened, and what is stored of it."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from http import HTTPStatus
from typing import ClassVar

from nightjar_formats.items import first_of

from bot.core.errors import TryAgain
from bot.core.events import Payload
from bot.effects.pulls import COMMITS, ONE_PULL
from bot.effects.refs import ONE_REF, REFS
from bot.engine.changes import Outdated
from bot.engine.records import StoredValue
from bot.github.access import CONTENTS, PULL_REQUESTS, WORKFLOWS, WritePermissions
from bot.github.addresses import commit_on_github, pull_on_github
from bot.github.commits.contents import COMMIT
from bot.github.commits.refs import branch_head
from bot.github.errors import is_not_found, is_unprocessable, status_of
from bot.plan.effect import Applied, EffectContext, StoreContext, StoredEffect
from handlers.searches.device_time import DEVICE_TIME
from handlers.searches.revert import texts
from handlers.searches.revert.records import (
    CULPRIT_REVERT,
    IN_WORK,
    OPEN_REVERT,
    REVERT_EVENT,
    REVERTED_HEAD,
    CulpritRevert,
    RevertedHead,
    RevertEvent,
    WaitingRevert,
)

MERGES = "/repos/{+repo}/merges"


@dataclass(frozen=True, slots=True)
class CheckRevert(StoredEffect):
    """Look at the revert of a search's culprit."""

    event: RevertEvent

    @property
    def effect_key(self) -> str:
        """The search."""
        return f"culprit-revert:{self.event.id}:check"

    async def store(self, context: StoreContext) -> Applied:
        """Announce it."""
        new = await context.changes.announce(REVERT_EVENT, context.repository, self.event)
        return Applied(texts.CHECKS.format(id=self.event.id), changed=new)


@dataclass(frozen=True, slots=True)
class StoreRevert(StoredEffect):
    """Store a revert if no other job has changed it since it was read: else the plan is made again."""

    search: str
    step: int
    stored: StoredValue

    @classmethod
    def of(cls, repository_id: int, revert: CulpritRevert) -> StoreRevert:
        """Return the effect that stores a revert."""
        key = CULPRIT_REVERT.of(repository_id, revert.search)
        return cls(revert.search, revert.step, StoredValue.of(key, revert))

    @property
    def effect_key(self) -> str:
        """The search."""
        return f"culprit-revert:{self.search}:store"

    async def store(self, context: StoreContext) -> Applied:
        """Replace the record of the step before. Raises `Outdated`."""
        key = CULPRIT_REVERT.of(context.repository.id, self.search)
        revert = CULPRIT_REVERT.load(key.name, self.stored.value, self.stored.version)

        def changed(old: CulpritRevert | None) -> CulpritRevert:
            if (old.step if old else 0) != self.step - 1:
                raise Outdated(key.name)
            return revert

        old = await context.changes.get(key)
        await context.changes.change(key, changed)
        runs = old.runs if old is not None and old.head == revert.head else ()
        count = partial(context.part(DEVICE_TIME).add, context.repository.full_name, runs, revert.runs)
        context.changes.after_commit.append(count)
        open_key = OPEN_REVERT.of(context.repository.id, self.search)
        is_open = revert.stage in IN_WORK
        is_open_value = StoredValue.of(open_key, WaitingRevert(context.repository.full_name, self.search, revert.pull))
        context.changes.write(open_key.name, is_open_value if is_open else None)
        return Applied(texts.STORED.format(id=self.search, stage=revert.stage.value))


@dataclass(frozen=True, slots=True)
class MakeRevertedHead:
    """Make a branch whose head is that of `base` without a merged pull request, as `git revert` does. No pull request.

    `merged` is the commit as which it was merged, `before` the one before it, and `at` (ISO 8601) the time of the
    commit that undoes it: a commit upon `merged` with the files of `before`, which is merged into the branch. Both
    begin at `merged`, so nothing else changes. The result is stored under `subject`, as a `RevertedHead`. The same
    commit has the same SHA, and GitHub merges it once, so each write may be repeated.
    https://docs.github.com/rest/branches/branches#merge-a-branch
    """

    permissions: ClassVar[WritePermissions] = frozenset({CONTENTS, WORKFLOWS})

    subject: str
    branch: str
    base: str
    merged: str
    before: str
    message: str
    at: str

    @property
    def effect_key(self) -> str:
        """The branch."""
        return f"reverted-head:{self.branch}"

    async def apply(self, context: EffectContext) -> Applied:
        """Make the commit and the branch, merge, and store the result."""
        github, url_vars = context.github, {"repo": context.repository.full_name}
        before = await github.getitem(COMMIT, url_vars={**url_vars, "sha": self.before})
        author = {"name": context.me.login, "email": texts.EMAIL.format(id=context.me.user_id, login=context.me.login)}
        commit = {
            "message": self.message,
            "tree": Payload(before, "commit").string("tree", "sha"),
            "parents": [self.merged],
            "author": {**author, "date": self.at},
        }
        undone = Payload(await github.post(COMMITS, url_vars=url_vars, data=commit), "commit").string("sha")
        if await branch_head(github, context.repository.full_name, self.branch) is None:
            tip = await branch_head(github, context.repository.full_name, self.base)
            if tip is None:
                await self._remember(context, RevertedHead(""))
                return Applied(texts.NO_BASE.format(base=self.base), changed=False)
            await self._create_branch(context, tip)
        merge = {"base": self.branch, "head": undone, "commit_message": self.message}
        try:
            await github.post(MERGES, url_vars=url_vars, data=merge)
        except Exception as error:
            if status_of(error) != HTTPStatus.CONFLICT:
                raise
            tip = await branch_head(github, context.repository.full_name, self.branch) or ""
            await self._remember(context, RevertedHead(tip))
            return Applied(texts.CONFLICTS.format(branch=self.branch), page=commit_on_github(self.merged))
        return await self._head(context)

    async def _create_branch(self, context: EffectContext, tip: str) -> None:
        data = {"ref": f"refs/heads/{self.branch}", "sha": tip}
        try:
            await context.github.post(REFS, url_vars={"repo": context.repository.full_name}, data=data)
        except Exception as error:
            # An earlier try may have created it late.
            if is_unprocessable(error) and await branch_head(context.github, context.repository.full_name, self.branch):
                return
            raise

    async def _head(self, context: EffectContext) -> Applied:
        """Read the branch, which may have been merged in an earlier try."""
        github, url_vars = context.github, {"repo": context.repository.full_name}
        head = await branch_head(github, context.repository.full_name, self.branch)
        if head is None:
            raise TryAgain(texts.BRANCH_REMOVED.format(branch=self.branch))
        commit = Payload(await github.getitem(COMMIT, url_vars={**url_vars, "sha": head}), "commit")
        tip = first_of(parent.string("sha") for parent in commit.items("parents"))
        tip_commit = Payload(await github.getitem(COMMIT, url_vars={**url_vars, "sha": tip}), "commit")
        is_same = commit.string("tree", "sha") == tip_commit.string("tree", "sha")
        await self._remember(context, RevertedHead(tip, head, is_same))
        return Applied(texts.HEAD_MADE.format(branch=self.branch, sha=head[:7]), page=commit_on_github(head))

    async def _remember(self, context: EffectContext, head: RevertedHead) -> None:
        await context.records.put(REVERTED_HEAD.of(context.repository.id, self.subject), head)


@dataclass(frozen=True, slots=True)
class RemoveRevertedHead:
    """Delete the branch of a reverted head, and forget it; `pull` is the reverted pull request."""

    permissions: ClassVar[WritePermissions] = frozenset({CONTENTS})

    subject: str
    branch: str
    pull: int

    @property
    def effect_key(self) -> str:
        """The branch."""
        return f"reverted-head:{self.branch}:remove"

    async def apply(self, context: EffectContext) -> Applied:
        """Delete the branch unless it does not exist."""
        await context.records.remove(REVERTED_HEAD.of(context.repository.id, self.subject))
        url_vars = {"repo": context.repository.full_name, "branch": self.branch}
        try:
            await context.github.delete(ONE_REF, url_vars=url_vars)
        except Exception as error:
            # If the branch does not exist, GitHub answers 422.
            if not (is_not_found(error) or is_unprocessable(error)):
                raise
            return Applied(texts.NO_HEAD.format(branch=self.branch), changed=False)
        return Applied(texts.HEAD_REMOVED.format(branch=self.branch), page=pull_on_github(self.pull))


@dataclass(frozen=True, slots=True)
class CorrectDraft:
    """Close our draft with a notice above its description, the reason `text`, or open it again, without one.

    What a person closed stays closed, and what was merged stays merged: only the notice is written there.
    """

    permissions: ClassVar[WritePermissions] = frozenset({PULL_REQUESTS})

    number: int
    text: str = ""

    @property
    def effect_key(self) -> str:
        """The draft."""
        return f"culprit-revert:draft:{self.number}"

    async def apply(self, context: EffectContext) -> Applied:
        """Read the pull request, then write the difference at once."""
        url_vars, page = {"repo": context.repository.full_name, "number": str(self.number)}, pull_on_github(self.number)
        pull = Payload(await context.github.getitem(ONE_PULL, url_vars=url_vars), "pull_request")
        description, was_closed_by_us = texts.without_notice(pull.text("body"))
        change = dict[str, str]()
        is_open = pull.string("state") == "open"
        body = texts.with_notice(description, self.text, is_ours=is_open or was_closed_by_us)
        # GitHub may answer with other line ends.
        if body.split() != pull.text("body").split():
            change["body"] = body
        if self.text and is_open:
            change["state"] = "closed"
        elif not self.text and not is_open and was_closed_by_us and not pull.text("merged_at"):
            change["state"] = "open"
        if not change:
            return Applied(texts.DRAFT_SAME.format(number=self.number), changed=False, page=page)
        await context.github.patch(ONE_PULL, url_vars=url_vars, data=change)
        return Applied(texts.DRAFT_CORRECTED.format(number=self.number), page=page)
