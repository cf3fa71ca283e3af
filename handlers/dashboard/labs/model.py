"""What the page of a lab says."""

from __future__ import annotations

from datetime import datetime

from pydantic import BaseModel, Field

from bot.results.state import RunState
from bot.web.answers import AnswerPart
from handlers.dashboard.grid.page import ListedNightly
from handlers.dashboard.labs.promotion import Promotion


class LabRun(BaseModel, extra="forbid"):
    """A run that a lab uploaded."""

    target: str
    sha: str
    run_id: str
    received_at: datetime
    state: RunState
    reason: str = Field(description="Why the upload gave no result, or what was repaired in its files.")


class MissingNightlyRun(BaseModel, extra="forbid"):
    """A commit of the nightly branch for which a target has uploaded nothing."""

    sha: str
    at: datetime = Field(description="When the commit was made, or when the branch moved there.")


class DegradedState(BaseModel, extra="forbid"):
    """Why a target is degraded by one tier."""

    since: datetime = Field(description="When labs could test the first nightly commit without a result.")
    sha: str = Field(description="The first nightly commit without a result.")
    infra: int = Field(description="Nightly runs without usable results when that was noticed.")
    missing: int = Field(description="Nightly runs that had not arrived by then.")


class LabTarget(BaseModel, extra="forbid"):
    """The uploads of a target in the last 30 days; `newest` is its last nightly run, however old."""

    target: str
    tier: int = Field(description="The tier that counts now; 3 accepts no requests.")
    degraded: DegradedState | None = Field(description="Why the tier is one more than in app.yaml; null if it is not.")
    newest: LabRun | None
    stale: bool = Field(description="Whether the last nightly run arrived more than 36 hours ago, or never.")
    results: int = Field(description="Results of a suite at a commit of the nightly branch.")
    seconds_p50: float | None = Field(
        description="Median time from the commit to the first result of a suite; null below five results."
    )
    seconds_p90: float | None = Field(description="90th percentile of that time; null below five results.")
    infra: int = Field(description="Unusable results.")
    infra_of: int = Field(description="All results, including incomplete ones.")
    missing: int = Field(description="Nightly commits without any result, 36 hours after they were committed.")
    expected: int = Field(description="Nightly commits since the target's first result.")
    missing_commits: list[MissingNightlyRun] = Field(description="The newest nightly commits without any result.")
    unusable_since: ListedNightly | None = Field(
        default=None,
        description="The first of the newest nightly commits without usable results; null if the newest has some.",
    )
    promotion: Promotion | None = Field(
        description="Whether the target could move to a better tier; null at tier 1, if degraded, or without results."
    )


class LabQuota(BaseModel, extra="forbid"):
    """How much a lab has uploaded today (UTC), and how much app.yaml allows."""

    runs: int
    runs_per_day: int
    megabytes: float
    megabytes_per_day: int


class LabPage(BaseModel, extra="forbid"):
    """A lab: its targets, late ones first; its newest uploads without a usable result."""

    answer: list[AnswerPart] = Field(default=[], description="Which targets are late or unusable, and whom to ask.")
    next_steps: list[list[AnswerPart]] = Field(default=[], description="What a reader can do, each as a sentence.")
    lab: str
    contacts: list[str]
    github: str = Field(description="The repository's page on GitHub.")
    public_url: str = Field(description="The address of the bot's pages; empty if app.yaml has none.")
    days: int = Field(description="The number of days that the figures cover.")
    quota: LabQuota
    targets: list[LabTarget]
    unusable: list[LabRun] = Field(description="Refused and incomplete uploads, newest first, at most 20.")
