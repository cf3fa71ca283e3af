"""What happens in the bucket and in time, as internal events: durable, in order, each once."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass

from bot.aws.bucket import Arrival
from bot.core.events import check_lock
from bot.core.payload import Payload
from bot.engine.internal import InternalEvent
from bot.results.model import TargetKey
from bot.results.state import Due


@dataclass(frozen=True, slots=True)
class RunArrived:
    """A manifest that lies in the bucket, of a target. `time` tells one look at the run from the next, if any."""

    lab: str
    target: str
    arrival: Arrival
    time: str = ""

    @property
    def guid(self) -> str:
        """Name the manifest and the look."""
        what = f"{self.arrival.bucket}\0{self.arrival.key}\0{self.arrival.version}"
        guid = f"run:{hashlib.sha256(what.encode()).hexdigest()[:32]}"
        return f"{guid}:{self.time}" if self.time else guid


@dataclass(frozen=True, slots=True)
class CheckDue:
    """A check run that is to be written, as what is known of a commit on a target has changed.

    `asked` names who asked for it `again`, whatever it says now, and when.
    """

    lab: str
    target: str
    sha: str
    revision: int
    over: bool = False
    again: bool = False
    asked: str = ""

    @classmethod
    def of(cls, due: Due) -> CheckDue:
        """Return the check run that the store says is due."""
        return cls(due.about.lab, due.about.target, due.sha, due.revision, due.over)

    @property
    def is_of(self) -> tuple[str, str, str]:
        """Name the check run: lab, target and commit."""
        return self.lab, self.target, self.sha


def _check_guid(repository: int, due: CheckDue) -> str:
    guid = f"check:{repository}:{due.lab}:{due.target}:{due.sha}:{due.asked or due.revision}"
    return f"{guid}:over" if due.over else guid


def _lock(repository: int, about: RunArrived | CheckDue) -> str:
    return check_lock(repository, TargetKey("", about.lab, about.target).check_name)


RUN_ARRIVED = InternalEvent("nightjar.run", RunArrived, guid=lambda _, run: run.guid, lock=_lock)
CHECK_DUE = InternalEvent("nightjar.check", CheckDue, guid=_check_guid, lock=_lock)


def due_of(payload: Payload) -> Due:
    """Read from a payload of ours which check run is to be written."""
    due = CHECK_DUE.read(payload)
    about = TargetKey(payload.string("repository", "full_name"), due.lab, due.target)
    return Due(about, due.sha, due.revision, due.over)
