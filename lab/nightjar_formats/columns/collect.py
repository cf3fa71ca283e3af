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
from itertools import chain, compress, groupby, islice
from typing import Any, NamedTuple

import zstandard

from nightjar_formats.columns import BOUNDS, CODES, FLAKY, STATUS_BYTES, duration_code, texts
from nightjar_formats.columns.attempts import AttemptGroups, worse
from nightjar_formats.columns.text_packs import LEVEL, TextPack, TextPacker
from nightjar_formats.items import first_of
from nightjar_formats.limits import MAX_MESSAGE, MAX_NAME, MAX_TESTS, MAX_TEXT_HEAD, MAX_TEXT_TAIL
from nightjar_formats.model import BAD, Case, Status, Trouble
from nightjar_formats.readers.case_runs import MOST_TIMES, CaseOrRun, CaseRun, one_by_one, seconds_of
from nightjar_formats.readers.causes import cause, distinguishing_line, failure_cause
from nightjar_formats.refused import Refused, TooMuch

CUT_MESSAGE = "…"
IN_ID = "@"
"""Stands for the path at the start of the test's ID."""

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

    `text` is the number of the failure's text, 0 for none. `path`, which may be IN_ID, and `line` are stored of tests
    that failed: there annotations stand. `measures` is JSON, or empty.
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

    `names` are the test IDs, compressed. Their hashes stand for them elsewhere, as 300,000 IDs are 50 MB: 64 bits with
    a key of the process's own, so that two of as many tests are taken for one in one of 400 million such runs. `tests`
    holds, in the order of the names, what `split` takes apart: the status byte and the number of the duration.
    `reasons` says about those that did not simply pass which of `whys` it is. `texts` numbers failures' texts by their
    SHA-256, from 1 on: their places in `packs`, which may have texts besides that are there twice. `lines` has, for the
    numbers of some `whys`, what the text says besides the message.
    """

    names: list[bytes] = field(default_factory=list)
    tests: dict[int, int] = field(default_factory=dict)
    reasons: dict[int, int] = field(default_factory=dict)
    whys: dict[Reason, int] = field(default_factory=dict)
    texts: dict[bytes, int] = field(default_factory=dict)
    packs: list[TextPack] = field(default_factory=list)
    lines: dict[int, str] = field(default_factory=dict)

    def __len__(self) -> int:
        """Return how many tests there are."""
        return len(self.tests)

    def __getstate__(self) -> tuple[object, ...]:
        """Return the state without hashes, which mean nothing in another process; places stand for the tests."""
        place = {key: number for number, key in enumerate(self.tests)}
        reasons = {place[key]: why for key, why in self.reasons.items()}
        return (
            self.names,
            array("H", self.tests.values()).tobytes(),
            reasons,
            self.whys,
            self.texts,
            self.packs,
            self.lines,
        )

    def __setstate__(self, state: tuple[Any, ...]) -> None:
        """Restore the state with the hashes of this process."""
        self.names, tests, reasons, self.whys, self.texts, self.packs, self.lines = state
        keys = [hash(name) for name in read_names(self.names)]
        numbers = memoryview(tests).cast("H")
        if len(numbers) != len(keys):
            raise ValueError(len(numbers), len(keys))
        self.tests = {key: _PACKED[packed] for key, packed in zip(keys, numbers)}
        if len(self.tests) < len(keys):
            raise Refused(texts.SAME_NAME)
        self.reasons = {keys[number]: why for number, why in reasons.items()}


def split(packed: int) -> tuple[int, int]:
    """Return a test's status byte and the number of its duration."""
    return packed % STATUS_BYTES, packed // STATUS_BYTES


def collect(cases: Iterable[CaseOrRun], resolve: Resolve, head_of: HeadOf | None = None) -> Columns:
    """Fold the cases of one file.

    `resolve` gives a case's test ID and its path in the repository, or ""; `head_of` makes runs of cases quicker. Of
    several cases with one ID the worst counts, as of several files. But where they are attempts at one test, in one
    group, the first bad one counts if any is bad, for pytest writes an attempt that failed and was run again as if it
    had passed; if all are good, the test is flaky; if some were skipped, the others count. What the reader of the cases
    raises, this raises.
    """
    columns = Columns()
    attempts = AttemptGroups()
    texts = TextPacker()
    names = NamesWriter()
    for kind, some in groupby(cases if head_of else one_by_one(cases), type):
        if kind is CaseRun and head_of:
            for run in some:
                new = _fold_run(columns, attempts, run, head_of)  # type: ignore[arg-type]  # of that type
                names.write(_fold(columns, attempts, texts, run.cases(), resolve)[0] if new is None else new)  # type: ignore[union-attr]
            continue
        those, count = iter(some), PIECE
        while count == PIECE:
            folded, count = _fold(columns, attempts, texts, islice(those, PIECE), resolve)  # type: ignore[arg-type]
            names.write(folded)
    columns.names.append(names.finish())
    columns.packs = texts.finish()
    return columns


def _fold_run(columns: Columns, attempts: AttemptGroups, run: CaseRun, head_of: HeadOf) -> list[str] | None:
    """Fold a run of cases all at once, and return their names; None where it has to be done one by one."""
    reasons: dict[str, Reason] = {}
    packed_of: dict[str, Mapping[str, int]] = {}
    for kind in dict.fromkeys(run.kinds):
        like = run.templates[kind]
        if (
            like.status in BAD
            or like.path
            or like.text
            or like.measures
            or like.flaky
            or bool(kind) is not bool(like.message)
        ):
            return None
        packed_of[kind] = _PACKED_OF_TIME[like.status]
        if kind:
            reasons[kind] = Reason(like.trouble, _cut_message(like.message))
    heads = {classname: head_of(classname) for classname in set(run.classnames)}
    if len(heads) == 1:
        names = [*map(first_of(heads.values()).__add__, run.names)]
    else:
        names = [heads[classname] + name for classname, name in zip(run.classnames, run.names)]
    keys = list(map(hash, names))
    tests, count = columns.tests, len(columns.tests)
    if max(map(len, names)) > MAX_NAME or not tests.keys().isdisjoint(keys):
        return None
    attempts.begin(like.attempt, tests)
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
    """Packed numbers of tests that ended in one way, by the text that stands for their duration."""

    def __init__(self, code: int) -> None:
        super().__init__()
        self._code = code

    def __missing__(self, time: str) -> int:
        if len(self) >= MOST_TIMES:
            self.clear()
        found = self[time] = _PACKED[self._code + STATUS_BYTES * duration_code(seconds_of[time])]
        return found


_PACKED_OF_TIME = {status: _PackedOfTime(code) for status, code in CODES.items()}


def _fold(
    columns: Columns, attempts: AttemptGroups, texts: TextPacker, cases: Iterable[Case], resolve: Resolve
) -> tuple[list[str], int]:
    """Fold some cases; return the new names among them, and how many cases there were."""
    tests, reasons, packed_of, code_of, bounds = columns.tests, columns.reasons, _PACKED, CODES, BOUNDS
    passed, count = CODES[Status.PASSED], 0
    names: list[str] = []
    known: dict[str, int] = {}  # thousands of tests may be skipped for one reason
    for count, case in enumerate(cases, 1):  # noqa: B007  # the caller reads it
        _, status, _, _, _, _, seconds, flaky, trouble, message, text, measures, attempt, _ = case
        test_id, path = resolve(case)
        code = packed = code_of[status]
        if flaky:
            packed += FLAKY
        if seconds is not None:
            packed += STATUS_BYTES + STATUS_BYTES * bisect_right(bounds, seconds)
        key = hash(test_id)
        counts = True
        if attempt != attempts.group:
            attempts.begin(attempt, tests)
        if key in tests:
            packed, counts = attempts.fold(tests, key, packed)
        else:
            names.append(test_id)
            if attempts.own is not None:
                attempts.own[key] = packed
        tests[key] = packed_of[packed]
        if code == passed and not (message or text or measures or trouble):
            continue
        if counts:
            is_short = code not in _BAD and not (text or measures or trouble)
            if is_short and message in known:
                reasons[key] = known[message]
            else:
                _explain(columns, texts, key, test_id, path, case)
                if is_short and message:
                    known[message] = reasons[key]
    return names, count


class NamesWriter:
    """Compresses names as they arrive, one line for each."""

    def __init__(self) -> None:
        self._compressor = zstandard.ZstdCompressor(level=LEVEL).compressobj()
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
    """Yield the names that stand in blobs, in order, without ever holding all of them."""
    return chain.from_iterable(_pieces(blobs))


def _pieces(blobs: Iterable[bytes]) -> Iterator[list[str]]:
    for blob in blobs:
        rest = b""
        with zstandard.ZstdDecompressor().stream_reader(blob, read_across_frames=True) as reader:
            while piece := reader.read(PIECE_BYTES):
                lines, ended, rest = (rest + piece).rpartition(b"\n")
                if ended:
                    yield lines.decode("utf-8", "surrogatepass").split("\n")


def merge(files: Iterable[Columns]) -> Columns:
    """Merge the files of one run: the worse status counts, and the first file where two are equal.

    Failures with one message and different texts get a line of their text as well. The first one's columns are taken as
    they are, and grow. Raises `TooMuch` where that are more than MAX_TESTS.
    """
    every = iter(files)
    into = next(every, None)
    if into is None:
        return Columns()
    for columns in every:
        before = sum(pack.size for pack in into.packs)
        into.packs += columns.packs
        for digest, place in columns.texts.items():
            into.texts.setdefault(digest, before + place)
        names = NamesWriter()
        names.write([name for name in read_names(columns.names) if hash(name) not in into.tests])
        into.names.append(names.finish())
        places = {place: into.texts[digest] for digest, place in columns.texts.items()} | {0: 0}
        whys = [why._replace(text=places[why.text]) for why in columns.whys]
        for key, now in columns.tests.items():
            packed, counts = worse(into.tests[key], now) if key in into.tests else (now, True)
            into.tests[key] = _PACKED[packed]
            if counts:
                into.reasons.pop(key, None)
                if (number := columns.reasons.get(key)) is not None:
                    into.reasons[key] = place = into.whys.setdefault(whys[number], len(into.whys))
                    if number in columns.lines:
                        into.lines[place] = columns.lines[number]
        if len(into) > MAX_TESTS:
            raise TooMuch(texts.TOO_MANY_TESTS)
    _distinguish(into)
    return into


def _distinguish(columns: Columns) -> None:
    """Add the line of the text to the messages of failures that have one message and different lines."""
    whys = list(columns.whys)
    causes: dict[str, set[str]] = {}
    for number, line in columns.lines.items():
        causes.setdefault(whys[number].message, set()).add(failure_cause(line))
    for number, line in columns.lines.items():
        message = whys[number].message
        if len(causes[message]) > 1:
            whys[number] = whys[number]._replace(message=_cut_message(f"{message}: {line}"))
    numbered = {why: number for number, why in enumerate(whys)}
    if len(numbered) == len(whys):  # the numbers are places
        columns.whys, columns.lines = numbered, {}


def _explain(columns: Columns, texts: TextPacker, key: int, test_id: str, path: str, case: Case) -> None:
    text, message, line_of_text = case.text, case.message, ""
    if case.status not in BAD:
        path, line = "", None
        if not (message or text or case.measures or case.trouble):
            columns.reasons.pop(key, None)
            return
    else:
        message = cause(message, text)
        line_of_text = distinguishing_line(message, text)
        # A line means nothing without its file, which is not the repository's.
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
    columns.reasons[key] = why = columns.whys.setdefault(reason, len(columns.whys))
    if line_of_text:
        columns.lines[why] = line_of_text


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
