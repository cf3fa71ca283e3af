"""The nested tests of a TAP or KTAP report. The indentation of a result decides which test it is a subtest of.

    # Subtest: dma            the name of the parent, if the tool writes it before the subtests
        ok 1 - copies         a subtest: `dma::copies`
        not ok 2 - fills      a subtest: `dma::fills`
        1..2                  the plan of the subtests
    not ok 1 - dma            the parent's result, which ends its subtests

Without the first line, subtests wait for the name of their parent, up to a limit, and lose their texts if there are
many. Every result is a case, also that of a test with subtests.
"""

from __future__ import annotations

from collections.abc import Iterator

from nightjar_formats.items import counted
from nightjar_formats.limits import MAX_NESTED
from nightjar_formats.model import Case, Status, Trouble
from nightjar_formats.readers import texts, values
from nightjar_formats.readers.tap.lines import PlanLine
from nightjar_formats.readers.unfinished import ENTRY, UnfinishedBudget
from nightjar_formats.refused import TooMuch

PLAN, BAIL_OUT, ALL = "(plan)", "(bail out)", "(all tests)"
"""Names of the cases for missing tests."""
UNNAMED = "test {number}"
SEPARATOR = "::"


class TapLevel:
    """The tests at one indentation. `prefix` is None while the name of a parent is unknown."""

    __slots__ = ("count", "holder", "indent", "is_buffered", "is_over", "plan", "prefix", "waiting")

    def __init__(self, indent: int, prefix: str | None) -> None:
        self.indent = indent
        self.prefix = prefix
        self.holder: str | None = None
        """The name of the test at this level whose subtests follow, if it is known already."""
        self.plan: int | None = None
        self.count = 0
        self.is_buffered = False
        """Whether the result of the test came before its subtests."""
        self.is_over = False
        """Whether the plan came at the end, so that what follows belongs to another report."""
        self.waiting: list[Case] = []

    @property
    def is_unnamed(self) -> bool:
        """Whether the level has only begun and may still get a name: KUnit writes the name after the version."""
        return self.prefix is None and self.plan is None and not self.count and self.holder is None


class TapLevels:
    """The levels that are open, the outermost first. `format_name` is for errors."""

    def __init__(self, format_name: str) -> None:
        self._format_name = format_name
        self._budget = UnfinishedBudget(format_name)
        self._levels = [TapLevel(0, "")]
        self._has_bailed_out = False

    @property
    def indent(self) -> int:
        """The indentation of the innermost level."""
        return self._levels[-1].indent

    def begin_file(self, name: str) -> Iterator[Case]:
        """End the current report, and begin that of another file."""
        yield from self._close_to(0)
        yield from self._end_report(self._levels[0])
        self._levels[0].prefix = name + SEPARATOR if name else ""

    def prefixed(self, case: Case) -> Case:
        """Return a case of the outermost level with its full name."""
        return case._replace(nodeid=values.name(f"{self._levels[0].prefix or ''}{case.nodeid}"))

    def name_holder(self, indent: int, name: str) -> Iterator[Case]:
        """Store the name of a test whose subtests follow. Its line is indented like the test or like the subtests."""
        yield from self._close_to(indent)
        level = self._levels[-1]
        if indent > level.indent and level.holder is None:
            level.holder = name
            self._open(indent)
        elif indent == level.indent and level.is_unnamed and self._levels[-2].holder is None:
            self._levels.pop()
            self._levels[-1].holder = name
            self._open(indent)
        else:
            self._at(indent).holder = name

    def begin(self, indent: int) -> Iterator[Case]:
        """Begin a report, or the subtests of a test."""
        yield from self._close_to(indent)
        if self._levels[-1].indent == indent:
            yield from self._end_report(self._levels[-1])
        self._at(indent)

    def plan(self, indent: int, plan: PlanLine) -> Iterator[Case]:
        """Note how many tests are planned."""
        yield from self._close_to(indent)
        level = self._at(indent)
        if level.plan is not None:
            yield from self._end_report(level)
        level.plan = plan.tests
        level.is_over = level.count > 0
        # `1..0` says that the whole file is skipped:
        # https://testanything.org/tap-version-14-specification.html#the-plan
        if plan.tests == 0 and level is self._levels[0]:
            name = f"{level.prefix or ''}{ALL}"
            yield Case(ALL, Status.SKIPPED, nodeid=name, message=values.message(plan.reason))

    def number(self, indent: int, number: int | None) -> int:
        """Return the number of a result, or the next number if it has none."""
        if number is not None:
            return number
        return next((level.count for level in self._levels if level.indent == indent and not level.is_over), 0) + 1

    def end(self, indent: int, case: Case) -> Iterator[Case]:
        """Add a result. It ends the deeper levels; the outermost of them has its subtests."""
        yield from self._close_to(indent, held_by=case.name)
        level = self._at(indent)
        if level.is_over:
            yield from self._end_report(level)
        level.holder = None
        level.count += 1
        yield from self._give(level, case)

    def begin_buffered(self, indent: int, name: str) -> None:
        """Note that the subtests of the last result follow in braces."""
        level = self._levels[-1]
        if level.indent == indent:
            level.holder, level.is_buffered = name, True

    def end_buffered(self, indent: int) -> Iterator[Case]:
        """Note the closing brace after the subtests."""
        yield from self._close_to(indent)

    def bail_out(self, indent: int, reason: str) -> Iterator[Case]:
        """Add a case that says that the tests were aborted."""
        yield from self._close_to(indent)
        if self._has_bailed_out:
            return
        self._has_bailed_out = True
        message = values.message(reason) or BAIL_OUT
        yield from self._give(
            self._at(indent), Case(BAIL_OUT, Status.ERRORED, nodeid=BAIL_OUT, trouble=Trouble.INTERNAL, message=message)
        )

    def rest(self) -> Iterator[Case]:
        """Yield the cases that are left at the end of the report."""
        yield from self._close_to(0)
        yield from self._end_report(self._levels[0])

    def _at(self, indent: int) -> TapLevel:
        """Return the level at an indentation; open the level if it is deeper than the others."""
        if indent > self.indent:
            self._open(indent)
        return self._levels[-1]

    def _open(self, indent: int) -> None:
        if len(self._levels) > MAX_NESTED:
            raise TooMuch(texts.TAP_DEEP.format(what=self._format_name))
        outer = self._levels[-1]
        is_named = outer.prefix is not None and outer.holder is not None
        self._levels.append(TapLevel(indent, f"{outer.prefix}{outer.holder}{SEPARATOR}" if is_named else None))

    def _close_to(self, indent: int, held_by: str | None = None) -> Iterator[Case]:
        """Close all deeper levels. `held_by` is the test whose result comes now: the parent of the outermost level."""
        while self.indent > indent:
            level = self._levels[-1]
            yield from self._end_report(level)
            self._levels.pop()
            outer = self._levels[-1]
            if outer.is_buffered:
                outer.is_buffered, outer.holder = False, None
                continue
            is_next = outer.indent <= indent
            holder = held_by if is_next and held_by is not None else outer.holder
            for case in level.waiting:
                self._budget.release(_size(case))
                name = f"{holder or UNNAMED.format(number=outer.count + 1)}{SEPARATOR}{case.nodeid}"
                yield from self._give(outer, case._replace(nodeid=values.name(name)))
            if not (is_next and held_by is not None):
                name = holder or UNNAMED.format(number=outer.count + 1)
                unfinished = Case(name, Status.ERRORED, nodeid=name, trouble=Trouble.CRASH, message=texts.UNFINISHED)
                outer.count += 1
                outer.holder = None
                yield from self._give(outer, unfinished)

    def _end_report(self, level: TapLevel) -> Iterator[Case]:
        """Report missing tests, if there are any, and reset the level."""
        if level.plan is not None and level.count < level.plan and not self._has_bailed_out:
            planned, were = counted(level.plan), "was" if level.plan == 1 else "were"
            message = texts.TAP_TOO_FEW.format(planned=planned, were=were, count=level.count)
            yield from self._give(
                level, Case(PLAN, Status.ERRORED, nodeid=PLAN, trouble=Trouble.CRASH, message=message)
            )
        if level is self._levels[0]:
            self._has_bailed_out = False
        level.plan, level.count, level.is_over = None, 0, False

    def _give(self, level: TapLevel, case: Case) -> Iterator[Case]:
        """Yield a case of a level with its full name, or let it wait until the name is known."""
        if level.prefix is not None:
            yield case._replace(nodeid=values.name(level.prefix + case.nodeid)) if level.prefix else case
            return
        if not self._budget.has_room(len(case.text)):
            case = case._replace(text="")
        self._budget.hold(_size(case))
        level.waiting.append(case)


def _size(case: Case) -> int:
    return ENTRY + len(case.nodeid) + len(case.message) + len(case.text)
