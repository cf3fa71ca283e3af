"""Compare two CSV reports: tests that fail now but did not before, and tests that no longer fail."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass

from nightjar_lab.suite.csv_report import ReportRow


@dataclass(frozen=True)
class ReportDiff:
    """The tests that changed, by ID. A new test that fails is a new failure too."""

    new_failures: tuple[str, ...]
    fixed: tuple[str, ...]
    stage_changed: tuple[tuple[str, str, str], ...]
    """A test that fails in row_pairs, with the stage before and the stage now."""
    new_tests: tuple[str, ...]
    removed: tuple[str, ...]
    newly_skipped: tuple[str, ...]
    still_failing: int
    earlier: int
    later: int

    def as_json(self) -> dict[str, object]:
        """Return the comparison as JSON."""
        return asdict(self)


def compare_reports(earlier: Iterable[ReportRow], later: Iterable[ReportRow]) -> ReportDiff:
    """Compare two reports. Of several rows of one test, the first that failed counts."""
    earlier_rows, later_rows = _by_test(earlier), _by_test(later)
    row_pairs = [(test, earlier_rows[test], row) for test, row in later_rows.items() if test in earlier_rows]
    return ReportDiff(
        new_failures=tuple(
            test
            for test, row in later_rows.items()
            if row.failed and not (test in earlier_rows and earlier_rows[test].failed)
        ),
        fixed=tuple(test for test, old, row in row_pairs if old.failed and row.result == "Pass"),
        stage_changed=tuple(
            (test, old.detail, row.detail)
            for test, old, row in row_pairs
            if old.failed and row.failed and old.detail != row.detail
        ),
        new_tests=tuple(test for test in later_rows if test not in earlier_rows),
        removed=tuple(test for test in earlier_rows if test not in later_rows),
        newly_skipped=tuple(test for test, old, row in row_pairs if row.result == "Skip" and old.result != "Skip"),
        still_failing=sum(old.failed and row.failed for _, old, row in row_pairs),
        earlier=len(earlier_rows),
        later=len(later_rows),
    )


def _by_test(rows: Iterable[ReportRow]) -> Mapping[str, ReportRow]:
    rows_by_test: dict[str, ReportRow] = {}
    for row in rows:
        if row.test_id not in rows_by_test or (row.failed and not rows_by_test[row.test_id].failed):
            rows_by_test[row.test_id] = row
    return rows_by_test
