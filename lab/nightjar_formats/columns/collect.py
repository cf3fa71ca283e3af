"""Fold the cases of a file into one outcome for each test, and the files of a run into one, in little memory.

A suite may have 300,000 tests.
"""

from __future__ import annotations

import hashlib
import json
from array import array
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from io import BytesIO
from itertools import chain, compress, groupby, islice
from typing import Any, NamedTuple

from nightjar_formats import zstd
from nightjar_formats.columns import BOUNDS, CODES, FLAKY, STATUS_BYTES, duration_code, texts
from nightjar_formats.columns.attempts import AttemptGroups, worse
from nightjar_formats.columns.text_packs import LEVEL, TextPack, TextPacker
from nightjar_formats.items import first_of
from nightjar_formats.limits import MAX_MESSAGE, MAX_NAME, MAX_RUN_MEASUREMENTS, MAX_TESTS, MAX_TEXT_HEAD, MAX_TEXT_TAIL
from nightjar_formats.measurements import TOO_MANY_OF_RUN, Measurement, count_numbers
from nightjar_formats.model import BAD, Case, Status, Trouble
from nightjar_formats.readers.causes import cause, distinguishing_line, failure_cause
from nightjar_formats.readers.junit.case_runs import MOST_TIMES, CaseOrRun, CaseRun, one_by_one, seconds_of
from nightjar_formats.refused import Refused, TooMuch

CUT_MESSAGE = "…"
IN_ID = "@"
"""The value of `Reason.path` if the path is the beginning of the test's ID."""

PIECE = 4096
"""The number of cases whose names are held as text at once."""
PIECE_BYTES = 1 << 17

_BAD = frozenset(CODES[status] for status in BAD)

# One object for each value that a test can have: numbers of their own would be 32 bytes for each of 300,000 tests.
_PACKED = tuple(range(256 * STATUS_BYTES))

Resolve = Callable[[Case], tuple[str, str]]
HeadOf = Callable[[str], str]
"""Returns the part of an ID before the test's own name, for a class."""


class Reason(NamedTuple):
    """Why a test did not simply pass; tests with the same reason share one object.

    `text` is the number of the failure's text, 0 for none. `path`, which may be IN_ID, and `line` say where the
    annotation of a failed test goes; other tests have none. `measures` is JSON, or empty.
    """

    trouble: Trouble = Trouble.NONE
    message: str = ""
    text: int = 0
    path: str = ""
    line: int | None = None
    measures: str = ""


@dataclass
class Columns:
    """The tests of a file or of a run, each once, for this process alone.

    `names`: the test IDs, compressed. The other fields have the IDs' hashes instead, because 300,000 IDs take 50 MB. A
    hash has 64 bits and a key of this process, so two of 300,000 tests collide in one of 400 million such runs.
    `tests`: in the order of the names, the packed status byte and duration code of each test, which `split` separates.
    `reasons`: for each test that did not simply pass, the number of its reason; `whys` numbers the reasons.
    `texts`: the number of each failure's text by its SHA-256. Numbers count from 1, in the order of the texts in
    `packs`, which may contain a text twice.
    `lines`: for the numbers of some reasons, the line of the text that says more than the message.
    `measurements`: for each test that has some, what it measured.
    """

    names: list[bytes] = field(default_factory=list)
    tests: dict[int, int] = field(default_factory=dict)
    reasons: dict[int, int] = field(default_factory=dict)
    whys: dict[Reason, int] = field(default_factory=dict)
    texts: dict[bytes, int] = field(default_factory=dict)
    packs: list[TextPack] = field(default_factory=list)
    lines: dict[int, str] = field(default_factory=dict)
    measurements: dict[int, tuple[Measurement, ...]] = field(default_factory=dict)

    def __len__(self) -> int:
        """Return how many tests there are."""
        return len(self.tests)

    def __getstate__(self) -> tuple[object, ...]:
        """Return the state with positions instead of hashes, which mean nothing in another process."""
        place = {key: number for number, key in enumerate(self.tests)}
        return (
            self.names,
            array("H", self.tests.values()).tobytes(),
            {place[key]: reason for key, reason in self.reasons.items()},
            self.whys,
            self.texts,
            self.packs,
            self.lines,
            {place[key]: measurements for key, measurements in self.measurements.items()},
        )

    def __setstate__(self, state: tuple[Any, ...]) -> None:
        """Restore the state with the hashes of this process."""
        self.names, tests, reasons, self.whys, self.texts, self.packs, self.lines, measurements = state
        keys = [hash(name) for name in read_names(self.names)]
        numbers = memoryview(tests).cast("H")
        if len(numbers) != len(keys):
            raise ValueError(len(numbers), len(keys))
        self.tests = {key: _PACKED[packed] for key, packed in zip(keys, numbers)}
        if len(self.tests) < len(keys):
            raise Refused(texts.SAME_NAME)
        self.reasons = {keys[number]: reason for number, reason in reasons.items()}
        self.measurements = {keys[number]: measured for number, measured in measurements.items()}


def split(packed: int) -> tuple[int, int]:
    """Return a test's status byte and the number of its duration."""
    return packed % STATUS_BYTES, packed // STATUS_BYTES


def collect(cases: Iterable[CaseOrRun], resolve: Resolve, head_of: HeadOf | None = None) -> Columns:
    """Combine the cases of one file.

    `resolve` returns a case's test ID, and its path in the repository or "". With `head_of`, runs of cases are combined
    at once, which is faster. If several cases have one ID, the worst counts, as it does for several files. But if they
    are attempts at one test, in one group: if any is bad, the first bad one counts, because pytest writes a failed
    attempt that was rerun as if it had passed; if all are good, the test is flaky; if some were skipped, the others
    count. Raises whatever the iterator of the cases raises.
    """
    columns = Columns()
    attempts = AttemptGroups()
    texts = TextPacker()
    names = NamesWriter()
    for kind, consecutive in groupby(cases if head_of else one_by_one(cases), type):
        if kind is CaseRun and head_of:
            for run in consecutive:
                new = _fold_run(columns, attempts, run, head_of)  # type: ignore[arg-type]  # of that type
                names.write(_fold(columns, attempts, texts, run.cases(), resolve)[0] if new is None else new)  # type: ignore[union-attr]
            continue
        remaining, count = iter(consecutive), PIECE
        while count == PIECE:
            folded, count = _fold(columns, attempts, texts, islice(remaining, PIECE), resolve)  # type: ignore[arg-type]
            names.write(folded)
    columns.names.append(names.finish())
    columns.packs = texts.finish()
    return columns


def _fold_run(columns: Columns, attempts: AttemptGroups, run: CaseRun, head_of: HeadOf) -> list[str] | None:
    """Combine a run of cases at once, and return their names; None if they have to be combined one by one."""
    reasons: dict[str, Reason] = {}
    packed_of: dict[str, Mapping[str, int]] = {}
    for kind in dict.fromkeys(run.kinds):
        template = run.templates[kind]
        if (
            template.status in BAD
            or template.path
            or template.text
            or template.measures
            or template.measurements
            or template.flaky
            or bool(kind) is not bool(template.message)
        ):
            return None
        packed_of[kind] = _PACKED_OF_TIME[template.status]
        if kind:
            reasons[kind] = Reason(template.trouble, _cut_message(template.message))
    heads = {classname: head_of(classname) for classname in set(run.classnames)}
    if len(heads) == 1:
        names = [*map(first_of(heads.values()).__add__, run.names)]
    else:
        names = [heads[classname] + name for classname, name in zip(run.classnames, run.names)]
    keys = list(map(hash, names))
    tests, count = columns.tests, len(columns.tests)
    if max(map(len, names)) > MAX_NAME or not tests.keys().isdisjoint(keys):
        return None
    attempts.begin(template.attempt, tests)
    tests.update(zip(keys, [packed_of[kind][time] for kind, time in zip(run.kinds, run.times)]))
    if len(tests) - count < len(keys):  # a test is there twice
        for key in set(keys):
            del tests[key]
        return None
    if attempts.own is not None:
        attempts.own.update((key, tests[key]) for key in keys)
    if reasons:  # numbered only now: a run that is folded one by one may need fewer of them, in another order
        number_of = {kind: columns.whys.setdefault(why, len(columns.whys)) for kind, why in reasons.items()}
        columns.reasons.update(zip(compress(keys, run.kinds), map(number_of.__getitem__, filter(None, run.kinds))))
    return names


class _PackedOfTime(dict[str, int]):
    """The packed numbers of tests with one status, by the text of their duration in the report."""

    def __init__(self, code: int) -> None:
        super().__init__()
        self._code = code

    def __missing__(self, time: str) -> int:
        if len(self) >= MOST_TIMES:
            self.clear()
        packed = self[time] = _PACKED[self._code + STATUS_BYTES * duration_code(seconds_of[time])]
        return packed


_PACKED_OF_TIME = {status: _PackedOfTime(code) for status, code in CODES.items()}


def _fold(
    columns: Columns, attempts: AttemptGroups, texts: TextPacker, cases: Iterable[Case], resolve: Resolve
) -> tuple[list[str], int]:
    """Combine cases with `columns`. Return the names of tests that are new there, and the number of cases."""
    tests, reasons, packed_of, code_of, bounds = columns.tests, columns.reasons, _PACKED, CODES, BOUNDS
    passed, case_count = CODES[Status.PASSED], 0
    names: list[str] = []
    reason_of_message: dict[str, int] = {}  # thousands of tests may be skipped for one reason
    for case_count, case in enumerate(cases, 1):  # noqa: B007  # returned below
        # All fields at once, because this loop runs for each of millions of cases.
        _, status, _, _, _, _, seconds, flaky, trouble, message, text, measures, attempt, _, measurements = case
        test_id, path = resolve(case)
        code = packed = code_of[status]
        if flaky:
            packed += FLAKY
        if seconds is not None:
            packed += STATUS_BYTES + STATUS_BYTES * bisect_right(bounds, seconds)
        key = hash(test_id)
        replaces = True
        if attempt != attempts.group:
            attempts.begin(attempt, tests)
        if key in tests:
            packed, replaces = attempts.fold(tests, key, packed)
            if replaces:
                reasons.pop(key, None)  # of the outcome that this case replaces
        else:
            names.append(test_id)
            if attempts.own is not None:
                attempts.own[key] = packed
        tests[key] = packed_of[packed]  # the same number, as one object for all tests that have it
        if measurements and (replaces or key not in columns.measurements):
            columns.measurements[key] = measurements
        if code == passed and not (message or text or measures or trouble):
            continue
        if replaces:
            is_message_only = code not in _BAD and not (text or measures or trouble)
            if is_message_only and message in reason_of_message:
                reasons[key] = reason_of_message[message]
            else:
                _explain(columns, texts, key, test_id, path, case)
                if is_message_only and message:
                    reason_of_message[message] = reasons[key]
    return names, case_count


class NamesWriter:
    """Compresses names as they arrive, one line for each."""

    def __init__(self) -> None:
        self._compressor = zstd.ZstdCompressor(level=LEVEL)
        self._parts: list[bytes] = []
        self._waiting: list[str] = []

    def write(self, names: Iterable[str]) -> None:
        """Add names."""
        self._waiting += names
        if len(self._waiting) >= PIECE:
            self._flush()

    def _flush(self) -> None:
        names, self._waiting = self._waiting, []
        if names:
            text = "\n".join(names)
            if text.count("\n") >= len(names):
                text = "\n".join(name.replace("\n", "\\n") for name in names)
            self._parts.append(self._compressor.compress((text + "\n").encode("utf-8", "surrogatepass")))

    def finish(self) -> bytes:
        """Return all names, compressed."""
        self._flush()
        return b"".join((*self._parts, self._compressor.flush()))


def read_names(blobs: Iterable[bytes]) -> Iterator[str]:
    """Yield the names in compressed blobs, in order, without ever holding all of them."""
    return chain.from_iterable(_pieces(blobs))


def _pieces(blobs: Iterable[bytes]) -> Iterator[list[str]]:
    for blob in blobs:
        rest = b""
        with zstd.ZstdFile(BytesIO(blob)) as reader:
            while piece := reader.read(PIECE_BYTES):
                lines, ended, rest = (rest + piece).rpartition(b"\n")
                if ended:
                    yield lines.decode("utf-8", "surrogatepass").split("\n")


def merge(files: Iterable[Columns]) -> Columns:
    """Merge the files of one run into the columns of its first file, and return them.

    The worse status of a test counts, and the first file if two are equal. Failures with one message and different
    texts get a line of their text in the message. Raises `TooMuch` if there are more than MAX_TESTS tests or
    MAX_RUN_MEASUREMENTS numbers.
    """
    remaining = iter(files)
    merged = next(remaining, None)
    if merged is None:
        return Columns()
    for columns in remaining:
        text_count = sum(pack.size for pack in merged.packs)
        merged.packs += columns.packs
        for digest, number in columns.texts.items():
            merged.texts.setdefault(digest, text_count + number)
        names = NamesWriter()
        names.write([name for name in read_names(columns.names) if hash(name) not in merged.tests])
        merged.names.append(names.finish())
        new_text_numbers = {number: merged.texts[digest] for digest, number in columns.texts.items()} | {0: 0}
        file_reasons = [reason._replace(text=new_text_numbers[reason.text]) for reason in columns.whys]
        for key, file_packed in columns.tests.items():
            packed, counts = worse(merged.tests[key], file_packed) if key in merged.tests else (file_packed, True)
            merged.tests[key] = _PACKED[packed]
            if counts:
                merged.reasons.pop(key, None)
                if (number_in_file := columns.reasons.get(key)) is not None:
                    number = merged.whys.setdefault(file_reasons[number_in_file], len(merged.whys))
                    merged.reasons[key] = number
                    if number_in_file in columns.lines:
                        merged.lines[number] = columns.lines[number_in_file]
        _merge_measurements(merged.measurements, columns.measurements)
        if len(merged) > MAX_TESTS:
            raise TooMuch(texts.TOO_MANY_TESTS)
    _distinguish(merged)
    return merged


def _merge_measurements(
    merged: dict[int, tuple[Measurement, ...]], file: Mapping[int, tuple[Measurement, ...]]
) -> None:
    """Add the measurements of a further file; of two with one name, that of the earlier file counts."""
    for key, measurements in file.items():
        names = {measurement.name for measurement in merged.get(key, ())}
        merged[key] = merged.get(key, ()) + tuple(
            measurement for measurement in measurements if measurement.name not in names
        )
    if sum(map(count_numbers, merged.values())) > MAX_RUN_MEASUREMENTS:
        raise TooMuch(TOO_MANY_OF_RUN)


def _distinguish(columns: Columns) -> None:
    """Add the line of the text to the messages of failures that have one message and different lines."""
    reasons = list(columns.whys)
    causes: dict[str, set[str]] = {}
    for number, line in columns.lines.items():
        causes.setdefault(reasons[number].message, set()).add(failure_cause(line))
    for number, line in columns.lines.items():
        message = reasons[number].message
        if len(causes[message]) > 1:
            reasons[number] = reasons[number]._replace(message=_cut_message(f"{message}: {line}"))
    numbered = {reason: number for number, reason in enumerate(reasons)}
    if len(numbered) == len(reasons):  # if two became equal, the numbers would no longer be positions
        columns.whys, columns.lines = numbered, {}


def _explain(columns: Columns, texts: TextPacker, key: int, test_id: str, path: str, case: Case) -> None:
    """Store the reason of a case that did not simply pass, and its text."""
    text, message, line_of_text = case.text, case.message, ""
    if case.status not in BAD:
        path, line = "", None
        if not (message or text or case.measures or case.trouble):
            columns.reasons.pop(key, None)
            return
    else:
        message = cause(message, text)
        line_of_text = distinguishing_line(message, text)
        # Without a path, the failure is in a file outside the repository, and the line belongs to that file.
        line = case.line if path or not case.failure_path else None
    number = 0
    if text:
        cut = _cut(text).encode("utf-8", "surrogatepass")
        digest = hashlib.sha256(cut).digest()
        number = columns.texts.get(digest, 0)
        if not number:
            texts.add(cut)
            number = columns.texts[digest] = len(columns.texts) + 1
    message = _cut_message(message)
    if path and begins_with(test_id, path):
        path = IN_ID
    measures = json.dumps(case.measures, sort_keys=True, separators=(",", ":")) if case.measures else ""
    reason = Reason(case.trouble, message, number, path, line, measures)
    columns.reasons[key] = reason_number = columns.whys.setdefault(reason, len(columns.whys))
    if line_of_text:
        columns.lines[reason_number] = line_of_text


def _cut_message(message: str) -> str:
    return message if len(message) <= MAX_MESSAGE else message[: MAX_MESSAGE - 1] + CUT_MESSAGE


def begins_with(test_id: str, path: str) -> bool:
    """Return whether a test's ID begins with a path, as pytest's do."""
    return test_id == path or test_id.startswith(path + "::")


def _cut(text: str) -> str:
    count = len(text) - MAX_TEXT_HEAD - MAX_TEXT_TAIL
    if count <= 0:
        return text
    return text[:MAX_TEXT_HEAD] + texts.LEFT_OUT.format(count=count) + text[-MAX_TEXT_TAIL:]
