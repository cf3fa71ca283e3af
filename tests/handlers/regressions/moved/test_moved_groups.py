"""Which changes of measurements share a message, and when a message is outdated."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence
from dataclasses import replace

from nightjar_formats.measurements import Better
from nightjar_formats.model import TargetKey

from bot.results.measurements.moved import MovedSeries, MoveState
from handlers.regressions.moved.groups import GroupUpdate, MovedGroup, updated_groups

DAY = 86400.0


def change(target: str, test: str, since: str = "aaa", **values: object) -> MovedSeries:
    """Return a rise of the latency of a test on a target, at the commit `since`."""
    about = TargetKey("octocat/compiler", "example-lab", target)
    moved = MovedSeries(
        id=f"{target}-{test}-{since}",
        target=about,
        suite="operators",
        test=test,
        name="latency",
        unit="ms",
        better=Better.LOWER,
        since=since,
        since_at=100 * DAY,
        good="good",
        confirmed_in="bbb",
        confirmed_at=102 * DAY,
        before=400.0,
        after=440.0,
        low=430.0,
        high=450.0,
        ended_in="",
        ended_at=0.0,
    )
    return replace(moved, **values)  # type: ignore[arg-type]  # its own fields


def updated(groups: Iterable[MovedGroup], changes: Sequence[MovedSeries]) -> list[GroupUpdate]:
    """Return the outdated messages, if these changes are stored, and are all that is new."""
    stored = {item.id: item for item in changes}
    return updated_groups(groups, stored, changes, lambda item: item.state is MoveState.OPEN, 103 * DAY)


def members(update: GroupUpdate) -> list[str]:
    return [member.id for member in update.group.members]


def test_changes_of_one_commit_share_a_message_whichever_target_is_first() -> None:
    """On one target, and on others if the same series moved there."""
    first, same, other = change("adreno", "conv"), change("mali", "conv"), change("mali", "relu")
    improved = change("adreno", "add", after=300.0)
    (update,) = updated([], [first, same, improved])
    assert (update.old, members(update)) == (None, [first.id, same.id])
    assert updated([update.group], [first, same, improved]) == []
    for late in itertools.permutations([same, replace(first, test="add", id="slow to confirm")]):
        changes, group = [first], updated([], [first])[0].group
        for item in late:
            changes.append(item)
            (later,) = updated([group], changes)
            assert (later.old, later.group.name) == (group, group.name)
            group = later.group
        assert group.lasting == tuple(sorted(item.id for item in changes))
    # Another commit, and other series of another target, have messages of their own.
    assert [members(update) for update in updated([], [first, other, change("adreno", "conv", "ccc")])] == [
        [first.id],
        [other.id],
        ["adreno-conv-ccc"],
    ]


def test_a_message_is_outdated_when_a_change_ends_and_not_when_a_late_run_moves_its_commit() -> None:
    first, second = change("adreno", "conv"), change("adreno", "relu")
    group = updated([], [first, second])[0].group
    moved = replace(first, id="moved", since="abc", since_at=first.since_at - DAY)
    (update,) = updated([group], [moved, second])
    assert (members(update), update.group.since) == (["moved", second.id], "aaa")
    assert updated([update.group], [moved, second]) == []
    ended = [replace(item, ended_in="ddd", ended_at=105 * DAY) for item in (first, second)]
    (update,) = updated([group], [ended[0], second])
    assert update.group.lasting == (second.id,)
    (update,) = updated([update.group], ended)
    assert update.group.lasting == ()
    # Late results may also take a change back.
    (update,) = updated([group], [second])
    assert (update.group.lasting, list(update.changes)) == ((second.id,), [second.id])
