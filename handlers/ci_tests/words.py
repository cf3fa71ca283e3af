"""Sentences and lists about the tests of CI; names of tests and suites come from outside and stand in code."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from bot.core.listing import MORE
from bot.core.urls import linkable
from bot.effects.section_words import moment, short
from bot.github.markdown import code
from bot.results.report.tables import middle_cut
from handlers.ci_tests import texts
from handlers.ci_tests.outcomes import BaseSuite, HeadAndBase

MOST_ROWS = 50
MOST_CHARACTERS = 4_000
"""Of the rows of one list; a name may grow to several times its length when it is made harmless."""
OPEN_ROWS = 5
"""A list with more rows is folded away."""
SHOWN_TEST, SHOWN_SUITE = 240, 80
"""Characters of a name."""


def heading(title: str, tested: HeadAndBase) -> str:
    """Say what follows, of which commit, and when that was tested."""
    return texts.HEADED.format(title=title, sha=short(tested.sha), at=moment(tested.at))


def rows_of(rows: Iterable[str], total: int) -> str:
    """Return rows as a list of Markdown, as many as fit, and how many there are besides; `total` counts all."""
    shown: list[str] = []
    left = MOST_CHARACTERS
    for row in rows:
        left -= len(row)
        if left < 0 or len(shown) == MOST_ROWS:
            break
        shown.append(row)
    more = total - len(shown)
    return "\n".join(f"- {row}" for row in [*shown, *([MORE.format(count=more)] if more else [])])


def listed_tests(title: str, rows: Sequence[str]) -> str:
    """Return a list under its title, folded away where it is long; empty without rows."""
    if not rows:
        return ""
    form = texts.UNFOLDED if len(rows) <= OPEN_ROWS else texts.FOLDED
    return form.format(title=title, count=len(rows), rows=rows_of(rows, len(rows)))


def suite_name(suite: str) -> str:
    """Return a suite's name as people see it."""
    return code(middle_cut(suite, SHOWN_SUITE))


def name_of_test(suite: str, test: str, *, several: bool) -> str:
    """Return a test's ID as people see it, its suite before it where there are several."""
    shown = code(middle_cut(test, SHOWN_TEST))
    return f"{suite_name(suite)}: {shown}" if several else shown


def link_to_commit(base: BaseSuite) -> str:
    """Return a link to what a suite is compared with."""
    url = linkable(base.url)
    return f"[{short(base.sha)}]({url})" if url else short(base.sha)


def counted_tests(number: int, one: str, many: str) -> str:
    """Return `1 test is` or `1,267 tests are`."""
    return f"{number:,} {one if number == 1 else many}"
