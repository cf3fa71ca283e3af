"""Collect tests in a process of their own, and write their node IDs: `python -m nightjar_lab.pytest.collected FILE …`.

The first argument is the file to write, a JSON list; the others are pytest's. The exit status is pytest's.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest


class CollectedTests:
    """A plugin that remembers the node IDs of the tests that a run would run."""

    def __init__(self) -> None:
        self.nodeids: list[str] = []

    def pytest_collection_finish(self, session: pytest.Session) -> None:
        """Remember the tests that are left after options such as `-m` have deselected others."""
        self.nodeids = [item.nodeid for item in session.items]


def main() -> int:
    """Collect the tests of the command line."""
    output, *arguments = sys.argv[1:]
    tests = CollectedTests()
    status = pytest.main(["--collect-only", "-qq", *arguments], plugins=[tests])
    Path(output).write_text(json.dumps(tests.nodeids), encoding="utf-8")
    return int(status)


if __name__ == "__main__":
    raise SystemExit(main())
