"""Runs of any CI in one form, and the interface of their providers."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from bot.github.client import GitHub
    from bot.plan.effect import Effect


class CiState(StrEnum):
    """The state of a run; `failed` covers every end after which somebody may want to try again."""

    RUNNING = "running"
    SUCCEEDED = "succeeded"
    FAILED = "failed"
    UNAPPROVED = "unapproved"
    """It starts once a maintainer approves it. Rerunning it would bypass the approval."""
    MISSING = "missing"
    """app.yaml names it, but the commit has no status of it: its CI may have missed the push."""


FAILURES = frozenset({"failure", "error", "cancelled", "timed_out", "startup_failure", "stale"})
"""Conclusions of check runs and workflow runs, and states of commit statuses, that count as failed.

https://docs.github.com/en/rest/checks/runs, https://docs.github.com/en/rest/commits/statuses
"""


def state_of(status: str, conclusion: str) -> CiState:
    """Return the state of a check run or workflow run; a completed one without a conclusion counts as running."""
    if status != "completed" or not conclusion:
        return CiState.RUNNING
    if conclusion == "action_required":
        return CiState.UNAPPROVED
    return CiState.FAILED if conclusion in FAILURES else CiState.SUCCEEDED


@dataclass(frozen=True, slots=True)
class CiRunPart:
    """A part of a run with its own name: a job of a workflow, or a status of a Jenkins build.

    `id` is the ID of the job; 0 if the part cannot be rerun alone.
    """

    name: str
    state: CiState
    id: int = 0


@dataclass(frozen=True, slots=True)
class CiRun:
    """The newest run of one workflow or Jenkins job on a commit, or a check that another App owns.

    `key` identifies it for the provider; `conclusion` is the word of the CI, for people; `attempt` counts from 1.
    """

    provider: str
    name: str
    key: str
    state: CiState
    conclusion: str
    url: str
    attempt: int = 1
    parts: tuple[CiRunPart, ...] = ()
    untouchable: str = ""
    """Why we cannot rerun it, as the end of a sentence; empty if we can."""
    is_outdated: bool = False
    """Whether its status on the commit is still pending although the CI reports its `conclusion`."""
    server: str = ""
    """The address of the server that it runs on, if the provider has several."""

    @property
    def names(self) -> tuple[str, ...]:
        """All names that a person may use for it."""
        return (self.name, *(part.name for part in self.parts))


class CiProvider(Protocol):
    """A CI whose runs on a commit can be listed and run again."""

    @property
    def title(self) -> str:
        """Its name, for people."""
        ...

    async def runs(self, github: GitHub, repository: str, sha: str) -> list[CiRun]:
        """Return the runs on a commit. Raises `UserError` if GitHub does not show them."""
        ...

    def rerun(self, run: CiRun, *, failed_only: bool, part: CiRunPart | None = None) -> Effect:
        """Return the effect that reruns it, its failed parts, or one part."""
        ...
