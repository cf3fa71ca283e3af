"""The request to mute a test, as an event and as a record."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass

from bot.engine.internal import InternalEvent
from bot.engine.records import Record

DAYS = 180
"""Days for which the last request about a test is stored, longer than the longest mute."""
BRANCH = "nightjar/mute-{digest}"


@dataclass(frozen=True, slots=True)
class MuteRequest:
    """A person's request to mute a test until a day (YYYY-MM-DD); `target` is LAB/TARGET, empty for all of them.

    `person` is the ID of the person on GitHub, `login` their name when they pressed the button, and `at` that moment in
    ISO 8601.
    """

    test: str
    target: str
    owner: str
    reason: str
    issue: str
    until: str
    person: int
    login: str
    at: str

    @property
    def digest(self) -> str:
        """Return what identifies the test on its target."""
        return digest_of(self.test, self.target)

    @property
    def branch(self) -> str:
        """Return the branch of the pull request."""
        return BRANCH.format(digest=self.digest)


@dataclass(frozen=True, slots=True)
class MuteOutcome:
    """The last request about a test; `problem` says why it has no pull request.

    `pull` is the pull request that was open already, which the bot left as it is (`earlier`). The number of a new one
    is in the record of its branch (`bot.effects.pulls.PULL_BRANCH`).
    """

    request: MuteRequest
    pull: int = 0
    problem: str = ""
    earlier: bool = False


def digest_of(test: str, target: str) -> str:
    """Return what identifies a test on a target: 16 hexadecimal digits."""
    return hashlib.sha256(f"{test}\n{target}".encode(errors="replace")).hexdigest()[:16]


MUTED_TEST = Record("muted-test", 1, MuteOutcome, "the last request to mute a test, and its pull request", days=DAYS)
MUTE_EVENT = InternalEvent(
    "nightjar.mute",
    MuteRequest,
    guid=lambda repository, request: f"mute:{repository}:{request.digest}:{request.at}",
    lock=lambda repository, request: f"mute:{repository}:{request.digest}",
    action=lambda _: "requested",
)
