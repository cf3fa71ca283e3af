"""Group changes that people should read about together. No I/O."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from nightjar_formats.measurements import Better
from nightjar_formats.model import TargetKey

from bot.results.measurements.changes import LevelChange


class SeriesKey(NamedTuple):
    """A series: what one test measures on one target."""

    target: TargetKey
    test: str
    name: str


@dataclass(frozen=True, slots=True)
class SeriesChange:
    """A change of a series: the commit that it came with, and which values are better."""

    series: SeriesKey
    commit: str
    change: LevelChange
    better: Better = Better.NONE

    @property
    def is_worse(self) -> bool:
        """Whether people should be alarmed: improvements, and changes that are neither, are only listed."""
        return self.better is (Better.LOWER if self.change.is_rise else Better.HIGHER)


@dataclass(frozen=True, slots=True)
class ChangeGroup:
    """The changes that came with one commit on the same targets, those of each target in the order of their series.

    The targets that have the same series in common are in one group: the cause is in the code, not in a device.
    """

    commit: str
    targets: Sequence[TargetKey]
    changes: Sequence[SeriesChange]


def grouped(changes: Iterable[SeriesChange]) -> list[ChangeGroup]:
    """Return the groups of changes, sorted by commit and targets.

    Changes of one commit on one target are one group. If the changes of several targets are of the same tests,
    measurements and directions, they are one group too.
    """
    of_target: dict[tuple[str, TargetKey], list[SeriesChange]] = defaultdict(list)
    for change in changes:
        of_target[change.commit, change.series.target].append(change)
    shared: dict[tuple[str, frozenset[tuple[str, str, bool]]], list[TargetKey]] = defaultdict(list)
    for commit, target in sorted(of_target):
        same = frozenset(
            (change.series.test, change.series.name, change.change.is_rise) for change in of_target[commit, target]
        )
        shared[commit, same].append(target)
    groups = [
        ChangeGroup(
            commit,
            targets,
            [change for target in targets for change in sorted(of_target[commit, target], key=lambda it: it.series)],
        )
        for (commit, _), targets in shared.items()
    ]
    return sorted(groups, key=lambda group: (group.commit, group.targets))
