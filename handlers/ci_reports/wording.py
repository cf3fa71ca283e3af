"""Write headings, lists and names for the sections about tests; names come from outside and are shown as code."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from bot.core.listing import MORE, middle_cut
from bot.core.urls import linkable
from bot.effects.section_words import moment, short
from bot.github.text.markdown import code
from handlers.ci_reports import texts
from handlers.ci_reports.outcomes import BaseSuite, HeadAndBase

MOST_ROWS = 50
MOST_CHARACTERS = 4_000
"""The most characters of the rows of one list; escapes can make a name several times as long."""
OPEN_ROWS = 5
"""The most rows of a list that is shown unfolded."""
SHOWN_TEST, SHOWN_SUITE = 240, 80
"""The most characters of the name of a test, and of a suite."""


def heading(title: str, tested: HeadAndBase) -> str:
    """Return the heading of a section: its title, the commit, and when it was tested."""
    return texts.HEADED.format(title=title, sha=short(tested.sha), at=moment(tested.tested_at))


def rows_of(rows: Iterable[str], total: int) -> str:
    """Return rows as a Markdown list: as many as fit, then the number of the others; `total` counts all rows."""
    listed: list[str] = []
    budget = MOST_CHARACTERS
    for row in rows:
        budget -= len(row)
        if budget < 0 or len(listed) == MOST_ROWS:
            break
        listed.append(row)
    unlisted = total - len(listed)
    return "\n".join(f"- {row}" for row in [*listed, *([MORE.format(count=unlisted)] if unlisted else [])])


def listed_tests(title: str, rows: Sequence[str]) -> str:
    """Return a list under its title, folded if it is long; empty if there are no rows."""
    if not rows:
        return ""
    form = texts.UNFOLDED if len(rows) <= OPEN_ROWS else texts.FOLDED
    return form.format(title=title, count=len(rows), rows=rows_of(rows, len(rows)))


def suite_name(suite: str) -> str:
    """Return a suite's name as Markdown code, shortened in the middle."""
    return code(middle_cut(suite, SHOWN_SUITE))


def name_of_test(suite: str, test: str, *, several: bool) -> str:
    """Return a test's ID as Markdown code, shortened in the middle; with `several` suites, after the suite's name."""
    quoted = code(middle_cut(test, SHOWN_TEST))
    return f"{suite_name(suite)}: {quoted}" if several else quoted


def link_to_commit(base: BaseSuite) -> str:
    """Return a link to the commit or the run that a suite is compared with."""
    url = linkable(base.url)
    return f"[{short(base.sha)}]({url})" if url else short(base.sha)
