"""The data that the page of a search for a culprit shows."""

from __future__ import annotations

from datetime import datetime

from markupsafe import Markup
from pydantic import BaseModel, Field

from bot.web.answers import AnswerPart
from handlers.dashboard.searches import texts
from handlers.dashboard.searches.chart import CAUSES, RangeBar, RangeChart, RunMark


class CulpritCommit(BaseModel, extra="forbid"):
    """A commit of the range."""

    position: int = Field(description="1 is the oldest commit of the range.")
    sha: str
    title: str
    author: str = Field(description="A login or a name; empty if unknown.")
    pull_request: int | None = Field(description="The pull request that its message names, or the one merged as it.")
    probability: float = Field(description="That the tests began to fail with it, after the runs so far.")

    @property
    def words(self) -> str:
        """Return what people recognize the commit by."""
        author = texts.BY.format(author=self.author) if self.author else ""
        number = f" (#{self.pull_request})" if self.pull_request else ""
        return f"{self.title or self.sha[: texts.SHORT]}{author}{number}"


class CulpritRun(BaseModel, extra="forbid"):
    """A run that the search asked for. In a search for a measurement, it counts once: as failed at the new level."""

    number: int
    position: int = Field(description="The commit; 0 is the one before the range, at which the tests passed.")
    sha: str
    target: str = Field(description="LAB/TARGET.")
    state: str = Field(description="waiting, results, no results or lost.")
    repeat: int = Field(description="How often each test was to run.")
    failed: int
    passed: int
    seconds: float = Field(description="How long the device worked on it.")
    asked_at: datetime
    ended_at: datetime | None
    log_url: str = Field(description="Empty if there is none.")
    value: float | None = Field(default=None, description="The median that it measured, if a measurement is searched.")
    value_words: str = Field(default="", description="The value with its unit.")

    @property
    def kind(self) -> str:
        """Return what the run says: passed, failed, mixed, or else its state."""
        if not self.failed + self.passed:
            return self.state
        return "mixed" if self.failed and self.passed else "failed" if self.failed else "passed"

    @property
    def words(self) -> str:
        """Return the outcome in words."""
        if self.value_words:
            return texts.MEASURED[bool(self.failed)].format(value=self.value_words)
        if self.failed + self.passed:
            return texts.FAILED_OF.format(failed=self.failed, count=self.failed + self.passed)
        return texts.RUN_STATES[self.state]


class CulpritTarget(BaseModel, extra="forbid"):
    """What a target of a search without an answer does, and tests next."""

    target: str = Field(description="LAB/TARGET.")
    state: str = Field(description="requested, idle, leased, ready, used up or off.")
    words: str = Field(description="The state in words.")
    since: datetime | None = Field(description="Since when a device runs it, or it was requested.")
    left_today: int | None = Field(description="Jobs left today (UTC) of its budget for searches; null if it has none.")
    position: int | None = Field(description="The commit of its run, or else of its next one; null for none.")


class CulpritLevels(BaseModel, extra="forbid"):
    """The levels of a measurement before and after its change on a target."""

    target: str = Field(description="LAB/TARGET.")
    before: float
    after: float
    unit: str
    words: str = Field(description="Both levels in words.")


class CulpritDraft(BaseModel, extra="forbid"):
    """How far the revert of the culprit is (`revert: draft` of `regressions`)."""

    stage: str = Field(
        description=(
            "waiting, testing, opened, failed, unknown, conflict, nothing, exists, refused or withdrawn. The bot has "
            "a draft only if it was opened."
        )
    )
    words: str = Field(description="The stage as a sentence.")
    pull_request: int | None = Field(description="The draft, or the pull request that reverts the culprit already.")
    sha: str = Field(description="The commit without the culprit on which the tests run; empty for none yet.")


class CulpritPage(BaseModel, extra="forbid"):
    """A search for the commit that tests began to fail with."""

    answer: list[AnswerPart] = Field(default=[], description="The answer of the search, as a sentence.")
    next_steps: list[list[AnswerPart]] = Field(default=[], description="What a reader can do, each as a sentence.")
    id: str
    suite: str
    tests: list[str]
    measurement: str = Field(
        default="", description="What changed of what the only test measures; empty in a search for failures."
    )
    levels: list[CulpritLevels] = Field(default=[], description="Those of the measurement, by target.")
    targets: list[str]
    good: str = Field(description="The commit before the range, at which the tests passed.")
    bad: str = Field(description="The last commit of the range, at which they fail.")
    began_at: datetime
    ended_at: datetime | None = Field(description="Null while there is no answer.")
    outcome: str = Field(description="culprit, environment, not repeated, range or budget; empty while it runs.")
    probability: float = Field(description="Of the outcome.")
    first: int = Field(description="The first commit that the answer is about; 0 for none.")
    last: int
    commits: list[CulpritCommit] = Field(description="Those of the range, the oldest first.")
    environment: float = Field(description="The probability that the device, the lab or its environment changed.")
    not_repeated: float = Field(description="The probability that the failure does not repeat.")
    runs: list[CulpritRun] = Field(description="In the order in which they were asked for.")
    device_seconds: float
    runs_left: int
    most_runs: int
    next: list[CulpritTarget] = Field(description="What happens next on each target; empty if the search has ended.")
    more_targets: int = Field(description="Targets that are not in `next`.")
    issue: int | None = Field(description="The open issue that shows the search.")
    revert: CulpritDraft | None = Field(description="The revert of the culprit; null if none is wanted.")

    @property
    def listed(self) -> list[CulpritCommit]:
        """Return the commits that the page lists, in their order: those that were tested, and the likeliest others."""
        tested = {run.position for run in self.runs}
        order = sorted(self.commits, key=lambda commit: (commit.position not in tested, -commit.probability))
        return sorted(order[: texts.MOST_LISTED], key=lambda commit: commit.position)

    def commit_at(self, position: int) -> CulpritCommit | None:
        """Return a commit of the range; None for the one before it."""
        return self.commits[position - 1] if position else None

    def percent(self, probability: float) -> str:
        """Write a probability."""
        return texts.percent(probability)

    def chart(self, address: str) -> Markup:
        """Draw the probabilities and the runs; `address` is that of the repository on GitHub."""
        bars = [
            RangeBar(
                commit.probability,
                texts.BAR.format(commit=commit.words, probability=texts.percent(commit.probability)),
                f"{address}/commit/{commit.sha}",
                is_named=self.first == self.last == commit.position,
            )
            for commit in self.commits
        ]
        no_repeat = texts.NO_CHANGE if self.measurement else texts.NO_REPEAT
        causes = ((texts.LAB_CHANGED, self.environment), (no_repeat, self.not_repeated))
        others = [
            RangeBar(share, texts.BAR.format(commit=words, probability=texts.percent(share)), CAUSES)
            for words, share in causes
        ]
        marks = [
            RunMark(
                run.position,
                run.target,
                run.kind,
                texts.MARK.format(number=run.number, target=run.target, words=run.words),
                f"#run{run.number}",
            )
            for run in self.runs
        ]
        return RangeChart(bars, others, self.targets, marks).svg()
