"""Read runs of plain JUnit cases, which have only a name, a duration, and perhaps the reason of a skip.

Nearly all cases of a report are plain. A pattern finds a run of them in the text of a chunk; expat would make two calls
and an object for each. Cases whose values are not plain are left to expat: see `are_plain`.

This takes a third of expat's time, and returns columns instead of objects. A run starts only where expat has consumed
everything before, between two cases, and outside of CDATA and comments. Values must be printable, without references
and without `<`. So the result is the same: `tests/results/formats/test_case_runs.py` compares both on generated
documents.
"""

from __future__ import annotations

import re  # noqa: TID251  # its type, and to escape a text
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple, Union

from nightjar_formats.limits import MAX_SECONDS
from nightjar_formats.measurements import PROPERTY
from nightjar_formats.model import Case
from nightjar_formats.patterns import possessive

MARK = "<testcase "
LONGEST_VALUE = 1000
"""The most characters of an attribute of a plain case."""
MOST_TIMES = 10_000
"""The most different durations that are cached as numbers."""

# The pattern accepts any value, and `are_plain` checks all values together: a character class here would take five
# times as long.
_VALUE, _SPACE = r'"([^"]++)"', r"[ \t\r\n]*+"
# A skip with a message of `SAYS_NOTHING` does not match: expat has to read its text for the reason.
# Nothing reads properties that are no measurements, nor the output of a test that passed. With them, runs stay long.
_PROPERTIES = (
    rf'(?:<properties>{_SPACE}(?:<property name="(?!{re.escape(PROPERTY)})[^"<&]*+" value="[^"<&]*+" ?/>{_SPACE})*+'
    rf"</properties>{_SPACE})?"
)
_TEXT = r"[^<>&]*+(?:&(?:lt|gt|amp|quot|apos);[^<>&]*+)*+"
_CDATA = r"<!\[CDATA\[[^\]]*+(?:\](?!\]>)[^\]]*+)*+\]\]>"
_OUTPUT = "".join(rf"(?:<system-{stream}>(?:{_CDATA}|{_TEXT})</system-{stream}>{_SPACE})?" for stream in ("out", "err"))
_SKIPPED = (
    r'<skipped((?: type="[^"]++")? message="(?!collection skipped")[^"]++")'
    rf" ?(?:/>|>[^<>&]*+</skipped>){_SPACE}"
)
_REST = rf'(?: time="([0-9.eE+-]++)")? ?(?:/>|>{_SPACE}{_PROPERTIES}(?:{_SKIPPED}|{_OUTPUT})</testcase>)'
# The last alternative matches everything up to the end of the text, so that no match follows a case that is not plain.
_CLASS_FIRST, _NAME_FIRST = (
    possessive(rf"{_SPACE}<testcase {first}={_VALUE} {second}={_VALUE}{_REST}|((?s:.)+)")
    for first, second in (("classname", "name"), ("name", "classname"))
)
_STARTS_WITH_NAME = MARK + 'name="'
_ATTRIBUTE = possessive(r' ([a-z]++)="([^"]++)"')


class Rows(NamedTuple):
    """Consecutive cases, as columns; `kinds` are the attributes of skips. Kinds and times may be ""."""

    classnames: Sequence[str]
    names: Sequence[str]
    times: Sequence[str]
    kinds: Sequence[str]

    def part(self, begin: int, end: int | None = None) -> Rows:
        """Return the cases from `begin` to `end`."""
        return Rows(*(column[begin:end] for column in self))

    @property
    def are_plain(self) -> bool:
        """Whether no value needs expat.

        All are short and printable, without references or `<`, which XML forbids; and no name has an `@`, with which
        the group of pytest-xdist begins.
        """
        other_values = {*self.classnames, *self.kinds}
        names = "".join(self.names)
        values = "".join((names, *other_values))
        if not values.isprintable() or "<" in values or "&" in values or "@" in names:
            return False
        return max(max(map(len, self.names)), max(map(len, other_values))) <= LONGEST_VALUE


class CaseRun:
    """Consecutive cases: columns for the values that differ, and a template for each kind of case for the others.

    The kind of a case is the attributes of its skip, "" for a case that passed.
    """

    __slots__ = ("classnames", "kinds", "names", "templates", "times")

    def __init__(
        self,
        classnames: Sequence[str],
        names: Sequence[str],
        times: Sequence[str],
        kinds: Sequence[str],
        templates: Mapping[str, Case],
    ) -> None:
        self.classnames, self.names, self.times, self.kinds = classnames, names, times, kinds
        self.templates = templates

    def cases(self) -> Iterator[Case]:
        """Yield the cases one by one."""
        new = tuple.__new__
        for classname, name, time, kind in zip(self.classnames, self.names, self.times, self.kinds):
            _, status, _, path, nodeid, line, _, *rest = self.templates[kind]
            yield new(Case, (name, status, classname, path, nodeid, line, seconds_of[time], *rest))


CaseOrRun = Union[Case, CaseRun]


def one_by_one(cases_and_runs: Iterable[CaseOrRun]) -> Iterator[Case]:
    """Yield all cases one by one, including those inside runs."""
    for case_or_run in cases_and_runs:
        if type(case_or_run) is CaseRun:
            yield from case_or_run.cases()
        else:
            yield case_or_run  # type: ignore[misc]


class _SecondsOf(dict[str, "float | None"]):
    """The number of seconds for each text; None if the text is not a valid duration."""

    def __missing__(self, text: str) -> float | None:
        if len(self) >= MOST_TIMES:
            self.clear()
        seconds: float | None
        try:
            seconds = float(text)
        except ValueError:
            seconds = None
        seconds = seconds if seconds is not None and 0 <= seconds <= MAX_SECONDS else None
        self[text] = seconds
        return seconds


seconds_of: Mapping[str, float | None] = _SecondsOf()


def rows_at(text: str, start: int) -> tuple[Rows | None, int]:
    """Return the run of plain cases that begins at `start`, and the position at which it ends."""
    matches = _pattern_at(text, start).findall(text, start)
    rest_length = len(matches.pop()[-1]) if matches and matches[-1][-1] else 0
    if not matches:
        return None, start
    first, second, times, kinds, _ = zip(*matches)
    classnames, names = (second, first) if text.startswith(_STARTS_WITH_NAME, start) else (first, second)
    return Rows(classnames, names, times, kinds), len(text) - rest_length


def spans(text: str, start: int, end: int) -> Iterator[tuple[int, int]]:
    """Yield the start and the end of each case between `start` and `end`."""
    return (case.span() for case in _pattern_at(text, start).finditer(text, start, end))


def _pattern_at(text: str, start: int) -> re.Pattern[str]:
    return _NAME_FIRST if text.startswith(_STARTS_WITH_NAME, start) else _CLASS_FIRST


def skip_of(kind: str) -> dict[str, str]:
    """Parse the attributes of a skip."""
    return dict(_ATTRIBUTE.findall(kind))
