"""Issues, pull requests, comments, reviews and reactions as JSON."""

from __future__ import annotations

from collections import Counter
from typing import Any

from sandbox.clock import iso, iso_or_none
from sandbox.git import with_renames
from sandbox.model.home import Home
from sandbox.model.issues import Comment, Issue
from sandbox.model.merge_checks import is_behind, is_blocked
from sandbox.model.pulls import PullRequest, Review, ReviewComment
from sandbox.model.reactions import REACTIONS, Reaction
from sandbox.users import User

from . import repositories, users

Json = dict[str, Any]


def association(repository: Home, account: User) -> str:
    """Return somebody's relation to the repository, in GitHub's words."""
    if account is repository.owner:
        return "OWNER"
    if repository.is_collaborator(account) and account.login not in repository.private_members:
        return "MEMBER" if repository.owner.type == "Organization" else "COLLABORATOR"
    merged = any(pull.user is account and pull.merged_at for pull in repository.pulls)
    return "CONTRIBUTOR" if merged else "NONE"


def association_of_author(pull: PullRequest) -> str:
    """Return the author's relation as GraphQL has it; webhooks say NONE for newcomers."""
    relation = association(pull.repository, pull.user)
    return "FIRST_TIME_CONTRIBUTOR" if relation == "NONE" else relation


def rollup(url: str, reactions: list[Reaction]) -> Json:
    """Return a `reaction-rollup`."""
    counts = Counter(reaction.content for reaction in reactions)
    return {
        "url": f"{url}/reactions",
        "total_count": len(reactions),
        **{content: counts[content] for content in REACTIONS},
    }


def reaction(reaction: Reaction) -> Json:
    """Return a `reaction`."""
    return {
        "id": reaction.id,
        "node_id": reaction.node_id,
        "user": users.author(reaction.user),
        "content": reaction.content,
        "created_at": iso(reaction.created_at),
    }


def issue_page(issue: Issue) -> str:
    """Return the address of the page of an issue or pull request."""
    kind = "pull" if isinstance(issue, PullRequest) else "issues"
    return f"{repositories.page(issue.repository)}/{kind}/{issue.number}"


def issue(issue: Issue) -> Json:
    """Return an `issue`; a pull request also has the key `pull_request`."""
    base = repositories.url(issue.repository)
    url = f"{base}/issues/{issue.number}"
    body = {
        **_common(issue),
        "id": issue.id,
        "url": url,
        "repository_url": base,
        "labels_url": f"{url}/labels{{/name}}",
        "comments_url": f"{url}/comments",
        "events_url": f"{url}/events",
        "timeline_url": f"{url}/timeline",
        "comments": len(issue.comments),
        "reactions": rollup(url, issue.reactions_to_body),
        "performed_via_github_app": None,
        "state_reason": None,
    }
    if isinstance(issue, PullRequest):
        body["draft"] = issue.draft
        body["pull_request"] = {
            "url": f"{base}/pulls/{issue.number}",
            "html_url": issue_page(issue),
            "diff_url": f"{issue_page(issue)}.diff",
            "patch_url": f"{issue_page(issue)}.patch",
            "merged_at": iso_or_none(issue.merged_at),
        }
    return body


def _common(issue: Issue) -> Json:
    return {
        "node_id": issue.node_id,
        "html_url": issue_page(issue),
        "number": issue.number,
        "title": issue.title,
        "body": issue.body,
        "user": users.opener(issue.user) if isinstance(issue, PullRequest) else users.author(issue.user),
        "labels": [repositories.label(issue.repository, label) for label in issue.labels],
        "state": issue.state,
        "locked": issue.locked,
        "active_lock_reason": None,
        "assignee": None,
        "assignees": [],
        "milestone": None,
        "author_association": association(issue.repository, issue.user),
        "created_at": iso(issue.created_at),
        "updated_at": iso(issue.updated_at),
        "closed_at": iso_or_none(issue.closed_at),
    }


def pull_simple(pull: PullRequest) -> Json:
    """Return a `pull-request-simple`, as in lists."""
    base = repositories.url(pull.repository)
    url, issue_url, html = f"{base}/pulls/{pull.number}", f"{base}/issues/{pull.number}", issue_page(pull)
    links = {
        "self": url,
        "html": html,
        "issue": issue_url,
        "comments": f"{issue_url}/comments",
        "review_comments": f"{url}/comments",
        "review_comment": f"{base}/pulls/comments{{/number}}",
        "commits": f"{url}/commits",
        "statuses": f"{base}/statuses/{pull.head_sha}",
    }
    names = ("comments", "review_comments", "review_comment", "commits", "statuses")
    return {
        **_common(pull),
        "author_association": association(pull.repository, pull.user),
        "id": pull.id,
        "url": url,
        "diff_url": f"{html}.diff",
        "patch_url": f"{html}.patch",
        "issue_url": issue_url,
        **{f"{name}_url": links[name] for name in names},
        "merged_at": iso_or_none(pull.merged_at),
        "merge_commit_sha": pull.merge_commit_sha,
        "head": _end(pull.head_repository, pull.head_ref, pull.head_sha),
        "base": _end(pull.repository, pull.base_ref, pull.base_sha),
        "_links": {name: {"href": link} for name, link in links.items()},
        "auto_merge": None,
        "draft": pull.draft,
        "requested_reviewers": [users.user(user) for user in pull.requested_reviewers],
        "requested_teams": [users.team(team) for team in pull.requested_teams],
    }


def pull(pull: PullRequest) -> Json:
    """Return a `pull-request`."""
    files, mergeable = with_renames(pull.files), pull.mergeable
    fit = "blocked" if is_blocked(pull) else "behind" if is_behind(pull) else "clean"
    return {
        **pull_simple(pull),
        "merged": pull.merged_at is not None,
        "mergeable": mergeable,
        "rebaseable": mergeable,
        "mergeable_state": {True: fit, False: "dirty", None: "unknown"}[mergeable],
        "merged_by": users.user(pull.merged_by) if pull.merged_by else None,
        "comments": len(pull.comments),
        "review_comments": len(pull.review_comments),
        "maintainer_can_modify": pull.head_repository is not pull.repository and pull.maintainers_may_push,
        "commits": len(pull.commits),
        "additions": sum(file.additions for file in files),
        "deletions": sum(file.deletions for file in files),
        "changed_files": len(files),
    }


def pull_minimal(pull: PullRequest) -> Json:
    """Return a `pull-request-minimal`, as in check runs and workflow runs."""
    return {
        "id": pull.id,
        "number": pull.number,
        "url": f"{repositories.url(pull.repository)}/pulls/{pull.number}",
        "head": _short_end(pull.head_repository, pull.head_ref, pull.head_sha),
        "base": _short_end(pull.repository, pull.base_ref, pull.base_sha),
    }


def _end(repository: Home, ref: str, sha: str) -> Json:
    return {
        "label": f"{repository.owner.login}:{ref}",
        "ref": ref,
        "sha": sha,
        "user": users.user(repository.owner),
        "repo": repositories.repository(repository),
    }


def _short_end(repository: Home, ref: str, sha: str) -> Json:
    repo = {"id": repository.id, "url": repositories.url(repository), "name": repository.name}
    return {"ref": ref, "sha": sha, "repo": repo}


def comment(comment: Comment) -> Json:
    """Return an `issue-comment`."""
    base = repositories.url(comment.issue.repository)
    url = f"{base}/issues/comments/{comment.id}"
    return {
        "id": comment.id,
        "node_id": comment.node_id,
        "url": url,
        "html_url": f"{issue_page(comment.issue)}#issuecomment-{comment.id}",
        "issue_url": f"{base}/issues/{comment.issue.number}",
        "user": users.author(comment.user),
        "body": comment.body,
        "created_at": iso(comment.created_at),
        "updated_at": iso(comment.updated_at),
        "author_association": association(comment.issue.repository, comment.user),
        "reactions": rollup(url, comment.reactions),
        "performed_via_github_app": users.app(comment.app) if comment.app else None,
    }


def review(review: Review, *, webhook: bool = False) -> Json:
    """Return a `pull-request-review`; webhooks write the state in lower case."""
    html = f"{issue_page(review.pull)}#pullrequestreview-{review.id}"
    url = f"{repositories.url(review.pull.repository)}/pulls/{review.pull.number}"
    return {
        "id": review.id,
        "node_id": review.node_id,
        "user": users.author(review.user),
        "body": review.body,
        "state": review.state.lower() if webhook else review.state,
        "html_url": html,
        "pull_request_url": url,
        "_links": {"html": {"href": html}, "pull_request": {"href": url}},
        "submitted_at": iso(review.submitted_at),
        "commit_id": review.commit_id,
        "author_association": association(review.pull.repository, review.user),
    }


def review_comment(comment: ReviewComment) -> Json:
    """Return a `pull-request-review-comment`."""
    base = repositories.url(comment.pull.repository)
    url, html = f"{base}/pulls/comments/{comment.id}", f"{issue_page(comment.pull)}#discussion_r{comment.id}"
    pull_url = f"{base}/pulls/{comment.pull.number}"
    reply = {"in_reply_to_id": comment.in_reply_to} if comment.in_reply_to else {}
    return {
        "id": comment.id,
        "node_id": comment.node_id,
        "url": url,
        "html_url": html,
        "pull_request_url": pull_url,
        "_links": {"self": {"href": url}, "html": {"href": html}, "pull_request": {"href": pull_url}},
        "pull_request_review_id": comment.review.id if comment.review else None,
        "diff_hunk": "@@ -1 +1 @@",
        "path": comment.path,
        "position": comment.line,
        "original_position": comment.line,
        "line": comment.line,
        "original_line": comment.line,
        "start_line": None,
        "original_start_line": None,
        "start_side": None,
        "side": "RIGHT",
        "subject_type": "line",
        "commit_id": comment.commit_id,
        "original_commit_id": comment.commit_id,
        "user": users.author(comment.user),
        "body": comment.body,
        "created_at": iso(comment.created_at),
        "updated_at": iso(comment.updated_at),
        "author_association": association(comment.pull.repository, comment.user),
        "reactions": rollup(url, comment.reactions),
        **reply,
    }
