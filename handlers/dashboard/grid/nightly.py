"""`/r/{owner}/{repo}/nightly`: where the nightly branch is, its last moves, and why it is at no newer commit."""

from __future__ import annotations

from pydantic import BaseModel, Field

from bot.web.page_routes import Page, PageRequest
from handlers.dashboard.shared.wiring import DashboardParts
from handlers.nightly.config import NIGHTLY as NIGHTLY_KEY
from handlers.nightly.route import NightlyBranch, NightlyBranches
from handlers.tracking_branches.records import NIGHTLY, TrackingRecord


class NightlyRules(BaseModel, extra="forbid"):
    """The rules of app.yaml: when the branch moves, and to which commits."""

    branch: str
    source: str = Field(description="The source branch.")
    at: str
    timezone: str
    require: list[str] = Field(description="Patterns of what must be green on a commit.")


class NightlyPage(BaseModel, extra="forbid"):
    """The nightly branch of a repository: `rules` are those of app.yaml, null where it has none."""

    github: str = Field(description="The repository's page on GitHub.")
    rules: NightlyRules | None
    tracked: NightlyBranch | None = Field(
        description="The same as the API's answer about the branch; null before the first scan."
    )


def nightly_page(parts: DashboardParts) -> Page:
    """Return the page of the nightly branch; `handlers/tracking_branches` has the route of its JSON twin."""
    read = NightlyBranches(TrackingRecord(parts.config, parts.records, NIGHTLY), parts.results)

    async def load(request: PageRequest) -> NightlyPage:
        settings = parts.config.repository(request.repository)
        if settings is None:
            raise LookupError(request.repository)
        nightly = settings.of(NIGHTLY_KEY)
        try:
            tracked = NightlyBranch.model_validate(await read(request.repository)) if nightly else None
        except LookupError as error:
            if isinstance(error, KeyError | IndexError):  # a bug, not an answer
                raise
            tracked = None
        return NightlyPage(
            github=f"{parts.github}/{request.repository}",
            rules=NightlyRules(
                branch=nightly.branch,
                source=nightly.source,
                at=nightly.at,
                timezone=nightly.timezone,
                require=list(nightly.require),
            )
            if nightly
            else None,
            tracked=tracked,
        )

    return Page(
        path="/r/{owner}/{repo}/nightly",
        api_path="/api/v1/repos/{owner}/{repo}/nightly",
        summary="The nightly branch: its commit, its last moves, and why it is not at a newer commit",
        template="nightly.html",
        model=NightlyPage,
        load=load,
        has_own_twin=False,
        others_twin_has_csv=True,
    )
