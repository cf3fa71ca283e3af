"""Limits for one piece of untrusted input, and the error texts of these limits.

The kernel enforces CPU time, wall-clock time and memory in the working process, where no code can prevent that. The
limits bound the cost of input. They are no sandbox for an attacker's code.
"""

from __future__ import annotations

from dataclasses import dataclass, fields

from bot.core.errors import UserError

MIB = 1 << 20

MAX_QUESTION_BYTES = 256 * MIB
"""Bytes of arguments that the server sends to a process. Files do not count: it sends only their descriptors."""

MOST_WAITING = 16
"""Jobs that may wait for a process: fewer than half of the engine's places, because each waiting job holds one."""
MOST_WAITING_OF_REPOSITORY = 12
MOST_WAITING_OF_OWNER = 4
"""Waiting jobs of one repository, and of one owner in it. Others can use the remaining places."""
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
    """Untrusted input exceeded a limit, which the text names. Final: the same input costs the same again."""


@dataclass(frozen=True, slots=True)
class Limits:
    """The limits of one job: seconds of CPU time and of wall-clock time, bytes of address space.

    `act` names the work, as in "reading one artifact". The process itself takes about 60 MiB of its address space.
    """

    act: str
    cpu: float
    wall: float
    memory: int


@dataclass(frozen=True, slots=True)
class AllLimits:
    """The limits of each kind of work.

    The runs of labs, which maintainers list, have up to a million tests. Artifacts get less: anybody can upload one.
    """

    run: Limits = Limits("reading the files of one run", cpu=120, wall=240, memory=1536 * MIB)
    artifact: Limits = Limits("reading one artifact", cpu=20, wall=60, memory=1024 * MIB)
    comparison: Limits = Limits("comparing one suite", cpu=120, wall=240, memory=1536 * MIB)
    renames: Limits = Limits("searching for renamed tests", cpu=20, wall=60, memory=1024 * MIB)
    log: Limits = Limits("reading one log", cpu=20, wall=60, memory=512 * MIB)
    source: Limits = Limits("reading one test file", cpu=20, wall=60, memory=512 * MIB)
    tests: Limits = Limits("comparing the tests of one commit", cpu=60, wall=120, memory=1536 * MIB)

    @property
    def longest(self) -> float:
        """The seconds after which any job has ended."""
        limits: list[Limits] = [getattr(self, kind.name) for kind in fields(self)]
        return max(kind.wall for kind in limits)
