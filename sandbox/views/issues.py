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


def association(repository: Home, who: User) -> str:
    """Return somebody's relation to the repository, in GitHub's words."""
    if who is repository.owner:
        return "OWNER"
    if repository.is_collaborator(who) and who.login not in repository.private_members:
        return "MEMBER" if repository.owner.type == "Organization" else "COLLABORATOR"
    merged = any(pull.user is who and pull.merged_at for pull in repository.pulls)
    return "CONTRIBUTOR" if merged else "NONE"


def association_of_author(pull: PullRequest) -> str:
    """Return the author's relation as GraphQL has it; webhooks say NONE for newcomers."""
    found = association(pull.repository, pull.user)
    return "FIRST_TIME_CONTRIBUTOR" if found == "NONE" else found


def rollup(url: str, reactions: list[Reaction]) -> Json:
    """Return a `reaction-rollup`."""
    counts = Counter(reaction.content for reaction in reactions)
    return {
        "url": f"{url}/reactions",
        "total_count": len(reactions),
        **{content: counts[content] for content in REACTIONS},
    }


def reaction(found: Reaction) -> Json:
    """Return a `reaction`."""
    return {
        "id": found.id,
        "node_id": found.node_id,
        "user": users.author(found.user),
        "content": found.content,
        "created_at": iso(found.created_at),
    }


def issue_page(found: Issue) -> str:
    """Return the address of the page of an issue or pull request."""
    kind = "pull" if isinstance(found, PullRequest) else "issues"
    return f"{repositories.page(found.repository)}/{kind}/{found.number}"


def issue(found: Issue) -> Json:
    """Return an `issue`; a pull request also has the key `pull_request`."""
    base = repositories.url(found.repository)
    url = f"{base}/issues/{found.number}"
    body = {
        **_common(found),
        "id": found.id,
        "url": url,
        "repository_url": base,
        "labels_url": f"{url}/labels{{/name}}",
        "comments_url": f"{url}/comments",
        "events_url": f"{url}/events",
        "timeline_url": f"{url}/timeline",
        "comments": len(found.comments),
        "reactions": rollup(url, found.reactions_to_body),
        "performed_via_github_app": None,
        "state_reason": None,
    }
    if isinstance(found, PullRequest):
        body["draft"] = found.draft
        body["pull_request"] = {
            "url": f"{base}/pulls/{found.number}",
            "html_url": issue_page(found),
            "diff_url": f"{issue_page(found)}.diff",
            "patch_url": f"{issue_page(found)}.patch",
            "merged_at": iso_or_none(found.merged_at),
        }
    return body


def _common(found: Issue) -> Json:
    return {
        "node_id": found.node_id,
        "html_url": issue_page(found),
        "number": found.number,
        "title": found.title,
        "body": found.body,
        "user": users.opener(found.user) if isinstance(found, PullRequest) else users.author(found.user),
        "labels": [repositories.label(found.repository, label) for label in found.labels],
        "state": found.state,
        "locked": found.locked,
        "active_lock_reason": None,
        "assignee": None,
        "assignees": [],
        "milestone": None,
        "author_association": association(found.repository, found.user),
        "created_at": iso(found.created_at),
        "updated_at": iso(found.updated_at),
        "closed_at": iso_or_none(found.closed_at),
    }


def pull_simple(found: PullRequest) -> Json:
    """Return a `pull-request-simple`, as in lists."""
    base = repositories.url(found.repository)
    url, issue_url, html = f"{base}/pulls/{found.number}", f"{base}/issues/{found.number}", issue_page(found)
    links = {
        "self": url,
        "html": html,
        "issue": issue_url,
        "comments": f"{issue_url}/comments",
        "review_comments": f"{url}/comments",
        "review_comment": f"{base}/pulls/comments{{/number}}",
        "commits": f"{url}/commits",
        "statuses": f"{base}/statuses/{found.head_sha}",
    }
    names = ("comments", "review_comments", "review_comment", "commits", "statuses")
    return {
        **_common(found),
        "author_association": association(found.repository, found.user),
        "id": found.id,
        "url": url,
        "diff_url": f"{html}.diff",
        "patch_url": f"{html}.patch",
        "issue_url": issue_url,
        **{f"{name}_url": links[name] for name in names},
        "merged_at": iso_or_none(found.merged_at),
        "merge_commit_sha": found.merge_commit_sha,
        "head": _end(found.head_repository, found.head_ref, found.head_sha),
        "base": _end(found.repository, found.base_ref, found.base_sha),
        "_links": {name: {"href": link} for name, link in links.items()},
        "auto_merge": None,
        "draft": found.draft,
        "requested_reviewers": [users.user(user) for user in found.requested_reviewers],
        "requested_teams": [users.team(team) for team in found.requested_teams],
    }


def pull(found: PullRequest) -> Json:
    """Return a `pull-request`."""
    files, mergeable = with_renames(found.files), found.mergeable
    fit = "blocked" if is_blocked(found) else "behind" if is_behind(found) else "clean"
    return {
        **pull_simple(found),
        "merged": found.merged_at is not None,
        "mergeable": mergeable,
        "rebaseable": mergeable,
        "mergeable_state": {True: fit, False: "dirty", None: "unknown"}[mergeable],
        "merged_by": users.user(found.merged_by) if found.merged_by else None,
        "comments": len(found.comments),
        "review_comments": len(found.review_comments),
        "maintainer_can_modify": found.head_repository is not found.repository and found.maintainers_may_push,
        "commits": len(found.commits),
        "additions": sum(file.additions for file in files),
        "deletions": sum(file.deletions for file in files),
        "changed_files": len(files),
    }


def pull_minimal(found: PullRequest) -> Json:
    """Return a `pull-request-minimal`, as in check runs and workflow runs."""
    return {
        "id": found.id,
        "number": found.number,
        "url": f"{repositories.url(found.repository)}/pulls/{found.number}",
        "head": _short_end(found.head_repository, found.head_ref, found.head_sha),
        "base": _short_end(found.repository, found.base_ref, found.base_sha),
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


def comment(found: Comment) -> Json:
    """Return an `issue-comment`."""
    base = repositories.url(found.issue.repository)
    url = f"{base}/issues/comments/{found.id}"
    return {
        "id": found.id,
        "node_id": found.node_id,
        "url": url,
        "html_url": f"{issue_page(found.issue)}#issuecomment-{found.id}",
        "issue_url": f"{base}/issues/{found.issue.number}",
        "user": users.author(found.user),
        "body": found.body,
        "created_at": iso(found.created_at),
        "updated_at": iso(found.updated_at),
        "author_association": association(found.issue.repository, found.user),
        "reactions": rollup(url, found.reactions),
        "performed_via_github_app": users.app(found.app) if found.app else None,
    }


def review(found: Review, *, webhook: bool = False) -> Json:
    """Return a `pull-request-review`; webhooks write the state in lower case."""
    html = f"{issue_page(found.pull)}#pullrequestreview-{found.id}"
    url = f"{repositories.url(found.pull.repository)}/pulls/{found.pull.number}"
    return {
        "id": found.id,
        "node_id": found.node_id,
        "user": users.author(found.user),
        "body": found.body,
        "state": found.state.lower() if webhook else found.state,
        "html_url": html,
        "pull_request_url": url,
        "_links": {"html": {"href": html}, "pull_request": {"href": url}},
        "submitted_at": iso(found.submitted_at),
        "commit_id": found.commit_id,
        "author_association": association(found.pull.repository, found.user),
    }


def review_comment(found: ReviewComment) -> Json:
    """Return a `pull-request-review-comment`."""
    base = repositories.url(found.pull.repository)
    url, html = f"{base}/pulls/comments/{found.id}", f"{issue_page(found.pull)}#discussion_r{found.id}"
    pull_url = f"{base}/pulls/{found.pull.number}"
    reply = {"in_reply_to_id": found.in_reply_to} if found.in_reply_to else {}
    return {
        "id": found.id,
        "node_id": found.node_id,
        "url": url,
        "html_url": html,
        "pull_request_url": pull_url,
        "_links": {"self": {"href": url}, "html": {"href": html}, "pull_request": {"href": pull_url}},
        "pull_request_review_id": found.review.id if found.review else None,
        "diff_hunk": "@@ -1 +1 @@",
        "path": found.path,
        "position": found.line,
        "original_position": found.line,
        "line": found.line,
        "original_line": found.line,
        "start_line": None,
        "original_start_line": None,
        "start_side": None,
        "side": "RIGHT",
        "subject_type": "line",
        "commit_id": found.commit_id,
        "original_commit_id": found.commit_id,
        "user": users.author(found.user),
        "body": found.body,
        "created_at": iso(found.created_at),
        "updated_at": iso(found.updated_at),
        "author_association": association(found.pull.repository, found.user),
        "reactions": rollup(url, found.reactions),
        **reply,
    }
