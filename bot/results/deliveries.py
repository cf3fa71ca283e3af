"""What happens in the bucket and in time, as internal events: durable, in order, each once."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass

from nightjar_formats.model import TargetKey, escaped_target

from bot.aws.bucket import Arrival
from bot.core.events import check_lock
from bot.core.payload import Payload
from bot.engine.internal import InternalEvent
from bot.results.state import PendingCheck


@dataclass(frozen=True, slots=True)
class RunArrived:
    """A manifest in the bucket, of a target. `time` distinguishes the checks of one run; empty for the first."""

    lab: str
    target: str
    arrival: Arrival
    time: str = ""

    @property
    def guid(self) -> str:
        """Name the manifest and the check of it."""
        what = f"{self.arrival.bucket}\0{self.arrival.key}\0{self.arrival.version}"
        guid = f"run:{hashlib.sha256(what.encode()).hexdigest()[:32]}"
        return f"{guid}:{self.time}" if self.time else guid


@dataclass(frozen=True, slots=True)
class CheckEvent:
    """A check run that is to be written, as what is known about a commit on a target has changed.

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
    def of(cls, event: PendingCheck) -> CheckEvent:
        """Return the check run that the store says is pending."""
        return cls(event.about.lab, event.about.target, event.sha, event.revision, event.over)

    @property
    def is_of(self) -> tuple[str, str, str]:
        """Name the check run: lab, target and commit."""
        return self.lab, self.target, self.sha


def _check_guid(repository: int, event: CheckEvent) -> str:
    target = escaped_target(event.target)
    guid = f"check:{repository}:{event.lab}:{target}:{event.sha}:{event.asked or event.revision}"
    return f"{guid}:over" if event.over else guid


def _lock(repository: int, about: RunArrived | CheckEvent) -> str:
    return check_lock(repository, TargetKey("", about.lab, about.target).check_name)


RUN_ARRIVED = InternalEvent("nightjar.run", RunArrived, guid=lambda _, run: run.guid, lock=_lock)
CHECK_EVENT = InternalEvent("nightjar.check", CheckEvent, guid=_check_guid, lock=_lock)


def check_event_in(payload: Payload) -> PendingCheck:
    """Read from a payload of ours which check run is to be written."""
    event = CHECK_EVENT.read(payload)
    about = TargetKey(payload.string("repository", "full_name"), event.lab, event.target)
    return PendingCheck(about, event.sha, event.revision, event.over)
