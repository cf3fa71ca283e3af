"""Group the failures of a run by cause: a hundred tests with the same message are one problem to look at."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from enum import StrEnum

from nightjar_formats.model import SeenTest, Status
from nightjar_formats.readers.causes import failure_cause
from pydantic import BaseModel, ConfigDict, Field

from bot.results.report import sentences
from bot.results.report.findings import Findings, NewFailure

MOST_CAUSES = 100
"""The most causes that a page lists; the page counts the rest."""
MOST_TESTS = 25
"""The most tests that a page names for one cause."""
MOST_JUDGED = 5_000
"""The most failures that are grouped by cause. A broken lab may report 100,000; the page counts the rest."""
MOST_OUTPUT = 4_000
"""The most characters of a test's output that a page shows, from its end."""


class FailureKind(StrEnum):
    """The kinds of failure by comparison with the base, the most important to a reader first."""

    NEW = "new"
    UNJUDGED = "nothing to compare with"
    KNOWN_FLAKY = "known flaky"
    STILL_FAILING = "still failing"


class CausedTest(BaseModel):
    """A test that failed."""

    model_config = ConfigDict(extra="forbid")

    suite: str
    test: str
    kind: FailureKind


class FailureCause(BaseModel):
    """Failures with one cause: the same outcome, and messages that differ in nothing but numbers and paths."""

    model_config = ConfigDict(extra="forbid")

    message: str = Field(description="The message of the first failure; empty if the report has none.")
    happened: str = Field(description="What happened, such as `failed` or `timed out`.")
    new: int = Field(description="How many of the failures are new.")
    count: int
    tests: list[CausedTest] = Field(description="The first tests with this cause, new failures first.")
    output: str = Field(description="The end of the first test's output.")
    place: str = Field(description="Where the test failed, as PATH:LINE; empty if the report does not say.")
    reproduce: str = Field(description="A command that runs the first test; empty if app.yaml has no template.")


class FailureCount(BaseModel):
    """The number of failures with one outcome, such as at one stage of a backend suite."""

    model_config = ConfigDict(extra="forbid")

    happened: str
    count: int


@dataclass(slots=True)
class _Group:
    first: NewFailure
    kinds: list[tuple[int, FailureKind, NewFailure]] = field(default_factory=list)


_ORDER = {kind: place for place, kind in enumerate(FailureKind)}


@dataclass(frozen=True, slots=True)
class CausesFound:
    """The failures by cause, and counted by outcome.

    `more` causes are not shown, and `unjudged` failures were not grouped: see `MOST_CAUSES` and `MOST_JUDGED`.
    """

    causes: list[FailureCause]
    counts: list[FailureCount]
    more: int
    unjudged: int


def causes_of(findings: Findings, command_of: Callable[[NewFailure], str]) -> CausesFound:
    """Group failures by cause, and count them by outcome.

    Causes with the most important kind of failure come first (`FailureKind`), then the most frequent ones. `command_of`
    returns the command that reproduces a failure.
    """
    groups: dict[tuple[str, str], _Group] = {}
    counts: Counter[str] = Counter()
    judged = total = 0
    for kind, failure in _failures(findings):
        # The failures come with new ones first, so a broken lab hides no new failure behind known ones.
        total += 1
        if judged >= MOST_JUDGED:
            continue
        judged += 1
        happened = sentences.happened(failure)
        counts[happened] += 1
        group = groups.setdefault((happened, failure_cause(failure.message)), _Group(failure))
        group.kinds.append((_ORDER[kind], kind, failure))
    ordered = sorted(groups.items(), key=lambda item: (min(one[0] for one in item[1].kinds), -len(item[1].kinds)))
    shown = [_cause(happened, group, command_of) for (happened, _), group in ordered[:MOST_CAUSES]]
    counted = [FailureCount(happened=happened, count=count) for happened, count in counts.most_common()]
    return CausesFound(shown, counted, len(ordered) - len(shown), total - judged)


def _failures(findings: Findings) -> list[tuple[FailureKind, NewFailure]]:
    found = []
    new = {(one.suite, one.test) for one in findings.new_failures}
    for suite, compared in findings.suites:
        comparison = compared.comparison
        flaky, still = set(comparison.known_flaky), set(comparison.still_failing)
        for test in comparison.failing:
            judged = comparison.has_baseline and not comparison.infra
            kind = FailureKind.STILL_FAILING if judged else FailureKind.UNJUDGED
            if (suite.suite, test) in new:
                kind = FailureKind.NEW
            elif test in flaky:
                kind = FailureKind.KNOWN_FLAKY
            elif test in still:
                kind = FailureKind.STILL_FAILING
            seen = suite.seen.get(test, SeenTest(Status.FAILED))
            found.append((kind, NewFailure(suite.suite, test, seen, suite.details)))
    return sorted(found, key=lambda one: _ORDER[one[0]])


def _cause(happened: str, group: _Group, command_of: Callable[[NewFailure], str]) -> FailureCause:
    kinds = sorted(group.kinds, key=lambda one: (one[0], one[2].suite, one[2].test))
    first = kinds[0][2]
    detail = first.detail
    output = detail.text.strip()
    return FailureCause(
        message=first.message,
        happened=happened,
        new=sum(kind == FailureKind.NEW for _, kind, _ in kinds),
        count=len(kinds),
        tests=[CausedTest(suite=one.suite, test=one.test, kind=kind) for _, kind, one in kinds[:MOST_TESTS]],
        output=output[-MOST_OUTPUT:],
        place=f"{detail.path}:{detail.line}" if detail.path and detail.line else detail.path,
        reproduce=command_of(first),
    )
