"""The interface between the model classes and the GitHub that contains them.

The model imports this module, so the objects that `Announcer` announces have no types here.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from sandbox.clock import Clock
from sandbox.git import Commit
from sandbox.users import By, User

Json = dict[str, Any]


class World(Protocol):
    """One GitHub: its clock, its accounts, and the announcer of changes."""

    @property
    def url(self) -> str:
        """Return the address of API and pages, without a slash at the end."""

    @property
    def clock(self) -> Clock:
        """Return the clock."""

    @property
    def users(self) -> Mapping[str, User]:
        """Return the accounts by their lowercase logins."""

    @property
    def events(self) -> Announcer:
        """Return the sender of webhooks."""

    @property
    def actions_app(self) -> Any:
        """Return the App of GitHub Actions."""

    def new_id(self) -> int:
        """Return a unique number."""

    def user(self, account: By) -> User:
        """Return the account of a login, created if missing."""

    def changed(self) -> None:
        """Wake everyone who waits for a change."""


class Announcer(Protocol):
    """Sends the webhooks of a change; `sandbox.events` builds their bodies."""

    def issue(self, action: str, actor: User, issue: Any, members: Json) -> None:
        """Announce a change of an issue or pull request."""

    def comment(self, action: str, actor: User, comment: Any, changed: Json | None = None) -> None:
        """Announce a comment."""

    def review(self, action: str, actor: User, review: Any, members: Json | None = None) -> None:
        """Announce a review."""

    def review_comment(self, action: str, actor: User, comment: Any, members: Json | None = None) -> None:
        """Announce a comment on the diff."""

    def status(self, actor: User, repository: Any, status: Any) -> None:
        """Announce a commit status."""

    def check_run(self, action: str, actor: User, run: Any, members: Json | None = None, only: Any = None) -> None:
        """Announce a check run."""

    def check_suite(self, action: str, actor: User, suite: Any, only: Any = None) -> None:
        """Announce a check suite."""

    def workflow_run(self, action: str, actor: User, run: Any) -> None:
        """Announce a workflow run."""

    def workflow_job(self, action: str, actor: User, job: Any) -> None:
        """Announce a job of a workflow run."""

    def push(self, actor: By, repository: Any, ref: str, old_sha: str, new_sha: str) -> None:
        """Announce a moved ref."""

    def merge_group(self, actor: User, repository: Any, ref: str, head: Commit, base_ref: str, base_sha: str) -> None:
        """Announce a group of the merge queue."""

    def ref(self, event: str, actor: By, repository: Any, ref: str) -> None:
        """Announce a created or deleted ref."""

    def installation(self, installation: Any, action: str, added: Sequence[Any]) -> None:
        """Announce a change of an installation."""

    def transferred(self, actor: User, repository: Any, old: User) -> None:
        """Announce the transfer of a repository."""

    def send(self, repository: Any, event: str, action: str | None, actor: User, body: Json, only: Any = None) -> None:
        """Announce any event of a repository."""
