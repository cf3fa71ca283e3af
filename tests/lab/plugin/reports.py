"""Reports written by the plugin, read as the server reads them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from nightjar_formats.model import Case
from nightjar_formats.readers import read

REPORT = "report.jsonl"
OPTION = ("--nightjar-report", REPORT)


def cases(path: str | Path = REPORT) -> list[Case]:
    """Return the cases of a report."""
    with Path(path).open("rb") as file:
        return list(read(file, "report"))


def outcomes(path: str | Path = REPORT) -> dict[str, str]:
    """Return the outcome of each test by name: status, where it failed, and whether the report calls it flaky."""
    tests = cases(path)
    ended = {case.name: " ".join(filter(None, (case.status, case.trouble, "flaky" * case.flaky))) for case in tests}
    assert len(ended) == len(tests)
    return ended


def lines(path: str | Path = REPORT) -> list[dict[str, Any]]:
    """Return the lines of a report."""
    return [json.loads(line) for line in Path(path).read_bytes().splitlines()]
