"""Group the failures of a run by cause: a hundred tests with the same message are one problem to look at."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import lru_cache

from nightjar_formats.model import SeenTest, Status
from nightjar_formats.readers.causes import failure_cause
from pydantic import BaseModel, Field

from bot.results.compare.failure_class import KNOWN_CLASSES, FailureClass
from bot.results.compare.owners import OwnersOf, no_owners
from bot.results.report import sentences
from bot.results.report.findings import Findings, NewFailure
from handlers.dashboard.searches.links import SearchOfTest

MOST_CAUSES = 100
"""The most causes that a page lists; the page counts the rest."""
MOST_TESTS = 25
"""The most tests that a page names for one cause."""
MOST_GROUPED = 5_000
"""The most failures that are grouped by cause. A broken lab may report 100,000; the page counts the rest."""
MOST_OUTPUT = 4_000
"""The most characters of a test's output that a page shows, from its end."""


class CausedTest(BaseModel, extra="forbid"):
    """A test that failed."""

    suite: str
    test: str
    kind: FailureClass
    since: str = Field(description="The first nightly commit with the failure; empty if it is this one, or unknown.")
    since_at: datetime | None = Field(description="When that was committed; null if unknown.")
    owner: str = Field(description="Who is responsible for fixing a quarantined test; empty if it is not quarantined.")
    until: str = Field(description="The last day of its quarantine (UTC); empty if it is not quarantined.")
    owners: list[str] = Field(description="Who looks after the test, by `owners`; none if nobody is named.")
    search: SearchOfTest | None = Field(
        default=None, description="The newest search for the commit that it began to fail with."
    )


class FailureCause(BaseModel, extra="forbid"):
    """Failures with one cause: the same outcome, and messages that differ in nothing but numbers and paths."""

    message: str = Field(description="The message of the first failure; empty if the report has none.")
    happened: str = Field(description="What happened, such as `failed` or `timed out`.")
    new: int = Field(description="How many of the failures are new.")
    known: int = Field(description="How many a quarantine or flakiness explains.")
    unusable: int = Field(description="How many are of suites without usable results.")
    count: int
    tests: list[CausedTest] = Field(description="The first tests with this cause, new failures first.")
    output: str = Field(description="The end of the first test's output.")
    place: str = Field(description="Where the test failed, as PATH:LINE; empty if the report does not say.")
    reproduce: str = Field(description="A command that runs the first test; empty if app.yaml has no template.")


class FailureCount(BaseModel, extra="forbid"):
    """The number of failures with one outcome, such as at one stage of a backend suite."""

    happened: str
    count: int
    failing: int = Field(description="How many of them neither a quarantine, flakiness nor a lab problem explains.")


# To find the cause takes longer than all else. Many failures have the same message, also from run to run. A message has
# at most 1,000 characters, so the cache takes a few MiB at most.
_cause_of = lru_cache(2_000)(failure_cause)


@dataclass(slots=True)
class _Group:
    failures: list[tuple[FailureClass, NewFailure]] = field(default_factory=list)

    @property
    def order(self) -> tuple[int, int]:
        """Return a sort key: groups with the most important kind of failure first, then the largest."""
        return min(_ORDER[kind] for kind, _ in self.failures), -len(self.failures)


_ORDER = {kind: index for index, kind in enumerate(FailureClass)}
EXPLAINED = (*KNOWN_CLASSES, FailureClass.UNUSABLE)
"""The failures that no page shows in red."""


@dataclass(frozen=True, slots=True)
class GroupedFailures:
    """The failures by cause, and counted by outcome.

    `unlisted` causes are not shown, and `ungrouped` failures were not grouped: see `MOST_CAUSES` and `MOST_GROUPED`.
    """

    causes: list[FailureCause]
    counts: list[FailureCount]
    unlisted: int
    ungrouped: int


def causes_of(
    findings: Findings,
    command_of: Callable[[NewFailure], str],
    times: Mapping[str, float],
    owners: OwnersOf = no_owners,
) -> GroupedFailures:
    """Group failures by cause, and count them by outcome.

    Causes with the most important class of failure come first, then the most frequent ones. `command_of` returns the
    command that reproduces a failure, and `owners` the owners of a test; `times` has the times of commits, in seconds
    since 1970.
    """
    groups: dict[tuple[str, str], _Group] = {}
    counts, failing = Counter[str](), Counter[str]()
    grouped = total = 0
    for kind, failure in _failures(findings):
        # The failures come with new ones first, so a broken lab hides no new failure behind known ones.
        total += 1
        if grouped >= MOST_GROUPED:
            continue
        grouped += 1
        happened = sentences.happened(failure)
        counts[happened] += 1
        failing[happened] += kind not in EXPLAINED
        group = groups.setdefault((happened, _cause_of(failure.message)), _Group())
        group.failures.append((kind, failure))
    ordered = sorted(groups.items(), key=lambda item: item[1].order)
    causes = [
        _cause(happened, group, command_of, findings, times, owners) for (happened, _), group in ordered[:MOST_CAUSES]
    ]
    counted = [
        FailureCount(happened=happened, count=count, failing=failing[happened])
        for happened, count in counts.most_common()
    ]
    return GroupedFailures(causes, counted, len(ordered) - len(causes), total - grouped)


def _failures(findings: Findings) -> list[tuple[FailureClass, NewFailure]]:
    failures = []
    for suite, compared in findings.suites:
        for test in compared.comparison.failing:
            kind = findings.failure_classes[suite.suite, test]
            outcome = suite.seen.get(test, SeenTest(Status.FAILED))
            failures.append((kind, NewFailure(suite.suite, test, outcome, suite.details)))
    return sorted(failures, key=lambda pair: _ORDER[pair[0]])


def _caused_test(
    kind: FailureClass, failure: NewFailure, findings: Findings, times: Mapping[str, float], owners: OwnersOf
) -> CausedTest:
    context = findings.contexts.get((failure.suite, failure.test))
    since = context.since if context else ""
    quarantined = findings.quarantine.of(failure.test)
    return CausedTest(
        suite=failure.suite,
        test=failure.test,
        kind=kind,
        since=since,
        since_at=datetime.fromtimestamp(times[since], UTC) if since in times else None,
        owner=quarantined.owner if quarantined else "",
        until=quarantined.until if quarantined else "",
        owners=list(owners(failure.test)),
    )


def _cause(
    happened: str,
    group: _Group,
    command_of: Callable[[NewFailure], str],
    findings: Findings,
    times: Mapping[str, float],
    owners: OwnersOf,
) -> FailureCause:
    failures = sorted(group.failures, key=lambda pair: (_ORDER[pair[0]], pair[1].suite, pair[1].test))
    first = failures[0][1]
    detail = first.detail
    output = detail.text.strip()
    return FailureCause(
        message=first.message,
        happened=happened,
        new=sum(kind is FailureClass.NEW for kind, _ in failures),
        known=sum(kind in KNOWN_CLASSES for kind, _ in failures),
        unusable=sum(kind is FailureClass.UNUSABLE for kind, _ in failures),
        count=len(failures),
        tests=[_caused_test(kind, failure, findings, times, owners) for kind, failure in failures[:MOST_TESTS]],
        output=output[-MOST_OUTPUT:],
        place=f"{detail.path}:{detail.line}" if detail.path and detail.line else detail.path,
        reproduce=command_of(first),
    )
