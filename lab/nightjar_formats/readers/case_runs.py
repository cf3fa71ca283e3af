"""Test cases of JUnit that follow each other and say nothing but names, durations, and why they were skipped.

Those are nearly all of a report. A pattern finds a run of them in the text of a chunk, where expat would make two calls
and an object of each. What it finds is well-formed by itself, or is left to expat: see `is_plain`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Union

from nightjar_formats.limits import MAX_SECONDS
from nightjar_formats.model import Case
from nightjar_formats.patterns.possessive import possessive

MARK = "<testcase "
LONGEST_VALUE = 1000
"""Characters of an attribute of such a case."""
MOST_TIMES = 10_000
"""Different durations that are remembered as numbers."""

# Values are checked together, once they are found: a class of more than one character takes five times as long.
_VALUE, _SPACE = r'"([^"]++)"', r"[ \t\r\n]*+"
# The text of a skip stands for its message where that says nothing (`SAYS_NOTHING`).
_SKIPPED = (
    r'<skipped((?: type="[^"]++")? message="(?!collection skipped")[^"]++")'
    rf" ?(?:/>|>[^<>&]*+</skipped>){_SPACE}"
)
_REST = rf'(?: time="([0-9.eE+-]++)")? ?(?:/>|>{_SPACE}(?:{_SKIPPED})?</testcase>)'
# What is no such case is matched up to the end of the text, so that no match follows.
_CLASS_FIRST, _NAME_FIRST = (
    possessive(rf"({_SPACE}<testcase {first}={_VALUE} {second}={_VALUE}{_REST})|(?s:.)+")
    for first, second in (("classname", "name"), ("name", "classname"))
)
_STARTS_WITH_NAME = MARK + 'name="'
_ATTRIBUTE = possessive(r' ([a-z]++)="([^"]++)"')

Row = tuple[str, str, str, str, str]
"""A case's own text, class, name, duration, and the attributes of its skip; the last two may be ""."""


class CaseRun:
    """Cases that follow each other: columns of what differs, and `templates` by their kind for all else.

    The kind of a case is what its skip says, "" for one that passed.
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
        """Yield them one by one."""
        new = tuple.__new__
        for classname, name, time, kind in zip(self.classnames, self.names, self.times, self.kinds):
            _, status, _, path, nodeid, line, _, *rest = self.templates[kind]
            yield new(Case, (name, status, classname, path, nodeid, line, seconds_of[time], *rest))


CaseOrRun = Union[Case, CaseRun]


def one_by_one(found: Iterable[CaseOrRun]) -> Iterator[Case]:
    """Yield cases, those of runs too."""
    for one in found:
        if type(one) is CaseRun:
            yield from one.cases()
        else:
            yield one  # type: ignore[misc]


class _SecondsOf(dict[str, "float | None"]):
    """Seconds by the text that stands for them; None for nonsense."""

    def __missing__(self, text: str) -> float | None:
        if len(self) >= MOST_TIMES:
            self.clear()
        found: float | None
        try:
            found = float(text)
        except ValueError:
            found = None
        found = found if found is not None and 0 <= found <= MAX_SECONDS else None
        self[text] = found
        return found


seconds_of: Mapping[str, float | None] = _SecondsOf()


def rows_at(text: str, start: int) -> list[Row]:
    """Return the cases that follow each other from a place on at which one begins."""
    if text.startswith(_STARTS_WITH_NAME, start):
        rows = [(whole, classname, name, *rest) for whole, name, classname, *rest in _NAME_FIRST.findall(text, start)]
    else:
        rows = _CLASS_FIRST.findall(text, start)
    if rows and not rows[-1][0]:
        rows.pop()
    return rows


def skip_of(kind: str) -> dict[str, str]:
    """Return the attributes of a skip."""
    return dict(_ATTRIBUTE.findall(kind))


def is_plain(values: Iterable[str]) -> bool:
    """Return whether values of attributes mean what they are: printable, no reference, no `<`, which XML forbids."""
    every = "".join(values)
    return every.isprintable() and "<" not in every and "&" not in every
