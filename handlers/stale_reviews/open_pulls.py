"""A repository's open pull requests, with who did something on each and when: one GraphQL request for each page.

REST says when a pull request was last updated but not who updated it, and reading the history of each would cost a
request per open pull request. This query costs one of the 5,000 points per hour of an installation.

https://docs.github.com/graphql/reference/objects#pullrequest
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any

from gidgethub import QueryError

from bot.core.events import Payload, Person

if TYPE_CHECKING:
    from collections.abc import Iterator

    from bot.github.client import GitHub

MOST_PAGES = 40
"""The most pages of 25 that are read: a thousand pull requests, those first that were updated longest ago."""

QUERY = """
query($owner: String!, $name: String!, $after: String) {
  repository(owner: $owner, name: $name) {
    pullRequests(states: [OPEN], first: 25, after: $after, orderBy: {field: UPDATED_AT, direction: ASC}) {
      pageInfo { hasNextPage endCursor }
      nodes {
        number isDraft locked createdAt updatedAt lastEditedAt
        author { ...account }
        editor { ...account }
        commits(last: 1) { nodes { commit { committedDate author { name } } } }
        reviewRequests(first: 30) { nodes { requestedReviewer { ...account ... on Team { combinedSlug } } } }
        latestReviews(first: 30) { nodes { author { ...account } } }
        timelineItems(last: 50, itemTypes: [
          ISSUE_COMMENT, PULL_REQUEST_REVIEW, HEAD_REF_FORCE_PUSHED_EVENT, READY_FOR_REVIEW_EVENT, REOPENED_EVENT,
          REVIEW_REQUESTED_EVENT, RENAMED_TITLE_EVENT
        ]) {
          pageInfo { hasPreviousPage }
          nodes {
            ... on IssueComment { createdAt lastEditedAt by: author { ...account } }
            ... on PullRequestReview { createdAt lastEditedAt by: author { ...account } }
            ... on HeadRefForcePushedEvent { createdAt by: actor { ...account } }
            ... on ReadyForReviewEvent { createdAt by: actor { ...account } }
            ... on ReopenedEvent { createdAt by: actor { ...account } }
            ... on ReviewRequestedEvent { createdAt by: actor { ...account } }
            ... on RenamedTitleEvent { createdAt by: actor { ...account } }
          }
        }
      }
    }
  }
}
fragment account on Actor { __typename login ... on User { databaseId } }
"""

HUMAN = "User"
BOT_MARK = "[bot]"
"""The end of bots' names in git."""
HIDDEN = "FORBIDDEN"
"""The type of GraphQL errors about what the App cannot see: teams, if it may not read the organization's members."""


@dataclass(frozen=True, slots=True)
class OpenPull:
    """An open pull request; `author` None: the account was deleted.

    `active_at` is when a person last did something, in seconds since 1970: opened it, edited title or text, pushed,
    commented, reviewed, asked for a review, said that it is ready. Actions of bots do not count, and labels do not.
    `requested` and `reviewed` are people, in GitHub's order; `teams` are written `org/team`. `pushed_by_bot` says that
    the head is a bot's commit, `is_locked` that few may write there.
    """

    number: int
    is_draft: bool
    author: Person | None
    active_at: float
    requested: tuple[Person, ...] = ()
    teams: tuple[str, ...] = ()
    reviewed: tuple[Person, ...] = ()
    pushed_by_bot: bool = False
    is_locked: bool = False


async def open_pulls(github: GitHub, repository: str) -> list[OpenPull]:
    """Return the open pull requests of `owner/name`; a request for every 25 of them, `MOST_PAGES` at most."""
    owner, _, name = repository.partition("/")
    pulls: list[OpenPull] = []
    cursor: str | None = None
    # TVM's script overwrote its page with another answer, and never read the second one (TVM #10807).
    for _ in range(MOST_PAGES):
        page = Payload(await _read_page(github, owner, name, cursor)).at("repository", "pullRequests")
        pulls += [pull_of(node) for node in page.items("nodes")]
        if not page.flag("pageInfo", "hasNextPage"):
            break
        cursor = page.string("pageInfo", "endCursor")
    return pulls


async def _read_page(github: GitHub, owner: str, name: str, cursor: str | None) -> Any:
    try:
        return await github.graphql(QUERY, owner=owner, name=name, after=cursor)
    except QueryError as error:
        data = error.response.get("data")
        if data and all(
            isinstance(error_item, Mapping) and error_item.get("type") == HIDDEN
            for error_item in error.response["errors"]
        ):
            return data  # with null in place of those nodes
        raise


def pull_of(node: Payload) -> OpenPull:
    """Read a pull request from an answer to `QUERY`."""
    commit = next((item.at("commit") for item in node.items("commits", "nodes")), Payload({}))
    pushed_by_bot = commit.text("author", "name").endswith(BOT_MARK)
    requested = [item.at("requestedReviewer") for item in _items_with(node, "reviewRequests", "requestedReviewer")]
    return OpenPull(
        number=node.integer("number"),
        is_draft=node.flag("isDraft"),
        author=_person(node, "author"),
        active_at=max(_activity_times(node, commit, pushed_by_bot)),
        requested=tuple(person for item in requested if (person := _account(item)) and not person.is_bot),
        teams=tuple(item.string("combinedSlug") for item in requested if item.has("combinedSlug")),
        reviewed=tuple(
            person
            for item in _items_with(node, "latestReviews", "author")
            if (person := _person(item, "author")) and not person.is_bot
        ),
        pushed_by_bot=pushed_by_bot,
        is_locked=node.flag("locked"),
    )


def _activity_times(node: Payload, commit: Payload, pushed_by_bot: bool) -> Iterator[float]:
    """Yield the times at which people did something; the first one is when it was opened, even by a bot."""
    yield moment(node.string("createdAt"))
    if commit.has("committedDate") and not pushed_by_bot:
        # The committer's clock may be ahead, but a push also updates the pull request.
        yield min(moment(commit.string("committedDate")), moment(node.string("updatedAt")))
    if node.has("lastEditedAt") and not _is_bot(node, "editor"):
        yield moment(node.string("lastEditedAt"))
    events = list(node.items("timelineItems", "nodes"))
    if events and node.flag("timelineItems", "pageInfo", "hasPreviousPage"):
        # Earlier items are not listed. They may be a person's, and are at most as new as the first listed one.
        yield moment(events[0].string("createdAt"))
    for event in events:
        if not _is_bot(event, "by"):
            yield moment(event.string("createdAt"))
            if event.has("lastEditedAt"):
                yield moment(event.string("lastEditedAt"))


def moment(iso: str) -> float:
    """Parse a time of GitHub's; return seconds since 1970."""
    return datetime.fromisoformat(iso).timestamp()


def _items_with(node: Payload, connection: str, key: str) -> Iterator[Payload]:
    return (item for item in node.items(connection, "nodes") if item.has(key))


def _is_bot(parent: Payload, key: str) -> bool:
    """Say whether an account is known to be a bot's; a deleted one ("ghost") may have been a person's."""
    return parent.has(key) and parent.text(key, "__typename") != HUMAN


def _person(parent: Payload, key: str) -> Person | None:
    return _account(parent.at(key)) if parent.has(key) else None


def _account(account: Payload) -> Person | None:
    """Return the person of an account; None for a team. GraphQL has numbers only for people."""
    if not account.has("login"):
        return None
    number = account.integer("databaseId") if account.has("databaseId") else 0
    return Person(number, account.string("login"), is_bot=account.text("__typename") != HUMAN)
