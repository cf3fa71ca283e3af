"""`GET /api/v1/repos/{owner}/{repo}/last-good`: the newest commit on which everything required is green."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from datetime import datetime
from typing import TYPE_CHECKING, Any

from pydantic import BaseModel, Field

from bot.web.openapi import Operation
from handlers.tracking_branches import route as tracking
from handlers.tracking_branches.records import LAST_GOOD, TrackingRecord, lag_report

if TYPE_CHECKING:
    from collections.abc import Callable

    from bot.config import Config
    from bot.engine.records import Records
    from handlers.tracking_branches.records import LagReport

HOUR = 3600.0


class LagBehind(BaseModel, extra="forbid"):
    """How far the branch is behind the one that its commits come from, by the last scan, as of now."""

    commits: int = Field(description="Commits of the source branch that it lacks.")
    hours: float | None = Field(description="Age of the oldest of these commits, by its committer's date.")
    since: datetime | None = Field(description="The committer's date of that commit; null if the branch lacks none.")


class SoleBlocker(BaseModel, extra="forbid"):
    """What alone is red, or missing, on commits where everything else that is required is green."""

    name: str
    commits: int


class LastGoodBranch(tracking.TrackedBranch):
    """The state of the last good branch. Unknown values are null."""

    require: list[str] = Field(description="Patterns of the contexts and check runs that must be green.")
    lag: LagBehind | None
    blockers: list[SoleBlocker] = Field(description="The checks that block most commits first, at most ten.")


class LastGoods:
    """Reads the state of last good branches, for the API and the metrics; `clock` returns seconds since 1970."""

    def __init__(self, config: Config, records: Records, clock: Callable[[], float]) -> None:
        self._stored = TrackingRecord(config, records, LAST_GOOD)
        self._clock = clock

    async def __call__(self, repository: str) -> Mapping[str, Any]:
        """Return the state of a repository's branch for the API. Raises LookupError if there is none."""
        return self._with_lag(repository, await self._stored.of(repository))

    async def some(self, repositories: Collection[str]) -> dict[str, Mapping[str, Any]]:
        """Return the same for some repositories, by name; those without such a branch are left out."""
        return {name: self._with_lag(name, record) for name, record in (await self._stored.some(repositories)).items()}

    def _with_lag(self, repository: str, record: Mapping[str, Any]) -> Mapping[str, Any]:
        report = lag_report(repository, record, self._clock())
        return {**record, "lag": _lag(report) if report else None, "blockers": _blockers(report) if report else []}

    async def lag_reports(self) -> list[LagReport]:
        """Return how far each branch is behind now, without branches for which that is unknown."""
        moment = self._clock()
        reports = [lag_report(repository, record, moment) for repository, record in await self._stored.all()]
        return [report for report in reports if report is not None]


def operation(read: tracking.ReadBranch) -> Operation:
    """Return the route."""
    summary = "The newest commit on which everything required is green, how far behind it is, and what is in the way"
    return tracking.operation("last-good", summary, LastGoodBranch, read)


def _lag(report: LagReport) -> dict[str, Any]:
    hours = None if report.seconds is None else round(report.seconds / HOUR, 1)
    return {"commits": report.commits, "hours": hours, "since": report.since or None}


def _blockers(report: LagReport) -> list[dict[str, Any]]:
    return [{"name": name, "commits": commits} for name, commits in report.blockers.items()]
