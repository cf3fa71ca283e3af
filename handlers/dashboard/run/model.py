"""What the page of a run says."""

from __future__ import annotations

from datetime import datetime
from functools import cache

from markdown_it import MarkdownIt
from markupsafe import Markup
from pydantic import BaseModel, Field

from bot.results.state import CommitSummary, RunState
from bot.web.answers import AnswerPart
from handlers.dashboard.run.artifacts import SeenArtifacts
from handlers.dashboard.run.causes import FailureCause, FailureCount

QUIET = ("link", "autolink", "image", "html_inline", "linkify")
"""Rules of Markdown that are off: our sentences need none, and text of a lab in a sentence must not use them."""


class ClaimedFact(BaseModel, extra="forbid"):
    """A name and a value that a lab reported; nobody has verified them."""

    name: str
    value: str


class SeenRun(BaseModel, extra="forbid"):
    """A run of the commit on the target, and its outcome."""

    run_id: str
    suite: str | None
    attempt: int | None
    shard: str = Field(description="Such as 1/4; empty for a suite without shards.")
    state: RunState
    reason: str = Field(description="Why the run is not stored, or what was repaired in its files.")
    received_at: datetime
    bytes: int


class SuiteSummary(BaseModel, extra="forbid"):
    """The outcome of a suite, and the commit that it was compared with."""

    suite: str
    passed: int
    failed: int
    skipped: int
    flaky: int
    new_failures: int
    still_failing: int
    known_flaky: int
    quarantined: int
    unjudged: int = Field(description="Failures of a suite that has nothing to compare with.")
    fixed: int
    removed: int
    baseline: str | None = Field(description="The commit that the suite was compared with; null if there is none.")
    infra: str = Field(description="Why the results are unusable; empty if they are usable.")
    missing: str = Field(description="What has not arrived; empty if everything has.")


class CheckSummary(BaseModel, extra="forbid"):
    """The title and the conclusion of the check run of the commit on the target."""

    name: str
    title: str
    conclusion: str
    why: str = Field(description="In Markdown.")


class RunDetails(BaseModel, extra="forbid"):
    """One run, the other runs of its commit on its target, and the result of them all."""

    answer: list[AnswerPart] = Field(default=[], description="What failed, and whether all results have arrived.")
    next_steps: list[list[AnswerPart]] = Field(default=[], description="What a reader can do, each as a sentence.")
    lab: str
    target: str
    sha: str
    committed_at: datetime | None
    pull_request: int | None
    run: SeenRun
    claims: list[ClaimedFact]
    environment: list[ClaimedFact]
    others: list[SeenRun]
    check: CheckSummary | None = Field(description="Null if no results of the commit are stored.")
    suites: list[SuiteSummary]
    missing_suites: list[str]
    failures: list[FailureCount] = Field(description="Number of failures by kind, most frequent first.")
    causes: list[FailureCause] = Field(description="Failures grouped by cause, new ones first.")
    more_causes: int
    unlisted: int = Field(description="Number of failures with causes that are not listed.")
    known_commits: dict[str, CommitSummary] = Field(
        default={}, description="Titles, authors and pull requests of commits on the page, where they are known."
    )
    files: SeenArtifacts | None = Field(
        default=None, description="The log and other files that the lab sent; null if it sent none."
    )

    @property
    def log_page(self) -> str:
        """Return the path of the page of the log, "" if there is none to read."""
        artifacts = self.files.artifacts if self.files and not self.files.expired else []
        return next((artifact.page for artifact in artifacts if artifact.is_log), "")

    @property
    def why_html(self) -> Markup:
        """Return the reason for the check run's conclusion, as HTML."""
        return plain_html(self.check.why if self.check else "")


def plain_html(text: str) -> Markup:
    """Render one line of Markdown; links and HTML in it stay text."""
    return Markup(_parser().renderInline(text))  # noqa: S704 (the parser escapes HTML, and renders no links)


@cache
def _parser() -> MarkdownIt:
    return MarkdownIt("commonmark", {"html": False}).disable(list(QUIET), ignoreInvalid=True)
