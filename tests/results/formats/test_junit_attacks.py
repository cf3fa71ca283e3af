"""A hostile report costs little: it is refused before much of it is read, and no report takes 100 MB of memory."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from nightjar_formats.limits import MAX_TEXT_HEAD, MAX_TEXT_TAIL

from tests.results.formats.junit_attacks import MB, REPORTS

ROOT = Path(__file__).parents[3]
REFUSED = {
    "billion laughs": ("Refused", "a DOCTYPE is not accepted"),
    "billion laughs in an attribute": ("Refused", "a DOCTYPE is not accepted"),
    "quadratic blow-up": ("Refused", "a DOCTYPE is not accepted"),
    "a file of the machine": ("Refused", "a DOCTYPE is not accepted"),
    "200,000 elements inside of each other": ("TooMuch", "more than 16 nested elements"),
    "200,000 elements inside of a case": ("TooMuch", "more than 16 nested elements"),
    "500,000 attributes": ("TooMuch", "more than 1,048,576 bytes"),
    "50,000 attributes": ("TooMuch", "more than 64 attributes"),
    "an attribute of 16 MB": ("TooMuch", "more than 1,048,576 bytes"),
    "an attribute of 100 MB": ("TooMuch", "more than 1,048,576 bytes"),
    "a comment of 16 MB": ("TooMuch", "more than 1,048,576 bytes"),
    "a comment of 100 MB": ("TooMuch", "more than 1,048,576 bytes"),
    "a comment of 100 MB before the root": ("TooMuch", "more than 1,048,576 bytes"),
    "a processing instruction of 100 MB": ("TooMuch", "more than 1,048,576 bytes"),
    "a tag of 100 MB": ("TooMuch", "more than 1,048,576 bytes"),
    "a million different elements": ("TooMuch", "more than 1,000 different names"),
    "a million different attributes": ("TooMuch", "more than 1,000 different names"),
}
MOST_READ = 4 * MB
"""Bytes that a reader takes from a report which it refuses."""
READ = set(REPORTS) - set(REFUSED)
CUT = {"100 MB of text in one failure", "100 MB of text on one line", "100 MB of CDATA in one failure"}


@pytest.mark.parametrize("name", REFUSED)
def test_a_hostile_report_is_refused_at_once(name: str) -> None:
    stated = attacked(name)
    kind, words = REFUSED[name]
    assert stated["refused"] == kind
    assert words in stated["words"]
    assert stated["words"].startswith("line 1: ")


@pytest.mark.exhaustive("30 MB of control characters", "100 MB of CDATA in one failure", "200,000 failures of one test")
@pytest.mark.parametrize("name", sorted(READ))
def test_a_hostile_report_is_read_in_bounded_memory(name: str) -> None:
    stated = attacked(name)
    assert stated["refused"] == ""
    assert stated["cases"] >= 1
    if name in CUT:
        assert MAX_TEXT_HEAD < stated["characters"] <= MAX_TEXT_HEAD + MAX_TEXT_TAIL


def attacked(name: str) -> dict[str, Any]:
    """Read the report in a new process, and check its cost."""
    command = [sys.executable, "-m", "tests.results.formats.junit_attacks", name]
    ran = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    stated: dict[str, Any] = json.loads(ran.stdout)
    # What is read to its end takes linear time: test_format_work.py.
    assert not stated["refused"] or stated["read"] <= MOST_READ
    assert stated["grown"] < 100 * MB
    return stated
