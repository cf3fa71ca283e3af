"""Compare the results of two targets, such as a simulator and the device that it simulates, test by test."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

import sqlalchemy as sa
from nightjar_formats.columns import ABSENT, CODES, STATUS_BITS, STATUS_BYTES
from nightjar_formats.model import Status, TargetKey

from bot.results.store.lists.commits_with_results import CommitWithResults, newest_commits_with_results
from bot.results.store.tables.cells import FAILS, PASSES
from bot.results.store.tables.names import SuiteRow, all_names
from bot.results.store.tables.points import suites_on_targets
from bot.results.store.tables.runs import columns_at

_SKIPPED_CODE = CODES[Status.SKIPPED]


class PairClass(StrEnum):
    """How the results of a test differ between a target and another one, the most important first."""

    FAILS_HERE = "fails-here"
    """It passes on the other target and fails on this one."""
    FAILS_THERE = "fails-there"
    """It fails on the other target and passes on this one."""
    ONLY_THERE = "only-there"
    """It runs on the other target, and this one lacks or skips it."""
    ONLY_HERE = "only-here"
    """It runs on this target, and the other one lacks or skips it."""
    FAILS_ON_BOTH = "fails-on-both"


@dataclass(frozen=True, slots=True)
class PairedTest:
    """A test whose results differ, or which fails on both targets."""

    kind: PairClass
    suite: str
    test: str


@dataclass(frozen=True, slots=True)
class PairFilter:
    """Which tests to list: all classes for None, tests whose ID contains a text in lower case, and a range of them."""

    kind: PairClass | None = None
    text: str = ""
    start: int = 0
    limit: int = 100


@dataclass(frozen=True, slots=True)
class ComparedTargets:
    """What differs between two targets at a commit of each; `counts` are of all tests, `matching` of those to list."""

    commit: CommitWithResults
    other_commit: CommitWithResults
    counts: Mapping[PairClass, int]
    tests: Sequence[PairedTest]
    matching: int


def compare_targets(
    connection: sa.Connection, target: TargetKey, other: TargetKey, choice: PairFilter
) -> ComparedTargets | None:
    """Compare two targets at the newest nightly commit that both tested; None if one of them has no results.

    If there is no such commit among the newest ones, each target is at its own newest commit.
    """
    commits, other_commits = (_nightly(connection, key) for key in (target, other))
    if not commits or not other_commits:
        return None
    by_sha = {commit.sha: commit for commit in other_commits}
    commit = next((commit for commit in commits if commit.sha in by_sha), commits[0])
    other_commit = by_sha.get(commit.sha, other_commits[0])
    columns = _columns(connection, target, commit.sha)
    other_columns = _columns(connection, other, other_commit.sha)
    differing: list[PairedTest] = []
    for suite, row in sorted({**_rows(columns), **_rows(other_columns)}.items()):
        names = all_names(connection, row)
        column, other_column = columns.get((suite, row), b""), other_columns.get((suite, row), b"")
        length = max(len(column), len(other_column))
        pairs = zip(column.ljust(length, b"\0"), other_column.ljust(length, b"\0"), strict=True)
        differing += sorted(
            (
                PairedTest(kind, suite, names[ordinal])
                for ordinal, pair in enumerate(pairs)
                if (kind := _CLASSES.get(pair)) is not None
            ),
            key=lambda test: test.test,
        )
    matching = [test for test in differing if choice.kind in (None, test.kind) and choice.text in test.test.lower()]
    order = list(PairClass)
    matching.sort(key=lambda test: order.index(test.kind))
    counts = Counter(test.kind for test in differing)
    listed = matching[choice.start : choice.start + choice.limit]
    return ComparedTargets(commit, other_commit, {kind: counts[kind] for kind in PairClass}, listed, len(matching))


def _nightly(connection: sa.Connection, target: TargetKey) -> list[CommitWithResults]:
    return [commit for commit in newest_commits_with_results(connection, target) if commit.mainline]


def _columns(connection: sa.Connection, target: TargetKey, sha: str) -> dict[tuple[str, SuiteRow], bytes]:
    """Return the status column of each suite of a target at a commit."""
    suites = suites_on_targets(connection, target.repository, target.lab, target.target)
    places = {suite.place_at(sha): suite for suite in suites}
    columns = columns_at(connection, places)
    return {(places[place].name, places[place].row): column for place, column in columns.items()}


def _rows(columns: Mapping[tuple[str, SuiteRow], bytes]) -> dict[str, SuiteRow]:
    return dict(columns.keys())


def _class_of(status: int, other_status: int) -> PairClass | None:
    if status in FAILS and other_status in PASSES:
        return PairClass.FAILS_HERE
    if status in PASSES and other_status in FAILS:
        return PairClass.FAILS_THERE
    if status in FAILS and other_status in FAILS:
        return PairClass.FAILS_ON_BOTH
    if _ran(other_status) and not _ran(status):
        return PairClass.ONLY_THERE
    return PairClass.ONLY_HERE if _ran(status) and not _ran(other_status) else None


def _ran(status: int) -> bool:
    return status != ABSENT and status & STATUS_BITS != _SKIPPED_CODE


_CLASSES = {
    (status, other_status): kind
    for status in range(STATUS_BYTES)
    for other_status in range(STATUS_BYTES)
    if (kind := _class_of(status, other_status)) is not None
}
"""The class of each pair of status bytes that is listed."""
