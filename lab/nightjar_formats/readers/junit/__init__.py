"""Read JUnit XML in all its dialects, each recognized by the document itself."""

from __future__ import annotations

from collections.abc import Iterator
from typing import BinaryIO

from nightjar_formats.model import Case
from nightjar_formats.readers.junit import plain, pytest
from nightjar_formats.readers.junit.case_runs import CaseOrRun, one_by_one
from nightjar_formats.readers.junit.document import Make, SuiteElement, cases
from nightjar_formats.readers.repairs import Repairs


def read(stream: BinaryIO, repairs: Repairs | None = None) -> Iterator[Case]:
    """Read a report case by case, as `read_runs` does."""
    return one_by_one(read_runs(stream, repairs))


def read_runs(stream: BinaryIO, repairs: Repairs | None = None) -> Iterator[CaseOrRun]:
    """Read a report in constant memory, and yield plain cases together. Ignore the report's own counts.

    Raises `TooMuch`, `Refused`, or `NotXml`, which may come after cases, if the report ends too early.
    """
    return cases(stream, _dialect, repairs)


def _dialect(suite: SuiteElement) -> Make:
    """Choose the dialect of a suite by the suite alone: a test has one ID, whatever comes before it and how it ends."""
    return pytest.case if pytest.recognizes(suite) else plain.case
