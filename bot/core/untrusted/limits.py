"""Limits for one piece of untrusted input, and the texts when it exceeds them.

The kernel enforces the first three in the process that does the work: no code there can hold them up. They bound the
cost of input; they are no sandbox against code that an attacker gets to run.
"""

from __future__ import annotations

from dataclasses import dataclass

from bot.core.errors import UserError

MIB = 1 << 20

MAX_QUESTION_BYTES = 256 * MIB
"""Bytes of arguments that are sent to a process; files are not counted, for only their descriptors are sent."""

MOST_WAITING = 16
"""Jobs that may wait for a process. Each holds one of the engine's places, so it is less than half of those."""
MOST_WAITING_OF_REPOSITORY = 12
MOST_WAITING_OF_OWNER = 4
"""Waiting jobs of one repository, and of one owner in it: the other places are left for others."""
COME_BACK = 10.0
"""Seconds after which a job that found no place in the queue tries again."""

CPU = "{act} took more than {seconds:g} seconds of CPU time, the maximum"
WALL_CLOCK = "{act} took longer than {seconds:g} seconds, the maximum"
MEMORY = "{act} needed more than {mib:,} MiB of memory, the maximum"
QUESTION = "{act} needs more than {mib:,} MiB of input, the maximum"
ANSWER = "{act} produced more than {mib:,} MiB of output, the maximum"
KILLED = "{act} crashed its process twice, with signal {number}"
VANISHED = "{act} crashed its process twice"
BUSY = "all processes that read reports are busy"


class OverLimit(UserError):
    """Untrusted input cost more than it may. The text names the limit. Final: the same input costs the same again."""


@dataclass(frozen=True, slots=True)
class Limits:
    """What one job may use: seconds of CPU time and of wall-clock time, bytes of address space.

    `act` names the work, as in "reading one artifact". The process itself takes about 60 MiB of its address space.
    """

    act: str
    cpu: float
    wall: float
    memory: int


@dataclass(frozen=True, slots=True)
class AllLimits:
    """The limits of each kind of work.

    Labs are known, and their runs have up to a million tests; anybody can upload an artifact.
    """

    run: Limits = Limits("reading the files of one run", cpu=120, wall=240, memory=1536 * MIB)
    artifact: Limits = Limits("reading one artifact", cpu=20, wall=60, memory=1024 * MIB)
    comparison: Limits = Limits("comparing one suite", cpu=120, wall=240, memory=1536 * MIB)
    renames: Limits = Limits("searching for renamed tests", cpu=20, wall=60, memory=1024 * MIB)
    tests: Limits = Limits("comparing the tests of one commit", cpu=60, wall=120, memory=1536 * MIB)

    @property
    def longest(self) -> float:
        """The seconds after which any job has ended."""
        return max(self.run.wall, self.artifact.wall, self.comparison.wall, self.renames.wall, self.tests.wall)
