"""List what changed between two commits: one row for each test that changed or still fails. No I/O."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Literal, Self, get_args

from nightjar_formats.model import SeenTest
from pydantic import BaseModel, Field

from bot.core.listing import counted
from bot.results.compare.quarantine import Quarantine
from bot.results.report.findings import ComparedSuite
from bot.results.state import CommitSummary
from bot.results.store.lists.commits_with_results import CommitWithResults
from bot.web.answers import AnswerPart
from bot.web.csv_tables import CsvTable
from handlers.dashboard.compare.numbers import ComparedNumber
from handlers.dashboard.shared import texts

CsvTableName = Literal["tests", "numbers"]
ChangeClass = Literal[
    "new-failure", "quarantined", "still-failing", "flaky", "fixed", "new-test", "newly-skipped", "removed"
]
CLASSES: tuple[ChangeClass, ...] = get_args(ChangeClass)
ROWS = 50
"""Tests on one page of the list."""
SHOWN_MESSAGE = 300


@dataclass(frozen=True, slots=True)
class SuitePair:
    """One suite at the head and at the base; `compared` is None if the suite has no results at the head."""

    suite: str
    head: Mapping[str, SeenTest]
    base: Mapping[str, SeenTest]
    compared: ComparedSuite | None
    quarantine: Quarantine
    complete: bool = True


class ComparisonCommit(BaseModel, extra="forbid"):
    """A commit with results of the target, as the page names it."""

    sha: str
    committed_at: datetime
    pull_request: int | None = Field(description="The pull request whose head this commit is.")

    @staticmethod
    def of(commit: CommitWithResults | None) -> ComparisonCommit | None:
        """Return a commit as the page shows it."""
        return ComparisonCommit.from_store(commit) if commit else None

    @classmethod
    def from_store(cls, commit: CommitWithResults) -> Self:
        """Return a commit as the page shows it."""
        number = None if commit.mainline else commit.pull_request
        return cls(sha=commit.sha, committed_at=datetime.fromtimestamp(commit.committed_at, UTC), pull_request=number)


class ComparedTest(BaseModel, extra="forbid"):
    """A test that changed or still fails. A status is null if the commit does not have the test."""

    status: ChangeClass
    suite: str
    test: str
    before: str | None
    now: str | None
    message: str = Field(description="The first line of the test's message at the head.")
    renamed_from: str | None = Field(description="The test's ID at the base, if it was renamed.")


class ComparedSuiteCounts(BaseModel, extra="forbid"):
    """How many tests of a suite changed in which way."""

    suite: str
    tests: int = Field(description="Number of tests at the head.")
    counts: dict[ChangeClass, int]
    note: str | None = Field(description="Why the suite was not compared, or what limits the comparison.")


class ComparePage(BaseModel, extra="forbid"):
    """A comparison. The counts cover all suites; `tests` are those that match the filters."""

    answer: list[AnswerPart] = Field(default=[], description="How many tests changed, as a sentence.")
    next_steps: list[list[AnswerPart]] = Field(default=[], description="What a reader can do, each as a sentence.")
    known_commits: dict[str, CommitSummary] = Field(
        default={}, description="Titles, authors and pull requests of commits on the page, where they are known."
    )
    takes_results: bool = Field(description="Whether app.yaml has `results` for the repository.")
    targets: list[str] = Field(description="All targets of app.yaml, as LAB/TARGET.")
    target: str | None
    base: ComparisonCommit | None
    head: ComparisonCommit | None
    commits: list[ComparisonCommit] = Field(description="The newest commits with results, to choose from.")
    counts: dict[ChangeClass, int]
    suites: list[ComparedSuiteCounts]
    tests: list[ComparedTest]
    numbers: list[ComparedNumber] = Field(
        default=[],
        description="What tests measured: differences that noise does not explain first. None under a filter.",
    )
    table: CsvTableName = Field(default="tests", description="What a CSV has: `tests` or `numbers`.")
    matching: int = Field(description="Number of tests that match the filters, on all pages.")
    pages: int

    @classmethod
    def without_results(cls) -> Self:
        """Return the page of a repository for which app.yaml has no `results`."""
        return cls(
            takes_results=False,
            targets=[],
            target=None,
            base=None,
            head=None,
            commits=[],
            counts={},
            suites=[],
            tests=[],
            matching=0,
            pages=1,
        )


def comparison_page(
    suites: Sequence[SuitePair],
    *,
    status: ChangeClass | None,
    suite: str | None,
    text: str,
    number: int,
    csv_rows: int,
    targets: list[str],
    target: str | None,
    base: ComparisonCommit | None,
    head: ComparisonCommit | None,
    commits: list[ComparisonCommit],
) -> ComparePage:
    """Return one page of a comparison; if `csv_rows` is not 0, its first `csv_rows` tests instead."""
    changes_by_suite = [(pair, list(changed_tests(pair))) for pair in suites]
    counts = [Counter(kind for kind, _ in tests) for _, tests in changes_by_suite]
    lowered_text = text.lower()
    matching = [
        (CLASSES.index(kind), pair.suite, test, pair, kind)
        for pair, tests in changes_by_suite
        if suite in (None, pair.suite)
        for kind, test in tests
        if status in (None, kind) and lowered_text in test.lower()
    ]
    matching.sort(key=lambda match: match[:3])
    page_matches = matching[:csv_rows] if csv_rows else matching[(number - 1) * ROWS : number * ROWS]
    renamed = {pair.suite: _old_names(pair) for pair in suites}
    return ComparePage(
        takes_results=True,
        targets=targets,
        target=target,
        base=base,
        head=head,
        commits=commits,
        counts=_in_order(sum(counts, Counter[ChangeClass]())),
        suites=[
            ComparedSuiteCounts(
                suite=pair.suite, tests=len(pair.head), counts=_in_order(suite_counts), note=note_of(pair)
            )
            for (pair, _), suite_counts in zip(changes_by_suite, counts, strict=True)
        ],
        tests=[_row(kind, pair, test, renamed[pair.suite]) for _, _, test, pair, kind in page_matches],
        matching=len(matching),
        pages=max(1, -(-len(matching) // ROWS)),
    )


def changed_tests(pair: SuitePair) -> Iterator[tuple[ChangeClass, str]]:
    """Yield the tests that changed or still fail, each once, in the classes in which a check run counts them."""
    if pair.compared is None or pair.compared.comparison.infra or not pair.compared.comparison.has_baseline:
        return
    comparison = pair.compared.comparison
    quarantined = {test for test in comparison.failing if pair.quarantine.of(test)}
    failing = {*comparison.new_failures, *comparison.known_flaky, *comparison.still_failing}
    classes: Mapping[ChangeClass, Sequence[str]] = {
        "new-failure": [test for test in comparison.new_failures if test not in quarantined],
        "quarantined": sorted(quarantined),
        "still-failing": [test for test in comparison.still_failing if test not in quarantined],
        "flaky": sorted({*comparison.known_flaky, *comparison.flaky}.difference(quarantined)),
        "fixed": comparison.fixed,
        "new-test": [test for test in comparison.new if test not in failing],
        "newly-skipped": comparison.newly_skipped,
        "removed": comparison.removed,
    }
    for kind, tests in classes.items():
        for test in tests:
            yield kind, test


def note_of(pair: SuitePair) -> str | None:
    """Say why a suite was not compared, or what limits the comparison."""
    if pair.compared is None:
        return texts.NO_RESULTS_AT_HEAD
    comparison = pair.compared.comparison
    if comparison.infra:
        return comparison.infra
    if not comparison.has_baseline:
        return texts.NO_RESULTS_AT_BASE
    parts = []
    if not pair.complete:
        parts.append(texts.INCOMPLETE_AT_HEAD)
    if comparison.precluded:
        parts.append(texts.PRECLUDED.format(tests=counted(len(comparison.precluded), "test")))
    if comparison.renamed:
        parts.append(counted(len(comparison.renamed), *texts.RENAMED))
    if comparison.unsearched:
        parts.append(texts.UNSEARCHED)
    return " ".join(parts) or None


def compare_table(page: ComparePage) -> CsvTable:
    """Return the tests of a page, or the numbers, as a table for CSV."""
    if page.table == "numbers":
        names = list(ComparedNumber.model_fields)
        return CsvTable.of(names, page.numbers)
    columns = ("status", "suite", "test", "before", "now", "message", "renamed_from")
    return CsvTable.of(columns, page.tests)


def _in_order(counts: Mapping[ChangeClass, int]) -> dict[ChangeClass, int]:
    return {kind: counts.get(kind, 0) for kind in CLASSES}


def _old_names(pair: SuitePair) -> dict[str, str]:
    return {head: base for base, head in pair.compared.comparison.renamed} if pair.compared else {}


def _row(kind: ChangeClass, pair: SuitePair, test: str, renamed: Mapping[str, str]) -> ComparedTest:
    head, base = pair.head.get(test), pair.base.get(renamed.get(test, test))
    lines = (line.strip() for line in head.message.splitlines() if line.strip()) if head else iter(())
    return ComparedTest(
        status=kind,
        suite=pair.suite,
        test=test,
        before=_status_text(base),
        now=_status_text(head),
        message=next(lines, "")[:SHOWN_MESSAGE],
        renamed_from=renamed.get(test),
    )


def _status_text(outcome: SeenTest | None) -> str | None:
    if outcome is None:
        return None
    return "flaky" if outcome.flaky else outcome.status.value
