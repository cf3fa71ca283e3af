"""Read an archive of JUnit files; the server does this in a separate process (`bot.core.untrusted`)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import BinaryIO, NamedTuple

from nightjar_formats import readers
from nightjar_formats.columns import SEEN, duration
from nightjar_formats.columns.collect import Columns, collect, merge, read_names, split
from nightjar_formats.readers.decoding.inflate import inflated
from nightjar_formats.refused import Refused, TooMuch
from nightjar_formats.runs.identity import Resolver

from handlers.ci_reports import texts
from handlers.ci_reports.outcomes import SuiteOutcomes
from handlers.ci_reports.zips import read_zip

REPORTS = (".xml", ".xml.gz")
"""Files with these endings are read as JUnit; all others are ignored."""
MOST_WRONG = 3
"""The section says why for at most this many unreadable files of an artifact, and counts the rest."""


@dataclass(slots=True)
class ArchiveBudget:
    """The inflated bytes that all files of a run may have in total (`limit`), and how many of them remain.

    All artifacts of a run share one budget. With one for each, the code of a pull request could keep a core busy for
    minutes.
    """

    remaining: int
    limit: int = field(init=False)
    reason: str = ""

    def __post_init__(self) -> None:
        self.limit = self.remaining

    def check(self) -> None:
        """Raise `TooMuch` if the budget is spent."""
        if self.remaining < 0:
            raise TooMuch(self.reason or texts.FILES_TOO_LONG.format(limit=self.limit))

    def end(self, reason: str) -> None:
        """Spend the rest of the budget, so that nothing more is read; `check` raises `reason` from now on."""
        self.remaining, self.reason = -1, reason


class Archive(NamedTuple):
    """The result of reading one archive: `remaining` is the rest of the budget.

    `suite` is None if no file could be used. `errors` say why files could not be read.
    """

    suite: SuiteOutcomes | None
    errors: tuple[str, ...]
    remaining: int


def read_archive(files: Sequence[BinaryIO], listed: frozenset[str], remaining: int, limit: int) -> Archive:
    """Read one archive; `remaining` and `limit` are those of the budget, which processes cannot share."""
    budget = ArchiveBudget(limit)
    budget.remaining = remaining
    try:
        suite, errors = parse_archive(files[0], listed, budget)
    except Refused as refused:
        return Archive(None, (str(refused),), budget.remaining)
    return Archive(suite, errors, budget.remaining)


def parse_archive(
    file: BinaryIO, listed: frozenset[str], budget: ArchiveBudget
) -> tuple[SuiteOutcomes, tuple[str, ...]]:
    """Return the tests of an archive of JUnit files, and why some of the files could not be read.

    `listed` are the files of the repository at the commit. Inflated bytes are subtracted from the budget. Raises
    `Refused` if no file can be used.
    """
    resolve, errors, count = Resolver(listed).resolve, list[str](), 0

    def read(name: str, stream: BinaryIO) -> Columns | str:
        try:
            # A file in an archive may be compressed once more, which the limit of the archive does not see.
            meter = _Meter(budget)
            packed = inflated(_Counted(stream, meter), name)  # type: ignore[arg-type]  # it is read
            counted = _Counted(packed, meter)
            return collect(readers.read(counted, name, "junit"), resolve)  # type: ignore[arg-type]  # it is read
        except Refused as refused:
            if budget.remaining < 0:
                raise
            return str(refused)

    def readable_reports() -> Iterator[Columns]:
        nonlocal count
        for report in read_zip(file, lambda name: name.lower().endswith(REPORTS), read):
            count += 1
            if isinstance(report, str):
                errors.append(report)
            else:
                yield report

    # Merged one by one, so that memory holds the tests of one run at most, however many files repeat them.
    columns = merge(readable_reports())
    if not count:
        raise Refused(texts.NO_REPORTS.format(suffix=REPORTS[0]))
    seen, seconds = {}, {}
    for test, packed in zip(read_names(columns.names), columns.tests.values(), strict=True):
        status, timed = split(packed)
        seen[test] = SEEN[status]
        if (took := duration(timed)) is not None:
            seconds[test] = took
    return SuiteOutcomes(seen, seconds, complete=not errors), _first_errors(errors)


def _first_errors(errors: Sequence[str]) -> tuple[str, ...]:
    summary = [texts.MORE_WRONG.format(count=len(errors) - MOST_WRONG)] if len(errors) > MOST_WRONG else []
    return (*errors[:MOST_WRONG], *summary)


@dataclass(slots=True)
class _Meter:
    """Subtracts a file's size from a budget: its size before or after inflating it once more, whichever is larger.

    A file that inflates to little still takes work, so the size after inflating is not enough.
    """

    budget: ArchiveBudget
    taken: int = 0

    def take(self, read_count: int) -> None:
        """Subtract what was read of the file; `read_count` bytes so far. Raise `TooMuch` if the budget is spent."""
        self.budget.remaining -= max(0, read_count - self.taken)
        self.taken = max(read_count, self.taken)
        self.budget.check()


@dataclass(slots=True)
class _Counted:
    """A stream that reports the bytes it has returned to a meter."""

    inner: BinaryIO
    meter: _Meter
    read_count: int = 0

    def read(self, size: int = -1) -> bytes:
        """Read bytes, and report them to the meter."""
        piece = self.inner.read(size)
        self.read_count += len(piece)
        self.meter.take(self.read_count)
        return piece
