"""Name the runs of a few tests, and their files: a few tests run several times, maybe at two commits in turn.

Such a run says nothing about the tests that it did not run. So it is no baseline and no nightly run, and its results
are not those of its commit.
"""

from __future__ import annotations

from typing import NamedTuple

from nightjar_formats.runs.file_names import MOST_OF_NAME

FEW_TESTS = "tests-"
"""The beginning of the names of jobs and runs of a few tests, which the bot chooses."""
HEAD, BASE = "head", "base"
"""The two commits of a job: its own one, and the one with which it is compared."""
SIDES = (HEAD, BASE)


class Turn(NamedTuple):
    """One start of the lab's command: at which of the two commits, and how often it runs each test."""

    side: str
    repeat: int


def is_few_tests(run_id: str) -> bool:
    """Say whether a run has only the few tests of a job."""
    return run_id.startswith(FEW_TESTS)


def turn_file_name(side: str, turn: int, number: int, name: str) -> str:
    """Return the name of a file of a turn in the run, as in `base.3.1.te.xml`; turns and files count from 1."""
    return f"{side}.{turn}.{number}.{name[-MOST_OF_NAME:]}"


def side_of(file_name: str) -> str:
    """Return the commit to which a file of the run belongs; a file without such a name belongs to the job's own."""
    side = file_name.partition(".")[0]
    return side if side in SIDES else HEAD


def turns_of(repeat: int, most_turns: int, *, has_base: bool, repeats_itself: bool) -> list[Turn]:
    """Return the turns in which a command runs its tests `repeat` times at each commit.

    The order is head, base, base, head, head …, so that a device that gets warmer does not favour one of them. Each
    commit has at most `most_turns` turns if the command can repeat a test itself; otherwise each turn runs it once.
    """
    count = min(repeat, most_turns if has_base else 1) if repeats_itself else repeat
    repeats = [repeat // count + (number < repeat % count) for number in range(count)]
    turns: list[Turn] = []
    for number, times in enumerate(repeats):
        sides = SIDES if number % 2 == 0 else tuple(reversed(SIDES))
        turns += [Turn(side, times) for side in sides if has_base or side == HEAD]
    return turns
