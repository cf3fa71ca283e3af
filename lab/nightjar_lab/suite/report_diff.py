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
    """A test that fails in both, with the stage before and the stage now."""
    new_tests: tuple[str, ...]
    removed: tuple[str, ...]
    newly_skipped: tuple[str, ...]
    still_failing: int
    earlier: int
    later: int

    def as_json(self) -> dict[str, object]:
        """Return it as JSON."""
        return asdict(self)


def compare_reports(earlier: Iterable[ReportRow], later: Iterable[ReportRow]) -> ReportDiff:
    """Compare two reports. Of several rows of one test, the first that failed counts."""
    before, now = _by_test(earlier), _by_test(later)
    both = [(test, before[test], row) for test, row in now.items() if test in before]
    return ReportDiff(
        new_failures=tuple(
            test for test, row in now.items() if row.failed and not (test in before and before[test].failed)
        ),
        fixed=tuple(test for test, old, row in both if old.failed and row.result == "Pass"),
        stage_changed=tuple(
            (test, old.detail, row.detail)
            for test, old, row in both
            if old.failed and row.failed and old.detail != row.detail
        ),
        new_tests=tuple(test for test in now if test not in before),
        removed=tuple(test for test in before if test not in now),
        newly_skipped=tuple(test for test, old, row in both if row.result == "Skip" and old.result != "Skip"),
        still_failing=sum(old.failed and row.failed for _, old, row in both),
        earlier=len(before),
        later=len(now),
    )


def _by_test(rows: Iterable[ReportRow]) -> Mapping[str, ReportRow]:
    found: dict[str, ReportRow] = {}
    for row in rows:
        if row.test_id not in found or (row.failed and not found[row.test_id].failed):
            found[row.test_id] = row
    return found
