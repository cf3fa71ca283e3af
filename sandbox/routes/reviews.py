"""Reviews and comments on the diff.

https://docs.github.com/rest/pulls/reviews and https://docs.github.com/rest/pulls/comments
"""

from __future__ import annotations

from sandbox.errors import invalid, not_found, refused
from sandbox.model.pulls import Review, ReviewComment, ReviewState
from sandbox.routing import ApiResponse, Call, route, too_long
from sandbox.views import issues

from .issues import BODY_LIMIT, REPO
from .pulls import PULL

STATES: dict[str, ReviewState] = {
    "APPROVE": "APPROVED",
    "REQUEST_CHANGES": "CHANGES_REQUESTED",
    "COMMENT": "COMMENTED",
}


@route("GET", f"{PULL}/reviews", "pull_requests")
def list_reviews(call: Call) -> ApiResponse:
    """List reviews, oldest first."""
    return call.page(call.pull.reviews, issues.review)


@route("POST", f"{PULL}/reviews", "pull_requests")
def create_review(call: Call) -> ApiResponse:
    """Submit a review. The sandbox has no pending reviews."""
    event, body = call.body.get("event"), call.body.get("body", "")
    if event not in STATES:
        raise invalid("event", "the sandbox has no pending reviews: name an event")
    too_long("body", body, BODY_LIMIT)
    if event != "APPROVE" and not body:
        raise refused("Validation Failed", "a review that does not approve needs a body")
    if event != "COMMENT" and call.actor is call.pull.user:
        raise refused("Unprocessable Entity", "Can not approve or refuse your own pull request")
    return ApiResponse(issues.review(call.pull.review(call.actor, body, STATES[event])))


@route("GET", f"{PULL}/reviews/{{review_id}}", "pull_requests")
def get_review(call: Call) -> ApiResponse:
    """Return one review."""
    return ApiResponse(issues.review(_review(call)))


@route("GET", f"{PULL}/reviews/{{review_id}}/comments", "pull_requests")
def list_comments_of_review(call: Call) -> ApiResponse:
    """List the comments that belong to one review."""
    review = _review(call)
    comments = [comment for comment in call.pull.review_comments if comment.review is review]
    return call.page(comments, issues.review_comment)


def _review(call: Call) -> Review:
    review = next((r for r in call.pull.reviews if r.id == call.path["review_id"]), None)
    if review is None:
        raise not_found()
    return review


@route("GET", f"{PULL}/comments", "pull_requests")
def list_comments(call: Call) -> ApiResponse:
    """List the comments on a pull request's diff, oldest first."""
    return call.page(call.pull.review_comments, issues.review_comment)


@route("GET", f"{REPO}/pulls/comments/{{comment_id}}", "pull_requests")
def get_comment(call: Call) -> ApiResponse:
    """Return one comment on a diff."""
    return ApiResponse(issues.review_comment(comment_of(call)))


@route("POST", f"{PULL}/comments/{{comment_id}}/replies", "pull_requests")
def reply(call: Call) -> ApiResponse:
    """Reply to a comment on a diff."""
    replied, text = comment_of(call), str(call.body["body"])
    too_long("body", text, BODY_LIMIT)
    made = replied.pull.review_comment(call.actor, text, path=replied.path, line=replied.line, reply_to=replied)
    return ApiResponse(issues.review_comment(made), 201)


def comment_of(call: Call) -> ReviewComment:
    """Return the comment on a diff that the path names."""
    comment_id = call.path["comment_id"]
    comments = (comment for pull in call.repository.pulls for comment in pull.review_comments)
    comment = next((comment for comment in comments if comment.id == comment_id), None)
    if comment is None:
        raise not_found()
    return comment
