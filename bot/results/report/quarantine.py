"""List quarantined tests in a check run; a new failure of one never makes it a success."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from bot.core.docs import table
from bot.core.listing import MORE
from bot.github.markdown import code, escape
from bot.results.report import texts
from bot.results.report.findings import Findings, NewFailure
from bot.results.report.sentences import happened
from bot.results.report.tables import MOST_ROWS, SHOWN_ID, middle_cut

if TYPE_CHECKING:
    from bot.results.settings.quarantine import QuarantinedTest

COLUMNS = ("test", "suite", "what happened", "owner", "reason", "until")


def quarantined(findings: Findings) -> str:
    """List the quarantined tests that fail: what happened, whose they are, why, and until when."""
    return _listed(texts.QUARANTINED, findings.quarantined)


def quarantine_ended(findings: Findings) -> str:
    """List the tests that fail and whose quarantine has ended, so that their owners prolong or repair."""
    listed = _listed(texts.QUARANTINE_ENDED, findings.released)
    return f"{listed}\n\n{texts.QUARANTINE_ENDED_MEANS}" if listed else ""


def _listed(name: str, tests: Sequence[tuple[NewFailure, QuarantinedTest]]) -> str:
    if not tests:
        return ""
    rows: list[Sequence[str]] = [
        (
            code(middle_cut(failure.test, SHOWN_ID)),
            code(failure.suite),
            happened(failure),
            code(item.owner),
            f"[{escape(item.reason)}]({item.issue})",
            item.until,
        )
        for failure, item in tests[:MOST_ROWS]
    ]
    if (more := len(tests) - MOST_ROWS) > 0:
        rows.append((MORE.format(count=more), *[""] * (len(COLUMNS) - 1)))
    return f"### {name}: {len(tests):,}\n\n{table(COLUMNS, rows)}"
