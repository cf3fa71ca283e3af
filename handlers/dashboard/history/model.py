"""The data that the page of a test shows."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Annotated, ClassVar

from markupsafe import Markup
from pydantic import BaseModel, ConfigDict, Field, StringConstraints

from bot.core.page_paths import run_path
from bot.results.state import CommitSummary
from bot.web.answers import AnswerPart
from bot.web.page_filters import commit_link
from handlers.dashboard.measurements.numbers import TestNumber
from handlers.dashboard.searches.links import SearchOfTest
from handlers.dashboard.shared.cell_markup import legend, strip_of_cells
from handlers.dashboard.shared.cells import CellState, GridCell
from handlers.dashboard.shared.chart import DurationChart, duration_chart
from handlers.dashboard.shared.settings import TARGET_PATTERN

MOST_TIMED = 8
"""The most targets of a suite whose durations a page shows, those on which the test fails first: a fifth of the page's
time goes into the durations on 20 targets. The page of one target has them, and the API has all."""


class HistoryQuery(BaseModel, extra="forbid"):
    """The test to show."""

    id: Annotated[str, StringConstraints(max_length=4000)] = Field(description="The test's ID.")
    target: Annotated[str, StringConstraints(pattern=TARGET_PATTERN)] | None = Field(
        default=None, description="Only this target, as LAB/TARGET."
    )


@dataclass(slots=True)
class HistoryCommit:
    """The outcome of the test at a commit."""

    # Not a model: a page has hundreds, and to make a model takes five times as long.
    __pydantic_config__: ClassVar = ConfigDict(extra="forbid")
    sha: str
    committed_at: datetime
    cell: GridCell
    name: str = Field(description="The test's ID at that commit.")
    seconds: float | None = Field(description="Duration of the test; null if unknown.")


class HistoryFailing(BaseModel, extra="forbid"):
    """A failure of the test: since when it fails, as the check run states it."""

    since: str = Field(description="The first nightly commit with the failure since the test last passed.")
    last_passed_at: str = Field(description="The last commit at which it passed; empty if there is none.")
    older: bool = Field(description="Whether there are earlier runs, which were not evaluated.")
    failed_before: int
    runs_before: int
    also_on: list[str] = Field(description="Other targets with the failure in their newest run, as LAB/TARGET.")
    passes_on_simulators: list[str] = Field(
        default=[], description="Simulators of the target whose newest run has a pass, as LAB/TARGET."
    )
    passes_on_device: str = Field(
        default="", description="The device that the target simulates, if its newest run has a pass; else empty."
    )
    message: str = Field(description="The newest run's message, in one line; empty if there is none.")


class HistoryFlakiness(BaseModel, extra="forbid"):
    """How flaky the test is, and the commits that prove it: at each, it both passed and failed."""

    runs: int
    failed: int
    words: str
    proofs: list[str]


class HistoryQuarantine(BaseModel, extra="forbid"):
    """The quarantine of the test: new failures are known until its last day."""

    owner: str
    reason: str
    issue: str
    until: str = Field(description="The last day (UTC), as YYYY-MM-DD.")


class HistorySource(BaseModel, extra="forbid"):
    """The place of a test in the source, according to its newest report or its ID."""

    path: str
    line: int | None
    url: str


class HistoryOnTarget(BaseModel, extra="forbid"):
    """The test in one suite on one target; `runs` are newest first."""

    lab: str
    target: str
    suite: str
    runs: list[HistoryCommit]
    is_removed: bool = Field(
        default=False, description="Whether the newest complete nightly run does not have the test."
    )
    stale: bool = Field(
        default=False,
        description="Whether the newest nightly run of the target arrived more than 36 hours ago: whether the test "
        "fails there now is unknown.",
    )
    configured: bool = Field(
        default=True, description="Whether app.yaml has the target. If not, no further run of it is expected."
    )
    failing: HistoryFailing | None
    flakiness: HistoryFlakiness | None
    quarantine: HistoryQuarantine | None = Field(description="Its quarantine; null without one.")
    numbers: list[TestNumber] = Field(default=[], description="What the test measured in its newest nightly run.")
    first_seen: str | None = Field(description="The oldest nightly commit that ran it.")
    first_seen_at: datetime | None
    renamed_from: list[str] = Field(description="Earlier IDs of the test, newest first.")
    reproduce: str
    source: HistorySource | None = Field(description="The test's source file; null if no report names it.")
    issue_url: str = Field(
        description="GitHub's form for a new issue, filled in; empty if the test neither fails nor is flaky."
    )
    search: SearchOfTest | None = Field(
        default=None, description="The newest search for the commit that it began to fail with."
    )

    @property
    def name(self) -> str:
        """The target as LAB/TARGET."""
        return f"{self.lab}/{self.target}"

    @property
    def with_results(self) -> int:
        """Count the listed commits that have results."""
        return sum(bool(commit.cell.run_id) for commit in self.runs)

    @property
    def all_passed(self) -> bool:
        """Say whether the test passed at every listed commit that has results."""
        return all(commit.cell.state is CellState.PASS for commit in self.runs if commit.cell.run_id)

    @property
    def run_ids(self) -> dict[str, str]:
        """Return the run of each listed commit that has results, by its SHA."""
        return {commit.sha: commit.cell.run_id for commit in self.runs if commit.cell.run_id}

    def proofs(self, repository: str, summaries: Mapping[str, CommitSummary]) -> Markup:
        """Link the commits that prove that it is flaky, those on the page with their runs; empty if there are none."""
        proofs = self.flakiness.proofs if self.flakiness else ()
        run_ids = self.run_ids if proofs else {}
        links = [
            commit_link(
                sha,
                repository,
                {} if sha in run_ids else summaries,
                run_path(repository, self.name, sha, run_ids[sha]) if sha in run_ids else "",
            )
            for sha in proofs
        ]
        return Markup(", ").join(links)

    def strip(self, repository: str) -> Markup:
        """Return its cells as HTML, oldest first: time runs from left to right, as in the chart below them."""
        return strip_of_cells(repository, self.name, ((commit.sha, commit.cell) for commit in reversed(self.runs)))

    @property
    def chart(self) -> DurationChart | None:
        """Return the chart of its duration by commit; None if there is too little to draw."""
        return duration_chart(
            [
                (commit.sha, commit.seconds, commit.cell.failed > 0)
                for commit in reversed(self.runs)
                if commit.seconds is not None
            ]
        )


class HistoryPage(BaseModel, extra="forbid"):
    """One test on all targets."""

    answer: list[AnswerPart] = Field(default=[], description="Where the test fails, and since when, as a sentence.")
    next_steps: list[list[AnswerPart]] = Field(default=[], description="What a reader can do, each as a sentence.")
    known_commits: dict[str, CommitSummary] = Field(
        default={}, description="Titles, authors and pull requests of commits on the page, where they are known."
    )
    id: str
    owners: list[str] = Field(default=[], description="Who looks after the test, by `owners`; none if nobody is named.")
    renamed_to: str = Field(default="", description="The test's newest name by `renames`; empty if it is this one.")
    targets: list[HistoryOnTarget]
    more: int = Field(description="Number of further targets and suites with this test.")

    @property
    def legend(self) -> Markup:
        """Return the legend of the cells, as `<li>` elements."""
        return legend()
