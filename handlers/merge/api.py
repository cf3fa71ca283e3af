"""Calls to GitHub for a merge: templates, merge queue, commits, and the merge itself."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from gidgethub import QueryError

from bot.core.events import Payload
from bot.github.text.commit_message import AuthoredCommit
from bot.github.transport.graphql import is_unknown_field

if TYPE_CHECKING:
    from bot.github.client import GitHub

MERGE = "/repos/{+repo}/pulls/{number}/merge"
COMMITS = "/repos/{+repo}/pulls/{number}/commits"
"""GitHub lists 250 at most: https://docs.github.com/rest/pulls/pulls#list-commits-on-a-pull-request"""

# Templates may lie in many places, in any case, or be those of the whole organization; merge queues are not in REST.
# https://docs.github.com/graphql/reference/objects#pullrequest
_FACTS = """
query($owner: String!, $name: String!, $number: Int!) {
  repository(owner: $owner, name: $name) {
    pullRequestTemplates { body }
    pullRequest(number: $number) { id baseRefName headRefOid isInMergeQueue isMergeQueueEnabled }
  }
}
"""
# Enterprise Server has no merge queues before 3.12, and refuses a query that names their fields.
_FACTS_WITHOUT_QUEUES = _FACTS.replace(" isInMergeQueue isMergeQueueEnabled", "")
# https://docs.github.com/graphql/reference/mutations#enqueuepullrequest
_ENQUEUE = """
mutation($id: ID!, $sha: GitObjectID!) {
  enqueuePullRequest(input: {pullRequestId: $id, expectedHeadOid: $sha}) { mergeQueueEntry { position } }
}
"""
_DEQUEUE = """
mutation($id: ID!) {
  dequeuePullRequest(input: {id: $id}) { mergeQueueEntry { position } }
}
"""


@dataclass(frozen=True, slots=True)
class MergeFacts:
    """The repository's templates, and a pull request's base, head and place in the merge queue."""

    templates: tuple[str, ...]
    node_id: str
    base: str
    head_sha: str
    has_queue: bool
    is_queued: bool


async def merge_facts_of(github: GitHub, repository: str, number: int) -> MergeFacts:
    """Return what only GraphQL reports, with one request; with two if the server is too old for merge queues."""
    owner, _, name = repository.partition("/")
    try:
        data = await github.graphql(_FACTS, owner=owner, name=name, number=number)
    except QueryError as error:
        if not is_unknown_field(error):
            raise
        data = await github.graphql(_FACTS_WITHOUT_QUEUES, owner=owner, name=name, number=number)
    answer = Payload(data, "merge facts")
    pull = answer.at("repository", "pullRequest")
    templates = tuple(template.text("body") for template in answer.items("repository", "pullRequestTemplates"))
    return MergeFacts(
        templates,
        # The mutations of the queue accept only this global ID:
        # https://docs.github.com/graphql/guides/using-global-node-ids
        node_id=pull.string("id"),
        base=pull.string("baseRefName"),
        head_sha=pull.string("headRefOid"),
        has_queue=pull.flag("isMergeQueueEnabled"),
        is_queued=pull.flag("isInMergeQueue"),
    )


async def commits_of(github: GitHub, repository: str, number: int) -> list[AuthoredCommit]:
    """Return the pull request's commits, oldest first, with one request for each hundred."""
    url_vars = {"repo": repository, "number": str(number)}
    commits = []
    async for item in github.getiter(COMMITS, url_vars=url_vars):
        commit = Payload(item, "commit")
        commits.append(
            AuthoredCommit(
                # Null if no account has the commit's email address:
                # https://docs.github.com/rest/pulls/pulls#list-commits-on-a-pull-request
                author_id=commit.integer("author", "id") if commit.has("author", "id") else 0,
                name=commit.text("commit", "author", "name"),
                email=commit.text("commit", "author", "email"),
                message=commit.text("commit", "message"),
                is_merge=len(list(commit.items("parents"))) > 1,
            )
        )
    return commits


async def put_merge(github: GitHub, repository: str, number: int, body: Mapping[str, str]) -> str:
    """Merge a pull request, and return the SHA of the commit on the base branch.

    https://docs.github.com/rest/pulls/pulls#merge-a-pull-request: 405 if it cannot be merged, 409 if the head is not
    `sha`. The request is never repeated by itself: check first whether the merge happened.
    """
    url_vars = {"repo": repository, "number": str(number)}
    return Payload(await github.put(MERGE, url_vars=url_vars, data=dict(body)), "merge").text("sha")


async def enqueue(github: GitHub, node_id: str, sha: str) -> None:
    """Add a pull request to the merge queue, if `sha` is still its head."""
    await github.graphql(_ENQUEUE, id=node_id, sha=sha)


async def dequeue(github: GitHub, node_id: str) -> None:
    """Remove a pull request from the merge queue."""
    await github.graphql(_DEQUEUE, id=node_id)
