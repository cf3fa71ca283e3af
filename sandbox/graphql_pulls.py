"""GraphQL's list of a repository's pull requests, with their timelines.

https://docs.github.com/graphql/reference/objects#repository, its `pullRequests`
"""

from __future__ import annotations

import re
from datetime import datetime
from typing import TYPE_CHECKING, Any

from sandbox.clock import iso
from sandbox.routing import ApiResponse
from sandbox.selection import UnknownField, read
from sandbox.views import repositories

if TYPE_CHECKING:
    from sandbox.model.apps import InstallationToken
    from sandbox.model.pulls import PullRequest
    from sandbox.model.repository import Repository
    from sandbox.users import Team, User

Json = dict[str, Any]
_SIZES = re.compile(r"\b(pullRequests|timelineItems)\s*\([^)]*?\b(?:first|last)\s*:\s*(\d+)", re.DOTALL)
_KINDS = re.compile(r"itemTypes\s*:\s*\[([^\]]*)\]")
EVENTS = {
    "ready_for_review": "ReadyForReviewEvent",
    "reopened": "ReopenedEvent",
    "review_requested": "ReviewRequestedEvent",
    "renamed": "RenamedTitleEvent",
}
NOT_ACCESSIBLE = "Resource not accessible by integration"


def page_of_pulls(repository: Repository, token: InstallationToken, query: str, variables: Json) -> ApiResponse:
    """Answer one page of the open pull requests, least recently updated first.

    Requested teams are null for callers who may not see teams.
    """
    sizes = {name: int(size) for name, size in _SIZES.findall(query)}
    kinds = {kind.replace("_", "").lower() for kind in re.findall(r"\w+", _KINDS.findall(query)[0])}
    pulls = [(_cursor(pull), pull) for pull in repository.pulls if pull.state == "open"]
    cursor = str(variables.get("after") or "")
    waiting = sorted((pair for pair in pulls if pair[0] > cursor), key=lambda pair: pair[0])
    page = waiting[: sizes["pullRequests"]]
    teams = token.may("members", "read")
    nodes = [_pull(pull, sizes["timelineItems"], kinds, teams=teams) for _, pull in page]
    info = {"hasNextPage": len(waiting) > len(page), "endCursor": page[-1][0] if page else None}
    answer = {"repository": {"pullRequests": {"pageInfo": info, "nodes": nodes}}}
    document = read(query)
    try:
        data = document.of(answer, document.query)
    except UnknownField as error:
        return ApiResponse({"errors": [{"type": "undefinedField", "message": str(error)}]})
    hidden = [
        ["repository", "pullRequests", "nodes", index, "reviewRequests", "nodes", place, "requestedReviewer"]
        for index, (_, pull) in enumerate(page)
        for place in range(len(pull.requested_reviewers), len(pull.requested_reviewers) + len(pull.requested_teams))
        if not teams
    ]
    errors = [{"type": "FORBIDDEN", "path": path, "message": NOT_ACCESSIBLE} for path in hidden]
    return ApiResponse({"data": data, **({"errors": errors} if errors else {})})


def _cursor(pull: PullRequest) -> str:
    return f"{iso(pull.updated_at)} {pull.number:09}"


def _pull(pull: PullRequest, size: int, kinds: set[str], *, teams: bool) -> Json:
    happened = [event for event in _happened(pull) if event["__typename"].lower() in kinds]
    head = pull.repository.git.commits[pull.head_sha]
    author = repositories.person(head.author, head)
    edited, editor = pull.last_edited or (None, None)
    requested: list[Json | None] = [actor(user) for user in pull.requested_reviewers]
    requested += [_team(team) if teams else None for team in pull.requested_teams]
    wait = set(pull.requested_reviewers)
    reviewers = {user: None for user in _reviewers(pull) if user not in wait}
    return {
        "__typename": "PullRequest",
        "number": pull.number,
        "isDraft": pull.draft,
        "locked": pull.locked,
        "createdAt": iso(pull.created_at),
        "updatedAt": iso(pull.updated_at),
        "lastEditedAt": iso(edited) if edited else None,
        "editor": actor(editor) if editor else None,
        "author": actor(pull.user),
        "commits": {"nodes": [{"commit": {"committedDate": author["date"], "author": author}}]},
        "reviewRequests": {"nodes": [{"requestedReviewer": reviewer} for reviewer in requested]},
        "latestReviews": {"nodes": [{"author": actor(user)} for user in reviewers]},
        "timelineItems": {"pageInfo": {"hasPreviousPage": len(happened) > size}, "nodes": happened[-size:]},
    }


def _reviewers(pull: PullRequest) -> list[User]:
    alone = [comment.user for comment in pull.review_comments if comment.review is None]
    return [*(review.user for review in pull.reviews), *alone]


def actor(account: User) -> Json | None:
    """Return an account, None if it was deleted. GraphQL writes bots' names without `[bot]`."""
    if account.deleted:
        return None
    return {"__typename": account.type, "login": account.login.removesuffix("[bot]"), "databaseId": account.id}


def _team(team: Team) -> Json:
    return {"__typename": "Team", "combinedSlug": f"{team.organization.login}/{team.slug}"}


def _happened(pull: PullRequest) -> list[Json]:
    """Return the items of the timeline, oldest first.

    GitHub creates a review for each line comment or reply that is not part of one.
    """
    items: list[tuple[datetime, int, Json]] = []

    def note(kind: str, account: User, moment: datetime, edited: datetime | None = None) -> None:
        item = {"__typename": kind, "createdAt": iso(moment), "author": actor(account), "actor": actor(account)}
        items.append((moment, len(items), {**item, "lastEditedAt": iso(edited) if edited else None}))

    for comment in pull.comments:
        edited = comment.updated_at if comment.updated_at != comment.created_at else None
        note("IssueComment", comment.user, comment.created_at, edited)
    for review in pull.reviews:
        note("PullRequestReview", review.user, review.submitted_at)
    for line in pull.review_comments:
        if line.review is None:
            note("PullRequestReview", line.user, line.created_at)
    for push in pull.pushes:
        if push.forced:
            note("HeadRefForcePushedEvent", push.actor, push.pushed_at)
    for name, account, moment in pull.history:
        if name in EVENTS:
            note(EVENTS[name], account, moment)
    return [item for _, _, item in sorted(items, key=lambda item: item[:2])]
