"""Check suites and check runs."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING, Any

from sandbox.model.home import Home
from sandbox.users import User, node_id

if TYPE_CHECKING:
    from sandbox.model.apps import App

# A suite's conclusion is the worst of its runs'. https://docs.github.com/rest/checks/suites
WORST_FIRST = (
    "action_required",
    "startup_failure",
    "timed_out",
    "failure",
    "stale",
    "cancelled",
    "success",
    "neutral",
    "skipped",
)


@dataclass(eq=False)
class CheckSuite:
    """The check runs of one App on one commit."""

    id: int
    repository: Home
    app: App
    head_sha: str
    head_branch: str | None
    created_at: datetime
    updated_at: datetime
    runs: list[CheckRun] = field(default_factory=list)

    @property
    def node_id(self) -> str:
        """Return the GraphQL id."""
        return node_id("CS", self.id)

    @property
    def latest(self) -> list[CheckRun]:
        """Return the newest run of each name; only these count."""
        return list({run.name: run for run in self.runs}.values())

    @property
    def status(self) -> str:
        """Return `queued` while it has no runs, then their combined status."""
        if not self.runs:
            return "queued"
        states = {run.status for run in self.latest}
        return "completed" if states == {"completed"} else "queued" if states == {"queued"} else "in_progress"

    @property
    def conclusion(self) -> str | None:
        """Return the worst conclusion, or None while a run is not completed."""
        if self.status != "completed":
            return None
        conclusions = {run.conclusion for run in self.latest}
        return next(word for word in WORST_FIRST if word in conclusions)

    def rerequest(self, actor: str) -> None:
        """Press *Re-run all checks*: only the suite's App is notified, and the runs do not change."""
        github = self.repository.github
        github.events.check_suite("rerequested", github.user(actor), self, only=self.app)


@dataclass(eq=False)
class CheckRun:
    """A check run with its output and all annotations that were ever sent."""

    id: int
    suite: CheckSuite
    name: str
    status: str = "queued"
    conclusion: str | None = None
    external_id: str = ""
    details_url: str | None = None
    started_at: datetime | None = None
    completed_at: datetime | None = None
    title: str | None = None
    summary: str | None = None
    text: str | None = None
    annotations: list[dict[str, Any]] = field(default_factory=list)
    actions: list[dict[str, str]] = field(default_factory=list)

    @property
    def created_at(self) -> datetime | None:
        """Return when it was created; GitHub reports only the start time, which an App may set."""
        return self.started_at

    @property
    def node_id(self) -> str:
        """Return the GraphQL id."""
        return node_id("CR", self.id)

    @property
    def head_sha(self) -> str:
        """Return the commit that was checked."""
        return self.suite.head_sha

    @property
    def app(self) -> App:
        """Return the App that owns the run."""
        return self.suite.app

    def change(self, actor: User, **values: Any) -> None:
        """Set new values, append annotations as GitHub does, and send the webhooks."""
        github = self.suite.repository.github
        was_completed = self.status == "completed"
        self.annotations.extend(values.pop("annotations", []))
        for name, value in values.items():
            setattr(self, name, value)
        if self.conclusion and "conclusion" in values:
            self.status = "completed"
            self.completed_at = self.completed_at or github.clock.now()
        self.suite.updated_at = github.clock.now()
        if self.status == "completed" and not was_completed:
            github.events.check_run("completed", actor, self)
            if self.suite.status == "completed":
                github.events.check_suite("completed", actor, self.suite)
        github.changed()

    def rerequest(self, actor: str) -> None:
        """Press *Re-run* on the run: only its App is notified, and the run does not change."""
        github = self.suite.repository.github
        github.events.check_run("rerequested", github.user(actor), self, only=self.app)

    def press(self, actor: str, identifier: str) -> None:
        """Press one of the run's own buttons."""
        github = self.suite.repository.github
        assert identifier in {action["identifier"] for action in self.actions}, "the run has no such button"
        members = {"requested_action": {"identifier": identifier}}
        github.events.check_run("requested_action", github.user(actor), self, members, only=self.app)
