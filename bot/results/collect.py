"""Fold the cases of a file to one verdict per test, and the files of a run to one: lean, for there may be 300,000."""

from __future__ import annotations

import hashlib
import json
from bisect import bisect_right
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import NamedTuple

import zstandard

from bot.results.columns import BOUNDS, CODES, FLAKY, STATUS_BITS, STATUS_BYTES
from bot.results.limits import MAX_MESSAGE, MAX_TEXT_HEAD, MAX_TEXT_TAIL
from bot.results.model import BAD, Case, Status, Trouble

LEFT_OUT = "\n… {count:,} characters left out …\n"
CUT_MESSAGE = "…"
IN_ID = "@"
"""Stands for the path with which the test's ID begins."""
LEVEL = 3
"""Of compression: more takes longer and saves next to nothing, measured on real failures' texts."""

_SEVERITY = ("skipped", "xfailed", "passed", "xpassed", "errored", "failed")
_RANK = {CODES[Status(word)]: rank for rank, word in enumerate(_SEVERITY)}
_BAD = frozenset(CODES[status] for status in BAD)
_GOOD = frozenset(CODES[status] for status in (Status.PASSED, Status.XFAILED, Status.XPASSED))

# One object for each value that a test can have: numbers of their own would be 32 bytes for each of 300,000 tests.
_PACKED = tuple(range(256 * STATUS_BYTES))

Resolve = Callable[[Case], tuple[str, str]]


class Reason(NamedTuple):
    """Why a test did not simply pass: one for all tests that say the same.

    `text` is the SHA-256 of the failure's text, or empty. `path` may be IN_ID. `measures` is JSON, or empty.
    """

    trouble: Trouble = Trouble.NONE
    message: str = ""
    text: bytes = b""
    path: str = ""
    line: int | None = None
    measures: str = ""


@dataclass(slots=True)
class Columns:
    """The tests of a file or of a run, each once.

    `tests` holds by ID what `split` takes apart: the status byte and the number of the duration. `reasons` says of
    those that did not simply pass which of `whys` it is. `texts` are failures' texts by SHA-256, compressed.
    """

    tests: dict[str, int] = field(default_factory=dict)
    reasons: dict[str, int] = field(default_factory=dict)
    whys: dict[Reason, int] = field(default_factory=dict)
    texts: dict[bytes, bytes] = field(default_factory=dict)

    def __len__(self) -> int:
        """Return how many tests there are."""
        return len(self.tests)


def split(packed: int) -> tuple[int, int]:
    """Return a test's status byte and the number of its duration."""
    return packed % STATUS_BYTES, packed // STATUS_BYTES


def collect(cases: Iterable[Case], resolve: Resolve) -> Columns:
    """Fold the cases of one file.

    `resolve` gives a case's test ID and its path in the repository, or "". Several cases with one ID are attempts at
    one test: if any is bad, the first bad one counts, for pytest writes an attempt that failed and was run again as if
    it had passed; if all are good, the test is flaky; if some were skipped, the others count. What the reader of the
    cases raises, this raises.
    """
    columns = Columns()
    compressor = zstandard.ZstdCompressor(level=LEVEL)
    tests, packed_of, code_of, bounds = columns.tests, _PACKED, CODES, BOUNDS
    passed = CODES[Status.PASSED]
    for case in cases:
        _, status, _, _, _, _, seconds, flaky, trouble, message, text, measures = case
        test_id, path = resolve(case)
        if "\n" in test_id:  # which parts the names where they are stored
            test_id = test_id.replace("\n", "\\n")
        code = code_of[status]
        packed = code
        if flaky:
            packed += FLAKY
        if seconds is not None:
            packed += STATUS_BYTES + STATUS_BYTES * bisect_right(bounds, seconds)
        counts = True
        if test_id in tests:
            packed, counts = _attempts(tests[test_id], packed)
        tests[test_id] = packed_of[packed]
        if counts and (code != passed or message or text or measures or trouble):
            _explain(columns, compressor, test_id, path, case)
    return columns


def merge(files: Iterable[Columns]) -> Columns:
    """Merge the files of one run: the worse status counts, and the first file where two are equal.

    The first one's columns are taken as they are, and grow.
    """
    every = iter(files)
    into = next(every, None)
    if into is None:
        return Columns()
    for columns in every:
        into.texts.update(columns.texts)
        whys = list(columns.whys)
        for test_id, packed in columns.tests.items():
            counts = True
            if test_id in into.tests:
                packed, counts = _worse(into.tests[test_id], packed)
            into.tests[test_id] = _PACKED[packed]
            if counts:
                into.reasons.pop(test_id, None)
                if (number := columns.reasons.get(test_id)) is not None:
                    into.reasons[test_id] = into.whys.setdefault(whys[number], len(into.whys))
    return into


def _attempts(before: int, now: int) -> tuple[int, bool]:
    """Fold two attempts; the second value tells whether the later one is the one that counts."""
    one, other = before & STATUS_BITS, now & STATUS_BITS
    if one in _BAD or other in _BAD:
        # Attempts that looked passed were no passes, so what they made flaky is not.
        packed, later = _joined(before, now, later=one not in _BAD)
        return packed & ~FLAKY | (now if later else before) & FLAKY, later
    packed, later = _joined(before, now, later=other in _GOOD or one == other)
    return (packed | FLAKY if one in _GOOD and other in _GOOD else packed), later


def _worse(before: int, now: int) -> tuple[int, bool]:
    return _joined(before, now, later=_RANK[now & STATUS_BITS] > _RANK[before & STATUS_BITS])


def _joined(before: int, now: int, *, later: bool) -> tuple[int, bool]:
    status = (now if later else before) & STATUS_BITS
    duration = max(before // STATUS_BYTES, now // STATUS_BYTES)
    return status | (before | now) & FLAKY | duration * STATUS_BYTES, later


def _explain(columns: Columns, compressor: zstandard.ZstdCompressor, test_id: str, path: str, case: Case) -> None:
    bad = case.status in BAD
    if not (bad or case.message or case.text or case.measures or case.trouble):
        columns.reasons.pop(test_id, None)
        return
    digest = b""
    if case.text:
        text = _cut(case.text).encode("utf-8", "surrogatepass")
        digest = hashlib.sha256(text).digest()
        if digest not in columns.texts:
            columns.texts[digest] = compressor.compress(text)
    reason = Reason(
        case.trouble,
        case.message if len(case.message) <= MAX_MESSAGE else case.message[: MAX_MESSAGE - 1] + CUT_MESSAGE,
        digest,
        IN_ID if path and begins_with(test_id, path) else path,
        case.line if bad else None,  # annotations are for what failed; others would each need a reason of their own
        json.dumps(case.measures, sort_keys=True, separators=(",", ":")) if case.measures else "",
    )
    columns.reasons[test_id] = columns.whys.setdefault(reason, len(columns.whys))


def begins_with(test_id: str, path: str) -> bool:
    """Tell whether a test's ID begins with a path, as pytest's do."""
    return test_id == path or test_id.startswith(path + "::")


def _cut(text: str) -> str:
    count = len(text) - MAX_TEXT_HEAD - MAX_TEXT_TAIL
    if count <= 0:
        return text
    return text[:MAX_TEXT_HEAD] + LEFT_OUT.format(count=count) + text[-MAX_TEXT_TAIL:]
