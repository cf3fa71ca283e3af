"""Advise a lab how to improve its reports, from the names, paths and durations of its cases. No I/O."""

from __future__ import annotations

from collections.abc import Iterator

from nightjar_formats.model import Case, Trouble
from nightjar_formats.patterns import Pattern
from nightjar_formats.readers.repairs import UNNAMED
from nightjar_formats.runs import texts
from nightjar_formats.runs.identity import Resolver

EXAMPLES = 3
"""The most names that a warning shows."""
LONGEST_EXAMPLE = 120


UNTIMED = ("executorch-csv",)
"""Formats that have no durations of tests."""
TIMELESS = (Trouble.COLLECTION, Trouble.CRASH, Trouble.INTERNAL)
"""Troubles that have no duration in any report."""

_CHANGING = Pattern(
    r"\b0x[0-9a-fA-F]{5,}"  # an address, as in the repr of an object
    r"|\b(?P<digits>[0-9a-f]{32,}|[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})\b"
    r"|[\w$\])]@(?P<java>[0-9a-f]{5,8})\b|\b[hH]ash[cC]ode[:=] ?\d+"  # the text of an object in Java
    r"|(?:\b|_)20\d\d[01]\d[0-3]\d[T_-]?[0-2]\d[0-5]\d[0-5]\d(?:\b|_)"  # a date and a time, to the second
    r"|\b20\d\d-[01]\d-[0-3]\d[T _][0-2]\d:[0-5]\d:(?:[0-5][1-9]|[1-5]0)"
    r"|/tmp/|/var/folders/|\\Temp\\|pytest-of-"
)
_MODULE = Pattern(r"(?:^|[.])(?:tests?_[^.]*|[^.]*_tests?|tests?)(?:[.]|$)")


class CaseAdvice:
    """Resolves cases as a bot without the repository's files does, and collects what deserves a warning."""

    def __init__(self) -> None:
        self.cases = 0
        self._resolve = Resolver(None).resolve
        self._groups: dict[str, int] = {}  # the group of attempts that each test was last seen in
        self._repeated: list[str] = []
        self._changing: dict[str, None] = {}
        self._repeats = self._placed = self._modules = self._undated = 0

    def resolve(self, case: Case) -> tuple[str, str]:
        """Return the case's test ID and no path. Raises what `Resolver.resolve` raises."""
        test, path = self._resolve(case)
        self.cases += 1
        if case.path or case.nodeid:
            self._placed += 1
        elif _MODULE.search(case.classname) or not case.classname:
            self._modules += 1
        if case.seconds is None and case.trouble not in TIMELESS and not case.measurements:
            self._undated += 1
        last_group = self._groups.get(test)
        self._groups[test] = case.attempt
        if last_group is None:
            if _changes(test):
                self._changing[test] = None
        elif (not case.attempt or case.attempt != last_group) and case.name != UNNAMED:
            self._repeats += 1
            if len(self._repeated) < EXAMPLES and test not in self._repeated:
                self._repeated.append(test)
        return test, path

    def warnings(self, format: str) -> Iterator[str]:
        """Yield a warning for each way in which the lab could improve the file; `format` is the file's format."""
        if not self.cases:
            yield texts.NO_TEST
            return
        if format == "junit" and not self._placed:
            yield texts.NO_FILE if self._modules else texts.NO_MODULE
        if self._repeats:
            yield texts.REPEATED.format(count=self._repeats, examples=_examples(self._repeated))
        if self._changing:
            yield texts.CHANGING.format(count=len(self._changing), examples=_examples(list(self._changing)))
        if self._undated and format not in UNTIMED:
            yield texts.NO_DURATION.format(count=self._undated, cases=self.cases)


def _changes(test: str) -> bool:
    """Say whether a name has a part that changes in every run, such as a hash. A hash has letters and digits."""
    digit_runs = (match["digits"] or match["java"] for match in _CHANGING.finditer(test))
    return any(digits is None or not (digits.isdecimal() or digits.isalpha()) for digits in digit_runs)


def _examples(names: list[str]) -> str:
    shortened = [
        name if len(name) <= LONGEST_EXAMPLE else name[: LONGEST_EXAMPLE - 1] + "…" for name in names[:EXAMPLES]
    ]
    return ", ".join(shortened)
