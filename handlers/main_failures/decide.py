"""Decide what has begun to fail on a branch since the last scan, and what has recovered. Pure.

The newest commit with a finished result of a status or check counts. A pending result says nothing yet, and a late
failure of an older commit is no news if a newer commit is green.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import takewhile
from typing import Annotated

from bot.config.types import matches
from bot.core.sorted_sets import SORTED
from bot.github.commits.refs import Commit
from bot.github.commits.required import Signal

# https://docs.github.com/rest/checks/runs and https://docs.github.com/rest/commits/statuses
FAILED = frozenset({"failure", "error", "timed_out", "startup_failure"})
PASSED = frozenset({"success", "neutral"})
"""States of statuses and conclusions of check runs. The others are no verdict: skipped (a job that it needs
has failed, or its paths did not change), cancelled (a newer push replaced it), action_required (it waits for a
maintainer), stale, and all that have not ended."""

REMOVED_AFTER = 86400.0
"""Seconds after which a context that no scanned commit reports counts as removed.

The time starts with the first scan that does not find it, because the time before is unknown.
"""
MOST_FIXED = 200
"""The most recoveries that are stored of a branch."""
LONGEST_WORDS, LONGEST_URL = 140, 800
"""The most characters that are stored of a status's description, and of its address; a longer address is dropped."""


def has_failed(result: str) -> bool | None:
    """Return whether a status's state, or a check run's conclusion, is a failure; None if it is neither."""
    return True if result in FAILED else False if result in PASSED else None


@dataclass(frozen=True, slots=True)
class FailingContext:
    """A context that fails: the commit that broke it, and its description there.

    `since` is the time of the first scan that found the failure, `missing_since` that of the first scan in which no
    commit reported the context, in seconds since 1970; 0 if the last scan found it. `overdue`: a message said that it
    was not fixed in time.
    """

    name: str
    sha: str
    title: str
    says: str
    url: str
    since: float
    missing_since: float = 0.0
    overdue: bool = False


@dataclass(frozen=True, slots=True)
class Recovery:
    """A context that has recovered: on which commit, and how many commits after the one that broke it (None: unknown).

    `seconds` is the time for which it was known to fail.
    """

    failure: FailingContext
    commit: Commit
    commits: int | None
    seconds: float
    url: str


@dataclass(frozen=True, slots=True)
class FixedContext:
    """A context that failed and recovered: from when until when it was known to fail, in seconds since 1970."""

    name: str
    since: float
    until: float


@dataclass(frozen=True, slots=True)
class KnownFailures:
    """What is stored between two scans: what fails, and which failures were seen, so that none is reported twice.

    `seen` has the failed contexts of the commits of the last scan only, so it stays small. `news` is the key of the
    last message, empty if there was none. `reported_at` is the time of that message; it always increases, even if a
    clock was set back. `fixed` are the last recoveries, oldest first.
    """

    failing: Mapping[str, FailingContext] = field(default_factory=dict)
    seen: Mapping[str, Annotated[frozenset[str], SORTED]] = field(default_factory=dict)
    news: str = ""
    reported_at: float = 0.0
    fixed: tuple[FixedContext, ...] = ()

    def after_message(self, news: str, moment: float) -> KnownFailures:
        """Return the state after a message with this key was sent at `moment`, in seconds since 1970."""
        return replace(self, news=news, reported_at=max(moment, self.reported_at + 1))


@dataclass(frozen=True, slots=True)
class BranchScan:
    """The result of a scan: the newest commits of a branch, newest first, and the signals of the first few."""

    scanned_at: float
    commits: Sequence[Commit]
    signals: Sequence[Sequence[Signal]]

    def position(self, sha: str) -> int | None:
        """Return how many commits are newer than this one; None if it is too far back, or no longer on the branch."""
        return next((index for index, commit in enumerate(self.commits) if commit.sha == sha), None)


@dataclass(frozen=True, slots=True)
class FailureChanges:
    """What changed since the last scan; `removed` failed and is no longer reported. `state` is for the next scan.

    `overdue` is what was not fixed in time, of which no message has said that.
    """

    began: tuple[FailingContext, ...]
    recovered: tuple[Recovery, ...]
    removed: tuple[FailingContext, ...]
    state: KnownFailures
    overdue: tuple[FailingContext, ...] = ()

    @property
    def is_news(self) -> bool:
        """Return whether there is a change to report."""
        return bool(self.began or self.recovered or self.removed or self.overdue)


@dataclass(frozen=True, slots=True)
class _Result:
    """The result of a context on the commit at `position` of the scan; `failed` is None while there is no verdict."""

    position: int
    signal: Signal
    failed: bool | None


def decide_alarms(
    stored: KnownFailures | None, scan: BranchScan, contexts: Sequence[str], fix_within: float | None = None
) -> FailureChanges:
    """Compare a scan with the stored state; `contexts` are the patterns of watched contexts.

    A failure that lasts longer than `fix_within` (in seconds) is reported as overdue, once.
    The very first scan reports a failure only if an older commit of the scan is green; other failures are only stored.
    """
    last = stored or KnownFailures()
    results = _results(scan.signals, contexts)
    began, recovered, removed, overdue = [], [], [], []
    failing: dict[str, FailingContext] = {}
    for name in sorted(results.keys() | last.failing.keys()):
        context_results = results.get(name, [])
        earlier = last.failing.get(name)
        if earlier is None:
            failure = _new_failure(name, context_results, scan, last)
            if failure is not None:
                failing[name] = failure
                if stored is not None or any(result.failed is False for result in context_results):
                    began.append(failure)
        elif (recovery := _recovery(earlier, context_results, scan)) is not None:
            recovered.append(recovery)
        elif not context_results and earlier.missing_since and scan.scanned_at - earlier.missing_since >= REMOVED_AFTER:
            removed.append(earlier)
        else:
            # A context that no commit reports may only be late, so it stays until `REMOVED_AFTER`.
            failure = replace(
                earlier, missing_since=0.0 if context_results else earlier.missing_since or scan.scanned_at
            )
            if fix_within is not None and not failure.overdue and scan.scanned_at - failure.since >= fix_within:
                failure = replace(failure, overdue=True)
                overdue.append(failure)
            failing[name] = failure
    fixed = tuple(
        FixedContext(recovery.failure.name, recovery.failure.since, scan.scanned_at) for recovery in recovered
    )
    seen = _seen_failures(results, scan, last)
    state = replace(last, failing=failing, seen=seen, fixed=(*last.fixed, *fixed)[-MOST_FIXED:])
    return FailureChanges(tuple(began), tuple(recovered), tuple(removed), state, tuple(overdue))


def _new_failure(
    name: str, context_results: Sequence[_Result], scan: BranchScan, last: KnownFailures
) -> FailingContext | None:
    """Return the new failure of a context that did not fail before: the oldest of its newest failures in a row.

    A failure that an earlier scan has seen is not new: it was reported then, or a newer commit was green.
    """
    ended = (result for result in context_results if result.failed is not None)
    failures_in_a_row = list(
        takewhile(
            lambda result: result.failed and name not in last.seen.get(scan.commits[result.position].sha, ()), ended
        )
    )
    if not failures_in_a_row:
        return None
    broken, signal = scan.commits[failures_in_a_row[-1].position], failures_in_a_row[-1].signal
    return FailingContext(
        name=name,
        sha=broken.sha,
        title=broken.title,
        says=(signal.says or signal.result.replace("_", " "))[:LONGEST_WORDS],
        url=signal.url if len(signal.url) <= LONGEST_URL else "",
        since=scan.scanned_at,
    )


def _recovery(failure: FailingContext, context_results: Sequence[_Result], scan: BranchScan) -> Recovery | None:
    """Return the recovery of a context, or None; results older than the commit that broke it don't count."""
    broken = scan.position(failure.sha)
    ended = (
        result
        for result in context_results
        if result.failed is not None and (broken is None or result.position <= broken)
    )
    newest = next(ended, None)
    if newest is None or newest.failed:
        return None
    commits = broken - newest.position if broken is not None else None
    return Recovery(
        failure, scan.commits[newest.position], commits, max(0.0, scan.scanned_at - failure.since), newest.signal.url
    )


def _results(signals: Sequence[Sequence[Signal]], contexts: Sequence[str]) -> dict[str, list[_Result]]:
    """Return the results of each watched context, by name, those of the newest commit first."""
    results: dict[str, list[_Result]] = {}
    for position, commit_signals in enumerate(signals):
        by_name: dict[str, list[Signal]] = {}
        for signal in commit_signals:
            if not signal.is_workflow_run and matches(contexts, signal.name):
                by_name.setdefault(signal.name, []).append(signal)
        for name, same_name in by_name.items():
            results.setdefault(name, []).append(_worst_result(position, same_name))
    return results


def _worst_result(position: int, signals: Iterable[Signal]) -> _Result:
    """Return the result of a context with a status or checks of several Apps: the worst of them counts."""
    by_rank = {True: 0, None: 1, False: 2}
    failed, signal = min(((has_failed(signal.result), signal) for signal in signals), key=lambda pair: by_rank[pair[0]])
    return _Result(position, signal, failed)


def _seen_failures(
    results: Mapping[str, Sequence[_Result]], scan: BranchScan, last: KnownFailures
) -> dict[str, frozenset[str]]:
    """Return which contexts have failed on which of the scanned commits, now or in an earlier scan."""
    seen: dict[str, frozenset[str]] = {}
    for position, commit in enumerate(scan.commits[: len(scan.signals)]):
        failing = {
            name
            for name, context_results in results.items()
            if any(result.position == position and result.failed for result in context_results)
        }
        names = last.seen.get(commit.sha, frozenset()) | failing
        if names:
            seen[commit.sha] = names
    return seen
