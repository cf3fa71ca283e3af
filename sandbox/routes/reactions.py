"""Reactions to issues, pull requests and comments. Reactions to reviews exist only in GraphQL.

https://docs.github.com/rest/reactions/reactions
"""

from __future__ import annotations

from sandbox.errors import locked, not_found
from sandbox.model.issues import Comment, Issue, add_reaction, reactions_of
from sandbox.model.pulls import ReviewComment
from sandbox.routing import ApiResponse, Call, route
from sandbox.views import issues

from .issues import EITHER, REPO, comment_of
from .reviews import comment_of as review_comment_of

ISSUE = f"{REPO}/issues/{{issue_number}}/reactions"
COMMENT = f"{REPO}/issues/comments/{{comment_id}}/reactions"
REVIEW_COMMENT = f"{REPO}/pulls/comments/{{comment_id}}/reactions"


def _list(call: Call, subject: Issue | Comment | ReviewComment) -> ApiResponse:
    content = call.query.get("content")
    reactions = [reaction for reaction in reactions_of(subject) if content in {None, reaction.content}]
    return call.page(reactions, issues.reaction)


def _add(call: Call, subject: Issue | Comment | ReviewComment, issue: Issue) -> ApiResponse:
    """Answer 201 for a new reaction, 200 for an existing one."""
    if issue.locked:
        raise locked("reaction")
    reaction, new = add_reaction(call.actor, str(call.body["content"]), subject, issue)
    return ApiResponse(issues.reaction(reaction), 201 if new else 200)


def _remove(call: Call, subject: Issue | Comment | ReviewComment) -> ApiResponse:
    reactions = reactions_of(subject)
    reaction = next((reaction for reaction in reactions if reaction.id == call.path["reaction_id"]), None)
    if reaction is None or reaction.user is not call.actor:
        raise not_found()
    reactions.remove(reaction)
    call.github.changed()
    return ApiResponse(status=204)


@route("GET", ISSUE, *EITHER)
def list_for_issue(call: Call) -> ApiResponse:
    """List the reactions to an issue's or pull request's own text."""
    return _list(call, call.issue)


@route("POST", ISSUE, *EITHER)
def add_to_issue(call: Call) -> ApiResponse:
    """React to an issue's or pull request's own text."""
    return _add(call, call.issue, call.issue)


@route("DELETE", f"{ISSUE}/{{reaction_id}}", *EITHER)
def remove_from_issue(call: Call) -> ApiResponse:
    """Remove a reaction."""
    return _remove(call, call.issue)


@route("GET", COMMENT, *EITHER)
def list_for_comment(call: Call) -> ApiResponse:
    """List the reactions to a comment."""
    return _list(call, comment_of(call))


@route("POST", COMMENT, *EITHER)
def add_to_comment(call: Call) -> ApiResponse:
    """React to a comment."""
    comment = comment_of(call)
    return _add(call, comment, comment.issue)


@route("DELETE", f"{COMMENT}/{{reaction_id}}", *EITHER)
def remove_from_comment(call: Call) -> ApiResponse:
    """Remove a reaction."""
    return _remove(call, comment_of(call))


@route("GET", REVIEW_COMMENT, "pull_requests")
def list_for_review_comment(call: Call) -> ApiResponse:
    """List the reactions to a comment on a diff."""
    return _list(call, review_comment_of(call))


@route("POST", REVIEW_COMMENT, "pull_requests")
def add_to_review_comment(call: Call) -> ApiResponse:
    """React to a comment on a diff."""
    comment = review_comment_of(call)
    return _add(call, comment, comment.pull)


@route("DELETE", f"{REVIEW_COMMENT}/{{reaction_id}}", "pull_requests")
def remove_from_review_comment(call: Call) -> ApiResponse:
    """Remove a reaction."""
    return _remove(call, review_comment_of(call))
