"""Issues, comments of issues and pull requests, and labels.

https://docs.github.com/rest/issues
"""

from __future__ import annotations

from datetime import datetime

from sandbox.errors import ApiError, locked, not_found
from sandbox.model.issues import Comment, Issue
from sandbox.model.pulls import PullRequest
from sandbox.model.repository import Repository
from sandbox.routing import ApiResponse, Call, route, too_long
from sandbox.views import issues, repositories

BODY_LIMIT = 65536
REPO = "/repos/{owner}/{repo}"
# Every pull request is an issue, so either permission is enough for what both have.
# https://docs.github.com/rest/authentication/permissions-required-for-github-apps
EITHER = ("issues", "pull_requests")


@route("GET", f"{REPO}/issues", "issues")
def list_issues(call: Call) -> ApiResponse:
    """List issues and pull requests, newest first."""
    state, since = call.query.get("state", "open"), call.query.get("since")
    names = {name.lower() for name in call.query.get("labels", "").split(",") if name}
    selected = [
        issue
        for issue in reversed(call.repository.issues.values())
        if state in {"all", issue.state} and names <= {label.name.lower() for label in issue.labels}
    ]
    creator = call.query.get("creator")
    if creator:
        # Some servers find nothing for an App's login: https://github.com/renovatebot/renovate/issues/44730
        hidden = creator.endswith("[bot]") and not call.github.finds_apps_as_creators
        selected = [issue for issue in selected if issue.user.login == creator and not hidden]
    if since:
        selected = [issue for issue in selected if issue.updated_at >= datetime.fromisoformat(since)]
    return call.page(selected, issues.issue)


@route("POST", f"{REPO}/issues", "issues")
def create_issue(call: Call) -> ApiResponse:
    """Open an issue."""
    made = call.repository.open_issue(call.actor, str(call.body["title"]), call.body.get("body"))
    return ApiResponse(issues.issue(made), 201)


@route("GET", f"{REPO}/issues/{{issue_number}}", *EITHER)
def get_issue(call: Call) -> ApiResponse:
    """Return an issue or pull request."""
    return ApiResponse(issues.issue(call.issue))


@route("PATCH", f"{REPO}/issues/{{issue_number}}", *EITHER)
def update_issue(call: Call) -> ApiResponse:
    """Change title, body or state."""
    change(call, call.issue)
    return ApiResponse(issues.issue(call.issue))


def change(call: Call, issue: Issue) -> None:
    """Apply an update to an issue or pull request."""
    body = call.body.get("body")
    too_long("body", body or "", BODY_LIMIT)
    issue.edit(call.actor, title=call.body.get("title"), body=body)
    state = call.body.get("state")
    if state == "closed" and issue.state == "open":
        issue.close(call.actor)
    elif state == "open" and issue.state == "closed":
        if isinstance(issue, PullRequest) and issue.merged_at:
            raise ApiError(422, "Validation Failed", errors=["state cannot be changed."])
        issue.reopen(call.actor)


@route("GET", f"{REPO}/issues/{{issue_number}}/comments", *EITHER)
def list_comments(call: Call) -> ApiResponse:
    """List the comments of one conversation, oldest first."""
    since = call.query.get("since")
    comments = [c for c in call.issue.comments if not since or c.updated_at >= datetime.fromisoformat(since)]
    return call.page(comments, issues.comment)


@route("POST", f"{REPO}/issues/{{issue_number}}/comments", *EITHER)
def create_comment(call: Call) -> ApiResponse:
    """Write a comment."""
    issue = call.issue
    if issue.locked:
        raise locked("comment")
    made = issue.comment(call.actor, _text(call), call.app)
    return ApiResponse(issues.comment(made), 201, {"Location": issues.comment(made)["url"]})


def _text(call: Call) -> str:
    text = str(call.body["body"])
    too_long("body", text, BODY_LIMIT)
    if not text.strip():
        missing = {"resource": "IssueComment", "field": "body", "code": "missing_field"}
        raise ApiError(422, "Validation Failed", errors=[missing], mistake=True)
    return text


@route("GET", f"{REPO}/issues/comments", *EITHER)
def list_all_comments(call: Call) -> ApiResponse:
    """List the comments of the whole repository, oldest first."""
    comments = [comment for issue in call.repository.issues.values() for comment in issue.comments]
    return call.page(sorted(comments, key=lambda comment: comment.id), issues.comment)


@route("GET", f"{REPO}/issues/comments/{{comment_id}}", *EITHER)
def get_comment(call: Call) -> ApiResponse:
    """Return one comment."""
    return ApiResponse(issues.comment(comment_of(call)))


@route("PATCH", f"{REPO}/issues/comments/{{comment_id}}", *EITHER)
def update_comment(call: Call) -> ApiResponse:
    """Change the text of a comment."""
    comment = comment_of(call)
    text = _text(call)
    if comment.issue.locked:
        raise locked("comment")
    if text != comment.body:
        comment.issue.edit_comment(comment, text, call.actor)
    return ApiResponse(issues.comment(comment))


@route("DELETE", f"{REPO}/issues/comments/{{comment_id}}", *EITHER)
def delete_comment(call: Call) -> ApiResponse:
    """Delete a comment."""
    comment = comment_of(call)
    comment.issue.delete_comment(comment, call.actor)
    return ApiResponse(status=204)


def comment_of(call: Call) -> Comment:
    """Return the comment that the path names."""
    comment_id = call.path["comment_id"]
    comments = (comment for issue in call.repository.issues.values() for comment in issue.comments)
    comment = next((comment for comment in comments if comment.id == comment_id), None)
    if comment is None:
        raise not_found()
    return comment


@route("GET", f"{REPO}/issues/{{issue_number}}/labels", *EITHER)
def list_labels(call: Call) -> ApiResponse:
    """List the labels of an issue or pull request."""
    return call.page(call.issue.labels, lambda label: repositories.label(call.repository, label))


@route("POST", f"{REPO}/issues/{{issue_number}}/labels", *EITHER)
def add_labels(call: Call) -> ApiResponse:
    """Add labels, and create those that do not exist."""
    issue = call.issue
    names = [item if isinstance(item, str) else item["name"] for item in call.body.get("labels", [])]
    issue.label(call.actor, *names)
    return ApiResponse(_labels(call.repository, issue))


@route("DELETE", f"{REPO}/issues/{{issue_number}}/labels/{{name}}", *EITHER)
def remove_label(call: Call) -> ApiResponse:
    """Remove a label."""
    issue, name = call.issue, call.path["name"]
    if name.lower() not in {label.name.lower() for label in issue.labels}:
        raise ApiError(404, "Label does not exist")
    issue.unlabel(call.actor, name)
    return ApiResponse(_labels(call.repository, issue))


def _labels(repository: Repository, issue: Issue) -> list[dict[str, object]]:
    return [repositories.label(repository, label) for label in issue.labels]
