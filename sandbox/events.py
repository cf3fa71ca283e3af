"""GitHub's webhooks: one method for each kind of event, which builds the body as GitHub does.

https://docs.github.com/webhooks/webhook-events-and-payloads
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sandbox.git import NO_COMMIT, Commit, changes
from sandbox.journal import Violation
from sandbox.model.apps import App, Installation
from sandbox.model.checks import CheckRun, CheckSuite
from sandbox.model.home import Home
from sandbox.model.issues import Comment, Issue
from sandbox.model.labels import Label
from sandbox.model.pulls import PullRequest, Review, ReviewComment
from sandbox.model.repository import Host
from sandbox.model.statuses import CommitStatus
from sandbox.model.workflows import Job, WorkflowRun
from sandbox.openapi import webhook_problem
from sandbox.users import By, Team, User
from sandbox.views import checks, issues, repositories, users
from sandbox.webhooks import Courier

Json = dict[str, Any]

MOST_BRANCHES = 10
"""The most branches that a status names."""


class Events:
    """Sends each change as a webhook to every App and repository hook that is subscribed."""

    def __init__(self, github: Host, webhooks: Courier, violations: list[Violation]) -> None:
        self._github = github
        self._webhooks = webhooks
        self._violations = violations

    def issue(self, action: str, actor: User, issue: Issue, members: Json) -> None:
        """Announce a change of an issue or pull request; objects in `members` become JSON."""
        body = {name: _object(issue.repository, value) for name, value in members.items()}
        if isinstance(issue, PullRequest):
            body |= {"number": issue.number, "pull_request": issues.pull(issue)}
        else:
            body["issue"] = issues.issue(issue)
        self.send(issue.repository, issue.event, action, actor, body)

    def comment(self, action: str, actor: User, comment: Comment, changed: Json | None = None) -> None:
        """Announce a comment."""
        body: Json = {"issue": issues.issue(comment.issue), "comment": issues.comment(comment)}
        if changed is not None:
            body["changes"] = changed
        self.send(comment.issue.repository, "issue_comment", action, actor, body)

    def review(self, action: str, actor: User, review: Review, members: Json | None = None) -> None:
        """Announce a review."""
        body = {
            "pull_request": issues.pull_simple(review.pull),
            "review": issues.review(review, webhook=True),
            **(members or {}),
        }
        self.send(review.pull.repository, "pull_request_review", action, actor, body)

    def review_comment(self, action: str, actor: User, comment: ReviewComment, members: Json | None = None) -> None:
        """Announce a comment on the diff."""
        body = {
            "pull_request": issues.pull_simple(comment.pull),
            "comment": issues.review_comment(comment),
            **(members or {}),
        }
        self.send(comment.pull.repository, "pull_request_review_comment", action, actor, body)

    def status(self, actor: User, repository: Home, status: CommitStatus) -> None:
        """Announce a commit status, with at most ten of the branches that have its commit, and their heads."""
        commits = f"{repositories.url(repository)}/commits"
        branches = [
            {
                "name": name,
                "commit": {"sha": head, "url": f"{commits}/{head}"},
                "protected": name in repository.protected,
            }
            for name, head in repository.branches_with(status.sha)
        ]
        body = {
            **checks.simple_status(repository, status),
            "sha": status.sha,
            "name": repository.full_name,
            "commit": repositories.commit(repository, repository.git.commits[status.sha]),
            "branches": branches[:MOST_BRANCHES],
        }
        del body["url"], body["node_id"]
        self.send(repository, "status", None, actor, body)

    def check_run(
        self, action: str, actor: User, run: CheckRun, members: Json | None = None, only: App | None = None
    ) -> None:
        """Send an event about a check run; a person's request goes to its App only."""
        body = {"check_run": checks.check_run(run, webhook=True), **(members or {})}
        self.send(run.suite.repository, "check_run", action, actor, body, only)

    def check_suite(self, action: str, actor: User, suite: CheckSuite, only: App | None = None) -> None:
        """Announce a check suite."""
        self.send(suite.repository, "check_suite", action, actor, {"check_suite": checks.check_suite(suite)}, only)

    def workflow_run(self, action: str, actor: User, run: WorkflowRun) -> None:
        """Announce an Actions run."""
        body = {"workflow_run": checks.workflow_run(run), "workflow": checks.workflow(run)}
        self.send(run.repository, "workflow_run", action, actor, body)

    def workflow_job(self, action: str, actor: User, job: Job) -> None:
        """Announce a job of an Actions run."""
        self.send(job.run.repository, "workflow_job", action, actor, {"workflow_job": checks.job(job)})

    def push(self, actor: By, repository: Home, ref: str, old_sha: str, new_sha: str) -> None:
        """Announce a moved ref."""
        sender, git = self._github.user(actor), repository.git
        start = (
            old_sha if old_sha != NO_COMMIT else repository.refs.get(f"refs/heads/{repository.default_branch}", new_sha)
        )
        deleted, forced = new_sha == NO_COMMIT, False
        pushed: list[Json] = []
        if not deleted:
            forced = old_sha != NO_COMMIT and not git.contains(new_sha, old_sha)
            new = git.between(start, new_sha) if start != new_sha else [git.commits[new_sha]]
            pushed = [_pushed(repository, commit.sha) for commit in new]
        body = {
            "ref": ref,
            "base_ref": None,
            "before": old_sha,
            "after": new_sha,
            "created": old_sha == NO_COMMIT,
            "deleted": deleted,
            "forced": forced,
            "compare": f"{repositories.page(repository)}/compare/{old_sha[:12]}...{new_sha[:12]}",
            "commits": pushed[-2048:],
            "head_commit": None if deleted else _pushed(repository, new_sha),
            "pusher": {"name": sender.login, "email": repositories.email(sender)},
        }
        self.send(repository, "push", None, sender, body)

    def merge_group(self, actor: User, repository: Home, ref: str, head: Commit, base_ref: str, base_sha: str) -> None:
        """Announce a group that the merge queue wants tested."""
        author = repositories.person(head.author, head)
        short = {"name": author["name"], "email": author["email"]}
        group = {
            "head_sha": head.sha,
            "head_ref": ref,
            "base_sha": base_sha,
            "base_ref": base_ref,
            "head_commit": {
                "id": head.sha,
                "tree_id": head.tree_sha,
                "message": head.message,
                "timestamp": author["date"],
                "author": short,
                "committer": short,
            },
        }
        self.send(repository, "merge_group", "checks_requested", actor, {"merge_group": group})

    def ref(self, event: str, actor: By, repository: Home, ref: str) -> None:
        """Announce a created or deleted branch or tag."""
        kind, name = ("tag" if "/tags/" in ref else "branch"), ref.split("/", 2)[2]
        body: Json = {"ref": name, "ref_type": kind, "pusher_type": "user"}
        if event == "create":
            body |= {"master_branch": repository.default_branch, "description": None}
        self.send(repository, event, None, self._github.user(actor), body)

    def installation(self, installation: Installation, action: str, added: Sequence[Home]) -> None:
        """Announce an installation to its App, which needs no subscription for that."""
        names = ("id", "node_id", "name", "full_name", "private")
        short = [{name: repositories.repository(repo)[name] for name in names} for repo in added]
        body: Json = {
            "installation": users.installation(installation),
            "sender": users.user(installation.account),
            "requester": None,
        }
        if action in ("added", "removed"):
            event = "installation_repositories"
            body |= {"repository_selection": "selected", "repositories_added": [], "repositories_removed": []}
            body[f"repositories_{action}"] = short
        else:
            event, body = "installation", body | {"repositories": short}
        self._github.changed()
        if installation.app.webhook_url:
            body = {"action": action, **body}
            self._check(event, action, body)
            self._webhooks.queue_app(installation.app, event, action, body, installation, None)

    def transferred(self, actor: User, repository: Home, old: User) -> None:
        """Announce a repository that another account owned."""
        changes = {"changes": {"owner": {"from": {"user": users.user(old)}}}}
        self.send(repository, "repository", "transferred", actor, changes)

    def send(
        self,
        repository: Home,
        event: str,
        action: str | None,
        actor: User,
        body: Json,
        only: App | None = None,
    ) -> None:
        """Queue an event for every subscriber, and wake everyone who waits for a change."""
        self._github.changed()
        body |= {"repository": repositories.repository(repository), "sender": users.user(actor)}
        if action is not None:
            body = {"action": action, **body}
        if repository.owner.type == "Organization":
            body["organization"] = users.organization(repository.owner)
        apps = [only] if only else list(self._github.apps.values())
        for app in apps:
            installation = app.covers(repository)
            if installation and app.webhook_url and app.hears(event):
                app_body = body | {"installation": users.installation_reference(installation)}
                self._check(event, action, app_body)
                self._webhooks.queue_app(app, event, action, app_body, installation, repository)
        for hook in repository.hooks if only is None else []:
            if event in hook.events or "*" in hook.events:
                self._webhooks.queue_hook(hook, event, action, body, repository)

    def _check(self, event: str, action: str | None, body: Json) -> None:
        problem = webhook_problem(event, action, body)
        if problem is not None:
            self._violations.append(Violation("webhook", f"{event}.{action}", problem))


def _object(repository: Home, value: Any) -> Any:
    if isinstance(value, User):
        return users.user(value)
    if isinstance(value, Team):
        return users.team(value)
    return repositories.label(repository, value) if isinstance(value, Label) else value


def _pushed(repository: Home, sha: str) -> Json:
    """Return a commit of a push with the names of the files it touched."""
    git = repository.git
    commit = git.commits[sha]
    parent_files = git.commits[commit.parents[0]].files if commit.parents else {}
    body = repositories.simple_commit(repository, commit)
    for change in changes(parent_files, commit.files):
        body[change.status].append(change.path)
    return body
