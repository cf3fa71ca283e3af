"""A pull request of our own that changes files: updated in place, and closed when it is no longer needed.

Everything is written through GitHub's Git data API, without a clone: https://docs.github.com/rest/git. Each of our
commits is recorded before the branch moves to it. The branch is force-pushed only if its head is one of these commits,
so commits that somebody else pushed are never lost.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from bot.core.errors import TryAgain, UserError
from bot.core.events import Payload
from bot.core.line_edits import LineEdits
from bot.core.patterns import Pattern
from bot.effects import texts
from bot.effects.refs import ONE_REF, REFS
from bot.effects.reviews import request_reviews
from bot.engine.records import Record
from bot.github.access import CONTENTS, MEMBERS, PULL_REQUESTS, WritePermissions
from bot.github.addresses import NO_PAGE, pull_on_github
from bot.github.commits.contents import COMMIT, PLAIN_FILE, found_at
from bot.github.commits.refs import branch_head
from bot.github.errors import is_not_found, is_unprocessable
from bot.github.text.markdown import TEXT_LIMIT, truncate
from bot.plan.effect import Applied, EffectContext

PULLS = "/repos/{+repo}/pulls"
OURS = PULLS + "{?head,base,state,sort,direction,per_page}"
ONE_PULL = PULLS + "/{number}"
TREES, COMMITS = "/repos/{+repo}/git/trees", "/repos/{+repo}/git/commits"
MOST_READ = "10"
"""The most pull requests of the branch that we read, newest first. At most one of them is open."""
MOST_COMMITS = 10
"""The most commits of ours that we remember for a branch."""

MARKER = "<!-- nightjar:pull:{key} -->"
_ANY_MARKER = Pattern(r"\A<!-- nightjar:pull:[a-z0-9:]* -->\r?\n?")


@dataclass(frozen=True, slots=True)
class PullBranch:
    """A branch of ours: our newest commits on it, the base of the last one, and the time of its decision.

    `number` is its last pull request, 0 before the first, and `reviewers` are those whose review of it was
    requested, in lower case.
    """

    shas: tuple[str, ...] = ()
    base_sha: str = ""
    at: str = ""
    number: int = 0
    reviewers: tuple[str, ...] = ()


PULL_BRANCH = Record("pull-of", 1, PullBranch, "the bot's commits on a branch that it proposes", days=None)


@dataclass(frozen=True, slots=True)
class EnsurePull:
    """Ensure one open pull request from `branch` into `base`: one commit on `base_sha` that sets a file's `content`.

    With `edits`, the commit edits lines of files at `base_sha`. Without `content` and `edits`, the pull request is
    closed and its branch deleted; `body` may say why. `key` names the proposal: if a person closed a pull request with
    this key, it stays closed. `at` (ISO 8601) is the time of the decision; a decision that is older than the last one
    changes nothing.
    """

    branch: str
    base: str
    at: str
    base_sha: str = ""
    path: str = ""
    content: str = ""
    key: str = ""
    title: str = ""
    body: str = ""
    message: str = ""
    """The message of the commit."""
    edits: tuple[LineEdits, ...] = ()
    reviewers: tuple[str, ...] = ()
    """People, and teams as `org/team`. Each is asked once to review a pull request; whom GitHub refuses is left out."""

    @property
    def permissions(self) -> WritePermissions:
        """Those of the commit and the pull request; only to ask a team for its review, the App must see teams."""
        has_teams = any("/" in name for name in self.reviewers)
        return frozenset({CONTENTS, PULL_REQUESTS} | ({MEMBERS} if has_teams else set()))

    @property
    def effect_key(self) -> str:
        """The branch."""
        return f"pull-of:{self.branch}"

    async def apply(self, context: EffectContext) -> Applied:
        """Read the pull request and the branch, write the differences, and record each commit before moving the branch.

        Raises `TryAgain` if somebody moves the branch at the same moment, `UserError` if the branch is not ours.
        """
        record = await context.records.get(PULL_BRANCH.of(context.repository.id, self.branch)) or PullBranch()
        if record.at > self.at:
            return Applied(texts.PULL_OLDER, changed=False)
        pull = await self._pull(context)
        head = await branch_head(context.github, context.repository.full_name, self.branch)
        is_own_head = head in record.shas
        if not self.content and not self.edits:
            return await self._close(context, pull, head if is_own_head else None, record)
        if pull and not _is_open(pull) and not pull.has("merged_at") and self._has_proposal(context, pull):
            number = pull.integer("number")
            text = texts.PULL_CLOSED_BY_OTHERS.format(number=number)
            return Applied(text, changed=False, page=pull_on_github(number))
        is_open, files = pull is not None and _is_open(pull), await self._files(context)
        if head and await self._has_files(context, files, head, record, is_open=is_open):
            return await self._ensure_pull(context, pull, pushed=False)
        if head and not is_own_head:
            if not is_open:
                raise UserError(texts.BRANCH_TAKEN.format(branch=self.branch))
            return await self._ensure_pull(context, pull, pushed=False, left_alone=True)
        await self._push(context, files, head, record)
        return await self._ensure_pull(context, pull, pushed=True)

    async def _pull(self, context: EffectContext) -> Payload | None:
        """Return the open pull request of the branch, otherwise our newest one, otherwise None."""
        owner = context.repository.full_name.partition("/")[0]
        url_vars = {
            # `head` needs the owner before the branch: https://docs.github.com/en/rest/pulls/pulls#list-pull-requests
            **{"repo": context.repository.full_name, "head": f"{owner}:{self.branch}", "base": self.base},
            **{"state": "all", "sort": "created", "direction": "desc", "per_page": MOST_READ},
        }
        listed = [Payload(item, "pull_request") for item in await context.github.getitem(OURS, url_vars=url_vars)]
        own_pulls = [pull for pull in listed if _is_ours(pull, context)]
        return next((pull for pull in listed if _is_open(pull)), own_pulls[0] if own_pulls else None)

    async def _files(self, context: EffectContext) -> dict[str, bytes]:
        """Return the content of each file that the commit changes. Raises `UserError` if the base has no such file."""
        files = {self.path: self.content.encode()} if self.content else {}
        for edits in self.edits:
            file = await found_at(context.github, context.repository.full_name, edits.path, self.base_sha)
            if file is None:
                raise UserError(texts.NO_FILE_AT_BASE.format(path=edits.path, sha=self.base_sha[:7]))
            files[edits.path] = edits.edited(file.raw)
        return files

    async def _has_files(
        self, context: EffectContext, files: Mapping[str, bytes], head: str, record: PullBranch, *, is_open: bool
    ) -> bool:
        """Return whether the branch has the wanted files and, without a pull request, starts at `base_sha`."""
        if not is_open and (record.base_sha, *record.shas[-1:]) != (self.base_sha, head):
            return False
        for path, content in files.items():
            file = await found_at(context.github, context.repository.full_name, path, head)
            if file is None or file.raw != content:
                return False
        return True

    async def _push(
        self, context: EffectContext, files: Mapping[str, bytes], head: str | None, record: PullBranch
    ) -> None:
        """Create the commit, record it, and move the branch to it, if nobody has moved the branch meanwhile."""
        github, url_vars = context.github, {"repo": context.repository.full_name}
        base = await github.getitem(COMMIT, url_vars={**url_vars, "sha": self.base_sha})
        entries = [
            {"path": path, "mode": PLAIN_FILE, "type": "blob", "content": content.decode()}
            for path, content in files.items()
        ]
        # Without `base_tree` these would be the only files: https://docs.github.com/en/rest/git/trees#create-a-tree
        tree = {"base_tree": Payload(base, "commit").string("tree", "sha"), "tree": entries}
        tree_sha = Payload(await github.post(TREES, url_vars=url_vars, data=tree), "tree").string("sha")
        commit = {"message": self.message, "tree": tree_sha, "parents": [self.base_sha]}
        sha = Payload(await github.post(COMMITS, url_vars=url_vars, data=commit), "commit").string("sha")
        shas = (*record.shas, sha)[-MOST_COMMITS:]
        branch_record = replace(record, shas=shas, base_sha=self.base_sha, at=self.at)
        await context.records.put(PULL_BRANCH.of(context.repository.id, self.branch), branch_record)
        # GitHub moves a branch by force without a condition, so this check right before it is the only guard:
        # https://docs.github.com/en/rest/git/refs#update-a-reference
        if await branch_head(github, context.repository.full_name, self.branch) != head:
            raise TryAgain(texts.BRANCH_CHANGED.format(branch=self.branch))
        if head is None:
            await github.post(REFS, url_vars=url_vars, data={"ref": f"refs/heads/{self.branch}", "sha": sha})
        else:
            ref = {**url_vars, "branch": self.branch}
            await github.patch(ONE_REF, url_vars=ref, data={"sha": sha, "force": True})

    async def _ensure_pull(
        self, context: EffectContext, pull: Payload | None, *, pushed: bool, left_alone: bool = False
    ) -> Applied:
        """Open the pull request, or update its text if it differs."""
        if pull is None or not _is_open(pull):
            return await self._open(context)
        number = pull.integer("number")
        page = pull_on_github(number)
        await self._remember(context, number)
        if not _is_ours(pull, context):
            return Applied(texts.PULL_OF_OTHERS.format(number=number), changed=pushed, page=page)
        key = f"{self.key}:left" if left_alone else self.key
        text = texts.PULL_LEFT_ALONE.format(branch=self.branch) if left_alone else texts.PULL_SAME.format(number=number)
        if self._has_proposal(context, pull, key):
            return Applied(texts.PULL_UPDATED.format(number=number) if pushed else text, changed=pushed, page=page)
        body = "\n".join(
            [
                MARKER.format(key=key),
                (texts.PULL_TAKEN_OVER.format(branch=self.branch) if left_alone else "") + self.body,
            ]
        )
        await self._change(context, number, {"body": body})
        return Applied(text if left_alone else texts.PULL_UPDATED.format(number=number), page=page)

    async def _open(self, context: EffectContext) -> Applied:
        body = "\n".join([MARKER.format(key=self.key), self.body])
        data = {"title": self.title, "head": self.branch, "base": self.base, "body": body}
        try:
            created = await context.github.post(PULLS, url_vars={"repo": context.repository.full_name}, data=data)
        except Exception as error:
            # GitHub answers 422 also if a pull request is open already, for example after a lost answer.
            if is_unprocessable(error) and (open_pull := await self._pull(context)) is not None and _is_open(open_pull):
                number = open_pull.integer("number")
                await self._remember(context, number)
                return Applied(texts.PULL_SHOWN.format(number=number), page=pull_on_github(number))
            raise
        number = Payload(created, "pull_request").integer("number")
        await self._remember(context, number)
        return Applied(texts.PULL_OPENED.format(number=number), page=pull_on_github(number))

    async def _remember(self, context: EffectContext, number: int) -> None:
        """Store the number of the branch's pull request, and ask for reviews of it."""
        key = PULL_BRANCH.of(context.repository.id, self.branch)
        stored = await context.records.get(key) or PullBranch()
        record = stored if stored.number == number else replace(stored, number=number, reviewers=())
        if names := [name for name in self.reviewers if name.lower() not in record.reviewers]:
            owner = context.repository.full_name.partition("/")[0].lower()
            url_vars = {"repo": context.repository.full_name, "number": str(number)}
            teams = [name for name in names if name.partition("/")[0].lower() == owner and "/" in name]
            await request_reviews(context.github, url_vars, [name for name in names if "/" not in name], teams)
            record = replace(record, reviewers=(*record.reviewers, *(name.lower() for name in names)))
        if record != stored:
            await context.records.put(key, record)

    async def _close(
        self, context: EffectContext, pull: Payload | None, head: str | None, record: PullBranch
    ) -> Applied:
        """Close the pull request, in one write with the reason; delete the branch if it is ours (`head` not None)."""
        outcomes, page = [], pull_on_github(pull.integer("number")) if pull else NO_PAGE
        is_open = pull is not None and _is_open(pull) and _is_ours(pull, context)
        if is_open and head is None:
            return Applied(texts.PULL_LEFT_ALONE.format(branch=self.branch), changed=False, page=page)
        if head is not None:
            branch_record = replace(record, at=self.at)
            await context.records.put(PULL_BRANCH.of(context.repository.id, self.branch), branch_record)
        if is_open and pull is not None:
            number = pull.integer("number")
            # Without the marker: with it, `apply` would take this for a pull request that a person closed.
            reason = f"{self.body}\n\n" if self.body else texts.PULL_NOT_NEEDED.format(base=self.base)
            body = reason + _ANY_MARKER.sub("", pull.text("body"))
            await self._change(context, number, {"state": "closed", "body": truncate(body, TEXT_LIMIT)})
            outcomes.append(texts.PULL_CLOSED.format(number=number))
        if head is not None:
            url_vars = {"repo": context.repository.full_name, "branch": self.branch}
            try:
                await context.github.delete(ONE_REF, url_vars=url_vars)
            except Exception as error:
                # If the branch does not exist, GitHub answers 422.
                if not (is_not_found(error) or is_unprocessable(error)):  # somebody has deleted it already
                    raise
            outcomes.append(texts.PULL_BRANCH_DELETED.format(branch=self.branch))
        return Applied("; ".join(outcomes) or texts.NOTHING_TO_CLOSE, changed=bool(outcomes), page=page)

    async def _change(self, context: EffectContext, number: int, change: dict[str, str]) -> None:
        url_vars = {"repo": context.repository.full_name, "number": str(number)}
        await context.github.patch(ONE_PULL, url_vars=url_vars, data=change)

    def _has_proposal(self, context: EffectContext, pull: Payload, key: str = "") -> bool:
        """Return whether a pull request of ours has this proposal."""
        marker = MARKER.format(key=key or self.key)
        return _is_ours(pull, context) and pull.text("body").startswith(marker)


def _is_open(pull: Payload) -> bool:
    return pull.string("state") == "open"


def _is_ours(pull: Payload, context: EffectContext) -> bool:
    return pull.has("user", "id") and pull.integer("user", "id") == context.me.user_id
