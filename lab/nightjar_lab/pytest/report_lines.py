"""Make the lines of a report: those of pytest-reportlog without unused members, and a few of our own.

`NightjarStart`: a test begins, so it is known if its process dies before anything else of it is reported.
`NightjarWorkerDied`: a worker of pytest-xdist died. `NightjarCapabilities`: the targets that tests asked for, each with
the reason why it cannot run, or an empty text; the last such line counts. The member `nightjar` of SessionStart says
what was run where, that of SessionFinish how long it took.
https://github.com/pytest-dev/pytest-reportlog
"""

from __future__ import annotations

import hashlib
import json
import math
from typing import Any

import pytest

MOST_LINE = 1 << 20
"""The most bytes of a line; in a longer one, texts are cut."""
MOST_TEXT = 100_000
"""The most characters of a text in a line that is too long."""
MOST_NAME = 10_000
"""The most characters of a node ID; a longer one is cut and gets a digest."""
SECTIONS_OF = frozenset({"failed", "rerun"})
"""Outcomes with which the output of a test is reported."""
PARTS = ("nodeid", "location", "outcome", "when", "duration", "start", "stop", "longrepr", "wasxfail", "rerun")


def line_of(kind: str, **members: Any) -> bytes:
    """Return a line. Half surrogates and control characters are escaped; values that JSON lacks become their repr."""
    nodeid = members.get("nodeid")
    if isinstance(nodeid, str) and len(nodeid) > MOST_NAME:
        members["nodeid"] = _short_name(nodeid)
    return json.dumps({"$report_type": kind, **members}, default=repr, skipkeys=True).encode("ascii") + b"\n"


def _short_name(nodeid: str) -> str:
    """Return a unique short name for a test whose name is too long for a server."""
    return f"{nodeid[:MOST_NAME]}…{hashlib.sha256(nodeid.encode('utf-8', 'surrogatepass')).hexdigest()[:16]}"


def report_line(config: pytest.Config, report: pytest.TestReport | pytest.CollectReport, kind: str) -> bytes:
    """Return the line of a report. Raises what pytest or JSON raise if the report cannot be written as JSON."""
    members: dict[str, Any] = {part: getattr(report, part) for part in PARTS if hasattr(report, part)}
    if report.longrepr is not None and not isinstance(report.longrepr, (str, tuple)):
        data = config.hook.pytest_report_to_serializable(config=config, report=report)
        members["longrepr"] = data["longrepr"]
    if report.outcome in SECTIONS_OF and report.sections:
        members["sections"] = report.sections
    if getattr(report, "user_properties", None):
        members["user_properties"] = report.user_properties
    worker = getattr(getattr(report, "node", None), "gateway", None)
    if worker is not None:
        members["worker_id"] = worker.id
    line = line_of(kind, **members)
    return line if len(line) <= MOST_LINE else line_of(kind, **_cut(members))


def poor_line(report: pytest.TestReport | pytest.CollectReport, kind: str, reason: str) -> bytes:
    """Return the line of a report that cannot be written as JSON: its outcome, and why the rest is missing."""
    duration = getattr(report, "duration", 0.0)
    return line_of(
        kind,
        nodeid=str(report.nodeid),
        outcome=str(report.outcome),
        when=str(getattr(report, "when", "")),
        duration=duration if isinstance(duration, float) and math.isfinite(duration) else 0.0,
        longrepr=reason,
    )


def _cut(value: Any, depth: int = 0) -> Any:
    """Return a value with its texts and lists cut to head and tail."""
    if isinstance(value, str) and len(value) > MOST_TEXT:
        return f"{value[: MOST_TEXT // 2]}\n…\n{value[-MOST_TEXT // 2 :]}"
    if isinstance(value, dict) and depth < 12:
        return {
            name: _cut(member, depth + 1) for name, member in value.items() if name not in ("sections", "reprlocals")
        }
    if isinstance(value, (list, tuple)) and depth < 12:
        parts = list(value) if len(value) <= 100 else [*value[:50], *value[-50:]]
        return [_cut(element, depth + 1) for element in parts]
    return value
