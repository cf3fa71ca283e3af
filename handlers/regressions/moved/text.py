"""Write about measurements that moved at one commit: the message, its end, and the issue. No I/O."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from bot.core.listing import counted, listed
from bot.github.text.markdown import code
from bot.news.message import News, NewsItem
from bot.results.measurements.groups import targets_of
from bot.results.measurements.moved import MovedSeries, MoveState
from handlers.regressions import texts
from handlers.regressions.target_text import (
    COMPARE_PAGE,
    MOST_ITEMS,
    MOST_LISTED,
    NO_DETAILS,
    SHORT,
    DetailsOfTests,
    shown_test,
)

MOST_TARGETS = 3
"""Targets that a title names."""
DELEGATED_NODES = "delegated_nodes"


@dataclass(frozen=True, slots=True)
class MovedText:
    """The texts about a group: `changes` are its changes that an audience hears of, sorted, at least one.

    `lasting` are those that still alarm people. `page` is the page of the repository on GitHub, empty if unknown.
    """

    changes: Sequence[MovedSeries]
    lasting: Sequence[MovedSeries]
    page: str = ""
    details: DetailsOfTests = NO_DETAILS

    @property
    def title(self) -> str:
        """The title of the issue and of the first message."""
        return self._title(texts.MOVED_TITLE)

    def news(self) -> News:
        """Return the first message."""
        first, url = self.changes[0], self._range_url
        notes = [texts.MOVED_BETWEEN.format(good=first.good[:SHORT], since=first.since[:SHORT])]
        if any(not change.is_exact for change in self.changes):
            notes.append(texts.MOVED_CONFIRMED)
        return News(
            title=self.title,
            items=tuple(
                NewsItem(shown_test(change.test), texts.MOVED_ON.format(change=_text(change), target=_target(change)))
                for change in self.changes[:MOST_ITEMS]
            ),
            more=len(self.changes[MOST_ITEMS:]),
            url=url,
            notes=tuple(notes),
        )

    def end_news(self) -> News:
        """Return the message when no change lasts."""
        items = tuple(NewsItem(shown_test(change.test), self._end(change)) for change in self.changes[:MOST_ITEMS])
        unlisted = len(self.changes[MOST_ITEMS:])
        return News(title=self._title(texts.MOVED_BACK_TITLE), items=items, more=unlisted, good=True)

    def body(self) -> str:
        """Return the Markdown of the issue."""
        lines = [self._line(change) for change in self.changes[:MOST_LISTED]]
        if unlisted := len(self.changes) - len(lines):
            lines.append(texts.MORE.format(count=unlisted))
        url = self._range_url
        return texts.MOVED_ISSUE.format(
            since=code(self.changes[0].since[:SHORT]),
            range=texts.MOVED_RANGE.format(url=url) if url else "",
            changes="\n".join(lines),
            end=texts.MOVED_OPEN if self.lasting else texts.MOVED_CLOSED,
        )

    def _line(self, change: MovedSeries) -> str:
        line = self.details.line(change.test, change.target.full_name).strip()
        end = "" if change in self.lasting else f"; {self._end(change)}"
        return texts.MOVED_LINE.format(test=line, change=code(_text(change)), target=code(_target(change)), end=end)

    def _end(self, change: MovedSeries) -> str:
        if change.state is MoveState.ENDED:
            return texts.MOVED_ENDED.format(sha=change.ended_in[:SHORT])
        return texts.MOVED_LEFT_OUT

    def _title(self, template: str) -> str:
        targets = listed([target.full_name for target in targets_of(self.changes)], MOST_TARGETS)
        return template.format(what=_what(self.changes), targets=targets, since=self.changes[0].since[:SHORT])

    @property
    def _range_url(self) -> str:
        first = self.changes[0]
        return COMPARE_PAGE.format(page=self.page, good=first.good, since=first.since) if self.page else ""


def _what(changes: Sequence[MovedSeries]) -> str:
    """Return what moved: the measurement of a test, or how many of them."""
    series = {(change.suite, change.test, change.name) for change in changes}
    names = sorted({change.name for change in changes})
    if len(series) == 1:
        return texts.MOVED_ONE.format(name=names[0], test=shown_test(changes[0].test))
    tests = counted(len({(suite, test) for suite, test, _ in series}), "test")
    return texts.MOVED_SEVERAL.format(names=listed(names, MOST_TARGETS), tests=tests)


def _text(change: MovedSeries) -> str:
    """Return a change in a line, and what it means if the number of delegated nodes fell."""
    if change.name == DELEGATED_NODES and not change.is_rise:
        template = texts.LEFT_DELEGATE if change.after == 0 else texts.PARTLY_LEFT_DELEGATE
        return template.format(change=change.text)
    return change.text


def _target(change: MovedSeries) -> str:
    return change.target.full_name


def sorted_changes(changes: Iterable[MovedSeries]) -> list[MovedSeries]:
    """Return changes as texts list them: by target, suite, test and measurement."""
    return sorted(changes, key=lambda change: (change.target, change.suite, change.test, change.name, change.since_at))
