"""The base class of repositories, for the issues, checks, workflow runs and installations that belong to one.

`Repository` creates these objects, so they import its base class from here, and this module has no types for them.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any

from sandbox.git import Commit, GitStore
from sandbox.model.activities import Activity
from sandbox.model.hooks import Hook
from sandbox.model.labels import Label
from sandbox.model.rules import METHODS, Rules
from sandbox.model.statuses import CommitStatus
from sandbox.users import By, Role, Team, User, node_id
from sandbox.world import World

HEADS = "refs/heads/"


class Home(ABC):
    """A repository, without the methods that create issues, checks and workflow runs; forks share its commits."""

    def __init__(self, github: World, owner: User, name: str, git: GitStore | None = None) -> None:
        self.github = github
        self.id = github.new_id()
        self.owner = owner
        self.name = name
        self.git = git or GitStore()
        self.parent: Home | None = None
        self.private = False
        self.archived = False
        self.default_branch = "main"
        self.created_at = self.pushed_at = github.clock.now()
        self.refs: dict[str, str] = {}
        self.protected: dict[str, tuple[str, ...]] = {}
        self.approvals: dict[str, int] = {}
        self.rules: dict[str, Rules] = {}
        self.classic_queues: set[str] = set()
        self.merge_methods: tuple[str, ...] = METHODS
        self.roles: dict[User, Role] = {}
        self.private_members: set[str] = set()
        """People with a role as members of the organization whose membership is private."""
        self.teams: dict[str, Team] = {}
        self.labels: dict[str, Label] = {}
        self.issues: dict[int, Any] = {}
        self.suites: list[Any] = []
        self.workflow_runs: list[Any] = []
        self.hooks: list[Hook] = []
        self._statuses: list[CommitStatus] = []
        self.activities: list[Activity] = []

    @property
    def full_name(self) -> str:
        """Return `owner/name`."""
        return f"{self.owner.login}/{self.name}"

    @property
    def node_id(self) -> str:
        """Return the GraphQL id."""
        return node_id("R", self.id)

    def role(self, user: User) -> Role:
        """Return a person's role; in a public repository everybody may read."""
        if user is self.owner:
            return "admin"
        return self.roles.get(user, "none" if self.private else "read")

    def is_collaborator(self, user: User) -> bool:
        """Return whether somebody was given access."""
        return user is self.owner or user in self.roles

    def branch(self, name: str) -> str:
        """Return the SHA at a branch's tip; raises KeyError for an unknown branch."""
        return self.refs[HEADS + name]

    def resolve(self, ref: str) -> Commit | None:
        """Return the commit that a SHA, branch, tag or full ref names, or None."""
        for name in (ref, "refs/" + ref, HEADS + ref, "refs/tags/" + ref):
            if name in self.refs:
                return self.git.commits[self.refs[name]]
        return self.git.find(ref)

    def label(self, name: str) -> Label:
        """Return a label of this repository, created if missing."""
        return self.labels.setdefault(name.lower(), Label(self.github.new_id(), name))

    def set_status(
        self,
        actor: By,
        sha: str,
        context: str,
        state: str,
        description: str | None = None,
        target_url: str | None = None,
    ) -> CommitStatus:
        """Set a commit status."""
        moment = self.github.clock.now()
        made = CommitStatus(
            self.github.new_id(), sha, context, state, description, target_url, self.github.user(actor), moment
        )
        self._statuses.append(made)
        self.github.events.status(made.creator, self, made)
        return made

    def all_statuses(self, sha: str) -> list[CommitStatus]:
        """Return every status that a commit was ever given, newest first."""
        return [status for status in reversed(self._statuses) if status.sha == sha]

    def statuses(self, sha: str) -> list[CommitStatus]:
        """Return the current status of each context of a commit, newest first."""
        current: dict[str, CommitStatus] = {}
        for status in self.all_statuses(sha):
            current.setdefault(status.context.lower(), status)
        return list(current.values())

    def status(self, sha: str, context: str) -> CommitStatus | None:
        """Return the current status of one context, or None."""
        return next((s for s in self.statuses(sha) if s.context.lower() == context.lower()), None)

    def branches_with(self, sha: str) -> list[tuple[str, str]]:
        """Return the branches that contain a commit, with their heads; first those whose head it is."""
        heads = [(ref.removeprefix(HEADS), head) for ref, head in self.refs.items() if ref.startswith(HEADS)]
        branches = [(name, head) for name, head in heads if head == sha or self.git.contains(head, sha)]
        return sorted(branches, key=lambda branch: branch[1] != sha)

    @property
    @abstractmethod
    def pulls(self) -> list[Any]:
        """Return every pull request, oldest first."""

    @abstractmethod
    def push(
        self,
        branch: str,
        files: Mapping[str, str | None] | None = None,
        *,
        by: By,
        message: str = "Improve it",
        onto: str | None = None,
    ) -> Commit:
        """Push one commit to a branch, created if missing; a None in `files` deletes the file."""

    @abstractmethod
    def move(self, ref: str, sha: str | None, actor: By) -> None:
        """Point a ref at a commit (None deletes it), and send GitHub's webhooks."""

    @abstractmethod
    def queue(self, branch: str) -> list[Any] | None:
        """Return the merge queue of a branch, None if it has none."""

    @abstractmethod
    def new_check_suite(self, app: Any, sha: str, branch: str | None = None) -> Any:
        """Create one more suite of an App on a commit."""

    @abstractmethod
    def add_check_run(
        self, app: Any, sha: str, name: str, *, by: By | None = None, suite: Any = None, **values: Any
    ) -> Any:
        """Create a check run with any of its fields."""

    @abstractmethod
    def check_runs(self, sha: str, name: str = "") -> list[Any]:
        """Return the newest check run of each name and App on a commit, of one name if given."""
