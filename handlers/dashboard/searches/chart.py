"""Draw the range of a search as SVG: a bar for each commit, bars for other causes, and the runs below them.

No I/O. Each bar and each mark is a link whose text appears above the chart when it has the focus or the pointer.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from markupsafe import Markup

from bot.core.listing import counted
from bot.web.page_filters import clipped
from handlers.dashboard.searches import texts

MOST_BARS = 120
"""The most bars of a range; those of more commits are drawn together."""
WIDTH, LEFT, RIGHT, OTHERS = 640, 34, 520, 560
"""The range is drawn between two places, and other causes from the last place on."""
TOP, BOTTOM = 34, 154
"""The heights of 100 % and of 0 %."""
WIDEST = 36
NARROWEST_NAMED = 90
"""The width of a bar's place that has room for its name."""
SPACE, LANE = 11, 16
"""Pixels between two runs of a commit on one target, and above those of a target."""
LONGEST_TIP = 100
MOST_LANES = 12
"""The most targets whose runs are drawn; a table has all runs."""
COMMITS, CAUSES = "#commits", "#causes"
"""Where the page lists the commits, and the other causes."""
_HEAD = Markup(
    '<svg class="chart range" role="group" width="{width}" height="{height}" viewBox="0 0 {width} {height}" '
    'aria-label="{label}">'
)
_RULE = Markup('<line class="axis" x1="{left}" x2="{right}" y1="{y}" y2="{y}"/>')
_BAR = Markup('<rect class="bar{kind}" x="{x}" y="{y}" width="{width}" height="{height}"/>')
_TIP = Markup('<text class="tip" x="2" y="12">{text}</text>')
_LINK = Markup('<a href="{address}" aria-label="{label}">{parts}</a>')
_WORDS = Markup('<text x="{x}" y="{y}" text-anchor="{anchor}">{text}</text>')
_MARKS = {
    "passed": Markup('<circle class="run passed" cx="{x}" cy="{y}" r="4"/>'),
    "failed": Markup('<rect class="run failed" x="{left}" y="{top}" width="8" height="8"/>'),
    "mixed": Markup('<path class="run mixed" d="M{x} {top}l4.5 4.5-4.5 4.5-4.5-4.5z"/>'),
    "waiting": Markup('<circle class="run waiting" cx="{x}" cy="{y}" r="4"/>'),
    "no results": Markup('<path class="run none" d="M{left} {top}l8 8m0-8l-8 8"/>'),
    "lost": Markup('<path class="run none" d="M{left} {y}h8"/>'),
}
"""The shape of a run by what it says, so that no color is needed to tell them apart."""


@dataclass(frozen=True, slots=True)
class RangeBar:
    """A cause with its probability; `label` says both, and `address` leads to more about it."""

    probability: float
    label: str
    address: str
    is_named: bool = False


@dataclass(frozen=True, slots=True)
class RunMark:
    """A run at a commit, by position; 0 is the commit before the range. `kind` is a key of `_MARKS`."""

    position: int
    target: str
    kind: str
    label: str
    address: str


@dataclass(frozen=True, slots=True)
class RangeChart:
    """What a chart shows: a bar for each commit, the oldest first, the other causes, and the runs on each target."""

    bars: Sequence[RangeBar]
    others: Sequence[RangeBar]
    targets: Sequence[str]
    marks: Sequence[RunMark]

    def svg(self) -> Markup:
        """Return the chart."""
        parts = [*_scale(), *self._axis(), *self._range_bars(), *self._other_bars()]
        top = BOTTOM + LANE
        for target in self.targets[:MOST_LANES]:
            marks = [mark for mark in self.marks if mark.target == target]
            parts += [_WORDS.format(x=LEFT, y=top + 8, anchor="start", text=clipped(target, LONGEST_TIP))]
            parts += self._lane(marks, top + LANE)
            top += LANE + SPACE * max(Counter(self._slot(mark.position) for mark in marks).values(), default=1) + 4
        label = texts.CHART.format(commits=counted(len(self.bars), "commit"), runs=counted(len(self.marks), "run"))
        return Markup("").join([_HEAD.format(width=WIDTH, height=top + 2, label=label), *parts, Markup("</svg>")])

    @property
    def _together(self) -> int:
        """How many commits one bar stands for."""
        return max(1, math.ceil(len(self.bars) / MOST_BARS))

    @property
    def _slot_width(self) -> float:
        return (RIGHT - LEFT) / (1 + math.ceil(len(self.bars) / self._together))

    def _slot(self, position: int) -> int:
        """Return the place of a position, from the left; the commit before the range has the first one."""
        return 1 + (position - 1) // self._together if position else 0

    def _middle(self, slot: int) -> float:
        return LEFT + self._slot_width * (slot + 0.5)

    def _range_bars(self) -> Iterator[Markup]:
        for start in range(0, len(self.bars), self._together):
            bars = self.bars[start : start + self._together]
            if len(bars) == 1:
                bar = bars[0]
            else:
                probability = sum(bar.probability for bar in bars)
                share = texts.percent(probability)
                label = texts.BARS.format(count=len(bars), first=bars[0].label, probability=share)
                bar = RangeBar(probability, label, COMMITS, is_named=any(bar.is_named for bar in bars))
            yield _drawn(bar, self._middle(self._slot(start + 1)), min(WIDEST, 0.84 * self._slot_width))

    def _axis(self) -> Iterator[Markup]:
        """Yield the names of the ends of the range, and of the commit before it if there is room."""
        last = self._slot(len(self.bars))
        if self._slot_width < NARROWEST_NAMED:
            yield _WORDS.format(x=LEFT, y=BOTTOM + 12, anchor="start", text=texts.OLDEST)
            yield _WORDS.format(x=RIGHT, y=BOTTOM + 12, anchor="end", text=texts.NEWEST)
            return
        names = {0: texts.BEFORE, 1: texts.OLDEST} | {last: texts.NEWEST if last > 1 else texts.ONLY}
        for slot, name in names.items():
            yield _WORDS.format(x=round(self._middle(slot), 1), y=BOTTOM + 12, anchor="middle", text=name)

    def _other_bars(self) -> Iterator[Markup]:
        yield _WORDS.format(x=OTHERS - 10, y=BOTTOM + 12, anchor="start", text=texts.NOT_A_COMMIT)
        for number, bar in enumerate(self.others):
            yield _drawn(bar, OTHERS + 12 + 36 * number, 24)

    def _lane(self, marks: Sequence[RunMark], top: float) -> Iterator[Markup]:
        rows = Counter[int]()
        for mark in marks:
            slot = self._slot(mark.position)
            x, y = self._middle(slot), top + SPACE * rows[slot]
            rows[slot] += 1
            places = {"x": x, "y": y, "left": x - 4, "top": y - 4}
            shape = _MARKS[mark.kind].format(**{name: round(value, 1) for name, value in places.items()})
            yield _linked(shape, mark.label, mark.address)


def _scale() -> Iterator[Markup]:
    for share in (0.0, 0.5, 1.0):
        y = BOTTOM - (BOTTOM - TOP) * share
        yield _RULE.format(left=LEFT, right=WIDTH, y=y)
        yield _WORDS.format(x=LEFT - 4, y=y + 4, anchor="end", text=f"{share:.0%}")


def _drawn(bar: RangeBar, middle: float, width: float) -> Markup:
    """Return a bar. Even of an impossible cause, a line can be seen."""
    height = max(1.5, (BOTTOM - TOP) * bar.probability)
    rectangle = _BAR.format(
        kind=" named" if bar.is_named else "",
        x=round(middle - width / 2, 1),
        y=round(BOTTOM - height, 1),
        width=round(width, 1),
        height=round(height, 1),
    )
    return _linked(rectangle, bar.label, bar.address)


def _linked(shape: Markup, label: str, address: str) -> Markup:
    text = clipped(label, LONGEST_TIP)
    return _LINK.format(address=address, label=label, parts=shape + _TIP.format(text=text))
