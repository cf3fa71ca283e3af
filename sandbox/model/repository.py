"""Repositories: roles, refs, and everything that belongs to commits."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

from sandbox.git import NO_COMMIT, Commit, GitStore, changes
from sandbox.model.activities import Activity, kind_of_move
from sandbox.model.apps import App
from sandbox.model.checks import CheckRun, CheckSuite
from sandbox.model.home import HEADS, Home
from sandbox.model.hooks import Hook
from sandbox.model.issues import Issue
from sandbox.model.pulls import PullRequest, QueueEntry
from sandbox.model.rules import Rules
from sandbox.model.workflows import Artifact, WorkflowRun, begin_run
from sandbox.users import By, Role, Team, User
from sandbox.world import World


class Host(World, Protocol):
    """The parts of a GitHub that a repository needs: the other repositories, and the Apps."""

    @property
    def apps(self) -> Mapping[int, App]:
        """Return the Apps by their ids."""

    @property
    def actions_app(self) -> App:
        """Return the App of GitHub Actions."""

    @property
    def repositories(self) -> dict[str, Repository]:
        """Return the repositories by their lowercase names."""

    @property
    def moved(self) -> dict[str, Repository]:
        """Return renamed repositories by their old lowercase names."""


class Repository(Home):
    """A repository; forks share its commits."""

    github: Host
    parent: Repository | None
    issues: dict[int, Issue]
    suites: list[CheckSuite]
    workflow_runs: list[WorkflowRun]

    def __init__(self, github: Host, owner: User, name: str, git: GitStore | None = None) -> None:
        super().__init__(github, owner, name, git)
        self._queues: dict[str, list[QueueEntry]] = {}

    @property
    def pulls(self) -> list[PullRequest]:
        """Return every pull request, oldest first."""
        return [issue for issue in self.issues.values() if isinstance(issue, PullRequest)]

    @property
    def artifacts(self) -> list[Artifact]:
        """Return what workflow runs have uploaded, oldest first."""
        return [artifact for run in self.workflow_runs for artifact in run.artifacts]

    def __repr__(self) -> str:
        return f"<repository {self.full_name}>"

    def rename(self, actor: By, name: str) -> None:
        """Rename it; the old name redirects to it.

        https://docs.github.com/repositories/creating-and-managing-repositories/renaming-a-repository
        """
        old = self.name
        self._move(self.owner, name)
        changes = {"changes": {"repository": {"name": {"from": old}}}}
        self.github.events.send(self, "repository", "renamed", self.github.user(actor), changes)

    def transfer(self, actor: By, new_owner: str) -> None:
        """Transfer it to another account. Only Apps that are installed there see it and are notified.

        https://docs.github.com/webhooks/webhook-events-and-payloads?actionType=transferred#repository
        """
        old = self.owner
        for app in self.github.apps.values():
            installation, new_installation = app.covers(self), app.installation_of(self.github.user(new_owner))
            if installation is not None and new_installation is not None:
                installation.repositories.remove(self)
                new_installation.repositories.append(self)
        self._move(self.github.user(new_owner), self.name)
        self.github.events.transferred(self.github.user(actor), self, old)

    def _move(self, owner: User, name: str) -> None:
        self.github.moved[self.full_name.lower()] = self
        del self.github.repositories[self.full_name.lower()]
        self.owner, self.name = owner, name
        self.github.repositories[self.full_name.lower()] = self

    def archive(self, actor: By, *, archived: bool = True) -> None:
        """Make it read-only, or writable again."""
        self.archived = archived
        action = "archived" if archived else "unarchived"
        self.github.events.send(self, "repository", action, self.github.user(actor), {})

    def privatize(self, actor: By) -> None:
        """Make it private."""
        self.private = True
        self.github.events.send(self, "repository", "privatized", self.github.user(actor), {})

    def delete(self, actor: By) -> None:
        """Delete it, and notify its Apps."""
        self.github.events.send(self, "repository", "deleted", self.github.user(actor), {})
        del self.github.repositories[self.full_name.lower()]

    # People

    def set_role(self, login: str, role: Role) -> None:
        """Make somebody a collaborator, or remove them."""
        if role == "none":
            self.roles.pop(self.github.user(login), None)
        else:
            self.roles[self.github.user(login)] = role
        self.github.changed()

    def add_team(self, slug: str, *members: str) -> Team:
        """Give a team of the owning organization access."""
        people = [self.github.user(login) for login in members]
        self.teams[slug] = Team(self.github.new_id(), self.owner, slug, people)
        return self.teams[slug]

    def add_webhook(self, url: str, secret: str, *events: str) -> Hook:
        """Add a webhook to the repository, besides those of Apps: each change then has two GUIDs."""
        self.hooks.append(Hook(self.github.new_id(), url, secret, events))
        return self.hooks[-1]

    # Commits and refs

    def push(
        self,
        branch: str,
        files: Mapping[str, str | None] | None = None,
        *,
        by: By,
        message: str = "Improve it",
        onto: str | None = None,
    ) -> Commit:
        """Push one commit to a branch, created if missing; a None in `files` deletes the file.

        `onto` is the parent if it is not the head of the branch: the push is then forced, or creates the branch.
        """
        ref = HEADS + branch
        parent = onto or self.refs.get(ref) or self.refs.get(HEADS + self.default_branch)
        tree: dict[str, str] = dict(self.git.commits[parent].files) if parent else {}
        marker = {f"changes/{branch}.txt": f"{message} {len(self.git.commits)}\n"}
        for path, text in (files if files is not None else marker).items():
            tree.pop(path, None)
            if text is not None:
                tree[path] = text
        author = self.github.user(by)
        made = self.git.commit((parent,) if parent else (), tree, message, author, self.github.clock.now())
        self.move(ref, made.sha, author)
        return made

    def move(self, ref: str, sha: str | None, by: By) -> None:
        """Point a ref at a commit (None deletes it), notify the Apps, and update or close pull requests."""
        by, old_sha = self.github.user(by), self.refs.get(ref, NO_COMMIT)
        if sha is None:
            del self.refs[ref]
        else:
            self.refs[ref] = sha
        self.pushed_at = self.github.clock.now()
        if old_sha == NO_COMMIT or sha is None:
            self.github.events.ref("create" if sha else "delete", by, self, ref)
        self.github.events.push(by, self, ref, old_sha, sha or NO_COMMIT)
        if not ref.startswith(HEADS):
            return
        self._note_activity(by, ref, old_sha, sha or NO_COMMIT)
        branch = ref.removeprefix(HEADS)
        if sha is not None:
            self._begin_suites(by, sha, branch)
        # Only a repository that shares the commits has pull requests from this one.
        related = [repository for repository in self.github.repositories.values() if repository.git is self.git]
        for pull in [pull for repository in related for pull in repository.pulls]:
            if pull.state != "open" or pull.head_repository is not self or pull.head_ref != branch:
                continue
            if sha is None:
                pull.close(by)
            else:
                pull.synchronize(by, sha)

    def _note_activity(self, actor: User, ref: str, old_sha: str, new_sha: str) -> None:
        kind, moment = kind_of_move(self.git, old_sha, new_sha), self.github.clock.now()
        self.activities.append(Activity(self.github.new_id(), actor, ref, old_sha, new_sha, kind, moment))

    def protect(self, branch: str, *required: str, approvals: int = 0) -> None:
        """Protect a branch against forced pushes, and against merges without these statuses, checks or approvals."""
        self.protected[branch], self.approvals[branch] = required, approvals

    def queue(self, branch: str) -> list[QueueEntry] | None:
        """Return the merge queue of a branch, from a rule or classic protection; None if it has none."""
        if branch not in self.classic_queues and not self.rules.get(branch, Rules()).queue:
            return None
        return self._queues.setdefault(branch, [])

    def fork(self, login: str) -> Repository:
        """Return somebody's fork, created if missing; it shares all commits."""
        owner = self.github.user(login)
        existing = self.github.repositories.get(f"{owner.login}/{self.name}".lower())
        if existing is not None:
            return existing
        made = Repository(self.github, owner, self.name, self.git)
        made.parent, made.default_branch, made.refs = self, self.default_branch, dict(self.refs)
        self.github.repositories[made.full_name.lower()] = made
        return made

    # Issues and pull requests

    def open_issue(self, actor: By, title: str, body: str | None = None) -> Issue:
        """Open an issue."""
        made = Issue(self, self._next_number(), self.github.user(actor), title, body)
        self.issues[made.number] = made
        made.announce("opened", actor)
        return made

    def open_pull_request(
        self,
        author: str,
        title: str = "Improve it",
        body: str | None = "",
        *,
        draft: bool = False,
        branch: str | None = None,
        base: str | None = None,
        files: Mapping[str, str | None] | None = None,
        fork: bool = False,
    ) -> PullRequest:
        """Push a commit to a new branch, in the author's fork with `fork`, and open a pull request for it."""
        home = self.fork(author) if fork else self
        base = base or self.default_branch
        branch = branch or f"{author}-patch-{len(self.issues) + 1}"
        if HEADS + branch not in home.refs:
            home.push(branch, files, by=author, message=title, onto=self.branch(base))
        user = self.github.user(author)
        number = self._next_number()
        made = PullRequest(self, number, user, title, body, head=(home, branch), base_ref=base, draft=draft)
        self.issues[number] = made
        made.announce("opened", user)
        return made

    def revert(self, pull: PullRequest, actor: By, title: str, body: str, *, draft: bool) -> PullRequest:
        """Open a pull request that undoes a merged one. Raises `ValueError` if later commits changed the same files."""
        merged = self.git.commits[pull.merge_commit_sha or ""]
        before, tip = self.git.commits[merged.parents[0]].files, self.git.commits[self.branch(pull.base_ref)].files
        changed = [change.path for change in changes(before, merged.files)]
        if not changed or any(tip.get(path) != merged.files.get(path) for path in changed):
            raise ValueError
        branch = f"revert-{pull.number}-{pull.head_ref}"
        names = [branch, *(f"{branch}-{number}" for number in range(1, len(self.refs) + 1))]
        free_name = next(name for name in names if HEADS + name not in self.refs)
        user, files = self.github.user(actor), {path: before.get(path) for path in changed}
        self.push(free_name, files, by=user, message=title, onto=self.branch(pull.base_ref))
        return self.open_pull_request(user.login, title, body, draft=draft, branch=free_name, base=pull.base_ref)

    def _next_number(self) -> int:
        return max(self.issues, default=0) + 1

    # What belongs to commits

    def check_suite(self, app: App, sha: str, branch: str | None = None) -> CheckSuite:
        """Return an App's suite on a commit, created if missing."""
        for suite in self.suites:
            if suite.app is app and suite.head_sha == sha:
                return suite
        return self.new_check_suite(app, sha, branch)

    def new_check_suite(self, app: App, sha: str, branch: str | None = None) -> CheckSuite:
        """Create another suite of an App on a commit: each workflow run of GitHub Actions has its own."""
        moment = self.github.clock.now()
        names = (name for name, _ in self.branches_with(sha))
        made = CheckSuite(self.github.new_id(), self, app, sha, branch or next(names, None), moment, moment)
        self.suites.append(made)
        return made

    def add_check_run(
        self, app: App, sha: str, name: str, *, by: By | None = None, suite: CheckSuite | None = None, **values: Any
    ) -> CheckRun:
        """Create a check run with any of its fields, in the App's suite on the commit or a given one."""
        run = CheckRun(self.github.new_id(), suite or self.check_suite(app, sha), name)
        run.suite.runs.append(run)
        actor = self.github.user(by) if by else app.bot
        run.started_at = values.pop("started_at", None) or self.github.clock.now()
        self.github.events.check_run("created", actor, run)
        run.change(actor, **values)
        return run

    def check_runs(self, sha: str, name: str = "") -> list[CheckRun]:
        """Return the newest check run of each name and App on a commit, of one name if given."""
        runs = [run for suite in self.suites if suite.head_sha == sha for run in suite.latest]
        return [run for run in runs if name in {"", run.name}]

    def add_workflow_run(
        self,
        head_sha: str,
        name: str = "CI",
        conclusion: str | None = None,
        jobs: Mapping[str, str | None] | None = None,
        *,
        event: str = "pull_request",
        by: By | None = None,
        branch: str | None = None,
    ) -> WorkflowRun:
        """Add an Actions run with jobs as name → conclusion; without a conclusion it runs until `finish`.

        It belongs to the first pull request with that head, or to a `branch` of this repository.
        """
        return begin_run(self, head_sha, name, conclusion, jobs or {}, event, by, branch)

    def _begin_suites(self, actor: User, sha: str, branch: str) -> None:
        """Create a suite for the push for every App that writes checks, as GitHub does by default."""
        for app in self.github.apps.values():
            if app.covers(self) and app.permissions.get("checks") == "write":
                self.github.events.check_suite("requested", actor, self.check_suite(app, sha, branch), only=app)
