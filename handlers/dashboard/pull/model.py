"""The JSON of a pull request's page."""

from __future__ import annotations

from datetime import datetime
from typing import ClassVar

from pydantic import BaseModel, Field

from bot.web.answers import AnswerPart
from bot.web.help import ListedCommand
from handlers.dashboard.pull.story import CommandStory, DeliveryStory
from handlers.device_tests.benchmarks import texts


class KnownHead(BaseModel, extra="forbid"):
    """The pull request and its head, as the newest webhook names them. Unknown members are empty."""

    sha: str
    base: str
    is_open: bool
    state: str = Field(description="open, merged or closed.")
    title: str
    author: str
    merged_by: str
    merged_at: datetime | None


class WaitingMerge(BaseModel, extra="forbid"):
    """A pending merge of the pull request."""

    sha: str
    base: str
    by: str
    url: str = Field(description="The comment in which they asked.")
    asked_at: datetime | None
    queued: bool = Field(description="Whether it is in GitHub's merge queue.")
    why: str = Field(description="What the bot found at its last attempt; empty if that is not stored.")


class StickySection(BaseModel, extra="forbid"):
    """A section of the bot's comment that is about a commit."""

    section: str
    sha: str = Field(description="The commit that it is about.")
    at: datetime = Field(description="When it was computed.")
    out_of_date: bool = Field(description="Whether the head is another commit by now.")


class NewlyFailingTest(BaseModel, extra="forbid"):
    """A test that fails at the head, and did not fail where the head is compared with."""

    suite: str
    test: str
    owners: list[str] = Field(default=[], description="Who looks after the test; none if nobody is named.")


class TargetResults(BaseModel, extra="forbid"):
    """The results of the head on a target, as its check run sums them up."""

    target: str
    run_id: str = Field(description="The newest run of the head on the target.")
    title: str = Field(description="The title of the check run.")
    conclusion: str = Field(description="The conclusion of the check run: success or neutral.")
    passed: int
    failed: int = Field(description="All failures: of a failed test that nobody ignores, exactly one count below.")
    skipped: int
    new_failures: int = Field(description="New failures that nobody ignores.")
    still_failing: int
    unjudged: int = Field(description="Failures of suites that have nothing to compare with.")
    known_flaky: int
    quarantined: int
    ignored: int = Field(description="New failures that somebody ignores for this pull request.")
    complete: bool = Field(description="Whether everything that was announced has arrived.")
    failures: list[NewlyFailingTest] = Field(description="Some of the new failures.")


class DeviceTest(BaseModel, extra="forbid"):
    """A test of this pull request that somebody requested from a lab."""

    target: str
    sha: str
    state: str = Field(description="waiting (for an approval), queued, leased (it runs), done, ended or cancelled.")
    words: str = Field(description="The state in words, in Markdown: its place in the queue, or why it ended.")
    requested_by: str
    requested_at: datetime
    approved_by: str = Field(description="Empty if nobody had to approve it, or nobody has.")
    jobs_before: int | None = Field(description="Tests before it in the queue; null if it is not queued.")
    starts_in: float | None = Field(description="Seconds until it should begin; null if it is not queued.")
    log: str = Field(description="The lab's log; empty if there is none.")


class BenchmarkRow(BaseModel, extra="forbid"):
    """What a test measured at the head and at its base."""

    test: str
    name: str
    unit: str
    better: str = Field(description="lower, higher, or empty.")
    base: float = Field(description="The median of all runs of the base.")
    head: float
    ratio: float = Field(description="Head divided by base.")
    low: float = Field(description="The ratio is between `low` and `high` with 95 % confidence.")
    high: float
    verdict: str = Field(description="better or worse; empty if they do not differ, or nobody says which is better.")
    words: str = Field(description="The difference in words.")


class BenchmarkOnTarget(BaseModel, extra="forbid"):
    """A benchmark that has ended with a report: head and base ran in turn on one device."""

    WITHOUT_RATIO: ClassVar[str] = texts.WITHOUT_RATIO

    target: str
    sha: str
    base_sha: str
    tests: list[str] = Field(description="The only tests that ran; empty for all.")
    answer: str = Field(description="What it has shown, in words.")
    precision: float = Field(description="How narrow each interval was to be: half its width, as a share.")
    blocks: int = Field(description="How often base, head, head and base ran.")
    seconds: float = Field(description="How long it measured.")
    end: str = Field(description="precise, budget (the time ended) or most blocks.")
    measurements: list[BenchmarkRow] = Field(description="Those that differ come first.")
    unlisted: int = Field(description="Measurements that are not listed.")
    failed_at_base: list[str]
    failed_at_head: list[str]
    without_ratio: list[str] = Field(
        description="Some measurements that differ, but are zero, negative or in another unit at one of the commits."
    )


class HeadCheckRun(BaseModel, extra="forbid"):
    """A check run that the bot wrote on the head."""

    name: str
    title: str = Field(description="Empty if an earlier release wrote it.")
    conclusion: str = Field(description="Empty while the check run is not completed.")
    url: str
    computed_at: datetime = Field(description="When its content was computed.")


class IgnoredOnTarget(BaseModel, extra="forbid"):
    """New failures of a target that somebody ignores for this pull request, by the button *Ignore*."""

    target: str
    ignored_by: str
    ignored_at: datetime | None
    sha: str = Field(description="The commit whose check run had the button.")
    tests: int


class RefusedOnTarget(BaseModel, extra="forbid"):
    """The last press of *Ignore* on a target, if it was refused."""

    target: str
    pressed_by: str
    pressed_at: datetime | None
    sha: str = Field(description="The commit whose check run had the button.")
    why: str = Field(description="Why nothing is ignored, in Markdown.")


class PullPage(BaseModel, extra="forbid"):
    """What the bot knows of a pull request and did for it."""

    number: int
    github: str = Field(description="The repository's page on GitHub.")
    answer: list[AnswerPart] = Field(description="The first sentence: what is pending, and when it should be done.")
    next_steps: list[list[AnswerPart]] = Field(description="What its author may do next.")
    pending: bool = Field(description="Whether something is pending: the page asks again until it is not.")
    head: KnownHead | None
    merge: WaitingMerge | None
    results: list[TargetResults] = Field(description="Results of the head by target, those with new failures first.")
    more_targets: int = Field(description="Targets with results that are not listed.")
    commands_given: list[CommandStory] = Field(description="What each command did, the newest first.")
    device_tests: list[DeviceTest] = Field(description="Tests on devices, the newest first.")
    benchmarks: list[BenchmarkOnTarget] = Field(description="The listed tests that are benchmarks and have a report.")
    more_device_tests: int = Field(description="Tests on devices that are not listed.")
    check_runs: list[HeadCheckRun]
    ignored_failures: list[IgnoredOnTarget]
    refused_presses: list[RefusedOnTarget] = Field(description="Presses of *Ignore* that were refused.")
    reminded_at: datetime | None = Field(description="When the bot last reminded people; null if it never did.")
    sections: list[StickySection] = Field(description="What the bot's comment says about commits now.")
    commands: list[ListedCommand] = Field(description="The commands that people can give there, and who may use each.")
    deliveries: list[DeliveryStory]
    ignored: int = Field(description="Deliveries on this page that needed no action; `all` lists them.")
    older: int | None = Field(description="The `before` of the next page; null on the last one.")
    done_days: int = Field(description="How long deliveries are stored.")
    failed_days: int = Field(description="How long those with failures are stored.")
