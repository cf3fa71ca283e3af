"""A draft that reverts a merged pull request, opened by GitHub itself."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, ClassVar

from gidgethub import QueryError

from bot.core.errors import RefusedToPerson
from bot.core.events import Payload
from bot.effects import texts
from bot.effects.pulls import ONE_PULL, OURS
from bot.engine.records import Record
from bot.github.access import CONTENTS, PULL_REQUESTS, WritePermissions
from bot.github.addresses import pull_on_github
from bot.github.errors import is_forbidden, is_not_found, message_of
from bot.github.text.markdown import code, truncate
from bot.plan.effect import Applied, EffectContext

if TYPE_CHECKING:
    from bot.github.app import AppIdentity
    from bot.github.client import GitHub

# The mutations accept only the global ID that GraphQL itself gives:
# https://docs.github.com/graphql/guides/using-global-node-ids
_NODE = """
query($owner: String!, $name: String!, $number: Int!) {
  repository(owner: $owner, name: $name) { pullRequest(number: $number) { id } }
}
"""
# https://docs.github.com/graphql/reference/mutations#revertpullrequest; the App needs write access to contents.
_REVERT = """
mutation($id: ID!, $title: String!, $body: String!) {
  revertPullRequest(input: {pullRequestId: $id, title: $title, body: $body, draft: true}) {
    revertPullRequest { number }
  }
}
"""
LONGEST_MESSAGE = 500
NEWEST = "30"
"""The number of newest pull requests among which we look for our own: GitHub may choose another name of the branch."""


class RevertState(StrEnum):
    """The state of the pull request that reverts another."""

    OPEN = "open"
    MERGED = "merged"
    CLOSED = "closed"


@dataclass(frozen=True, slots=True)
class ExistingRevert:
    """A pull request that reverts another, whoever opened it."""

    number: int
    state: RevertState
    body: str = ""


@dataclass(frozen=True, slots=True)
class OpenedRevert:
    """The pull request that reverts another after `OpenRevert` with a `subject`.

    `is_own`: it has the description of that effect, so it was not opened for another reason.
    """

    number: int
    is_own: bool


OPENED_REVERT = Record("opened-revert", 1, OpenedRevert, "the draft that the bot opened for a subject", days=365)


@dataclass(frozen=True, slots=True)
class MergedPull:
    """A merged pull request: its number, its branch (in any repository), and the branch into which it was merged."""

    number: int
    head: str
    base: str


def marker_of(number: int) -> str:
    """Return the line by which we recognize our own revert of a pull request."""
    return f"<!-- nightjar:revert:{number} -->"


def revert_title(title: str) -> str:
    """Return the title of the pull request that reverts one with this title, as GitHub's button writes it."""
    return texts.REVERT_TITLE.format(title=f'"{truncate(title, texts.LONGEST_REVERT_TITLE)}"')


def reverts_line(reference: str) -> str:
    """Return the line by which GitHub links a revert; `reference` is the reverted one, as in `octocat/compiler#12`."""
    return texts.REVERTS.format(reference=reference)


async def existing_reverts(
    github: GitHub, repository: str, me: AppIdentity, merged: MergedPull
) -> list[ExistingRevert]:
    """Return the pull requests that revert a merged one, with their states: by our marker, or by GitHub's branch.

    After a lost answer there may be two of ours; the older one comes first.
    """
    url_vars = {"repo": repository, "base": merged.base, "state": "all", "sort": "created", "direction": "desc"}
    newest = await _pulls(github, {**url_vars, "per_page": NEWEST})
    marker = marker_of(merged.number)
    own_pulls = [
        pull
        for pull in newest
        if pull.has("user", "id") and pull.integer("user", "id") == me.user_id and marker in pull.text("body")
    ]
    if not own_pulls:
        # People have GitHub's button, which names its branch like this.
        branch = f"{repository.partition('/')[0]}:revert-{merged.number}-{merged.head}"
        own_pulls = await _pulls(github, {**url_vars, "head": branch, "per_page": "1"})
    return [ExistingRevert(pull.integer("number"), _state(pull), pull.text("body")) for pull in own_pulls[::-1]]


@dataclass(frozen=True, slots=True)
class OpenRevert:
    """Open a draft that reverts a merged pull request, unless somebody has opened one.

    With a `subject`, it stores which pull request that is, under `OPENED_REVERT`.
    """

    permissions: ClassVar[WritePermissions] = frozenset({CONTENTS, PULL_REQUESTS})

    merged: MergedPull
    title: str
    body: str
    subject: str = ""

    @property
    def effect_key(self) -> str:
        """The reverted pull request."""
        return f"revert:{self.merged.number}"

    async def apply(self, context: EffectContext) -> Applied:
        """Look for a revert, then let GitHub open one. Raises `RefusedToPerson` if GitHub can't."""
        repository, github = context.repository.full_name, context.github
        existing = await existing_reverts(github, repository, context.me, self.merged)
        if existing:
            first, *twins = existing
            for twin in twins:
                if twin.state is RevertState.OPEN:
                    url_vars = {"repo": repository, "number": str(twin.number)}
                    await github.patch(ONE_PULL, url_vars=url_vars, data={"state": "closed"})
            text = texts.REVERT_EXISTS.format(number=first.number)
            # GitHub may answer with other line ends.
            await self._remember(context, OpenedRevert(first.number, first.body.split() == self.body.split()))
            return Applied(text, changed=False, page=pull_on_github(first.number))
        owner, _, name = repository.partition("/")
        node = Payload(await github.graphql(_NODE, owner=owner, name=name, number=self.merged.number), "pull request")
        node_id = node.string("repository", "pullRequest", "id")
        try:
            data = await github.graphql(_REVERT, id=node_id, title=self.title, body=self.body)
        except QueryError as error:
            # GitHub names no reason in a form for programs, so people get its sentence.
            if is_forbidden(error) or is_not_found(error):
                raise
            raise RefusedToPerson(self._refusal(message_of(error))) from error
        number = Payload(data, "revert").integer("revertPullRequest", "revertPullRequest", "number")
        await self._remember(context, OpenedRevert(number, is_own=True))
        return Applied(texts.REVERT_OPENED.format(number=number), page=pull_on_github(number))

    async def _remember(self, context: EffectContext, opened: OpenedRevert) -> None:
        if self.subject:
            await context.records.put(OPENED_REVERT.of(context.repository.id, self.subject), opened)

    def _refusal(self, message: str) -> str:
        return texts.NOT_REVERTED_BY_GITHUB.format(
            number=self.merged.number,
            message=code(truncate(message, LONGEST_MESSAGE)),
            command=code("git revert"),
            base=code(self.merged.base),
        )


async def _pulls(github: GitHub, url_vars: dict[str, str]) -> list[Payload]:
    return [Payload(item, "pull_request") for item in await github.getitem(OURS, url_vars=url_vars)]


def _state(pull: Payload) -> RevertState:
    return RevertState.MERGED if pull.has("merged_at") else RevertState(pull.string("state"))
