"""The effect that opens a revert."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, ClassVar

from gidgethub import QueryError

from bot.core.errors import RefusedToPerson
from bot.core.payload import Payload
from bot.effects.pulls import ONE_PULL, OURS
from bot.github.access import CONTENTS, PULL_REQUESTS, WritePermissions
from bot.github.addresses import pull_on_github
from bot.github.errors import is_forbidden, is_not_found, message_of
from bot.github.text.markdown import code, truncate
from bot.plan.effect import Applied, EffectContext
from handlers.slow_tests.revert import texts

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
class MergedPull:
    """A merged pull request: its number, its branch (in any repository), and the branch into which it was merged."""

    number: int
    head: str
    base: str


def marker_of(number: int) -> str:
    """Return the line by which we recognize our own revert of a pull request."""
    return f"<!-- nightjar:revert:{number} -->"


async def existing_reverts(
    github: GitHub, repository: str, me: AppIdentity, merged: MergedPull
) -> list[tuple[int, RevertState]]:
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
    return [(pull.integer("number"), _state(pull)) for pull in own_pulls[::-1]]


@dataclass(frozen=True, slots=True)
class OpenRevert:
    """Open a draft that reverts a merged pull request, unless somebody has opened one."""

    permissions: ClassVar[WritePermissions] = frozenset({CONTENTS, PULL_REQUESTS})

    merged: MergedPull
    title: str
    body: str

    @property
    def effect_key(self) -> str:
        """The reverted pull request."""
        return f"revert:{self.merged.number}"

    async def apply(self, context: EffectContext) -> Applied:
        """Look for a revert, then let GitHub open one. Raises `RefusedToPerson` if GitHub can't."""
        repository, github = context.repository.full_name, context.github
        existing = await existing_reverts(github, repository, context.me, self.merged)
        if existing:
            (first, _), *twins = existing
            for number, state in twins:
                if state is RevertState.OPEN:
                    url_vars = {"repo": repository, "number": str(number)}
                    await github.patch(ONE_PULL, url_vars=url_vars, data={"state": "closed"})
            text = texts.AUDIT_EXISTING.format(number=first)
            return Applied(text, changed=False, page=pull_on_github(first))
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
        return Applied(texts.AUDIT_OPENED.format(number=number), page=pull_on_github(number))

    def _refusal(self, message: str) -> str:
        return texts.NOT_BY_GITHUB.format(
            number=self.merged.number,
            message=code(truncate(message, LONGEST_MESSAGE)),
            command=code("git revert"),
            base=code(self.merged.base),
        )


async def _pulls(github: GitHub, url_vars: dict[str, str]) -> list[Payload]:
    return [Payload(item, "pull_request") for item in await github.getitem(OURS, url_vars=url_vars)]


def _state(pull: Payload) -> RevertState:
    return RevertState.MERGED if pull.has("merged_at") else RevertState(pull.string("state"))
