"""Internal events: a run arrived, a check run is pending. They are durable, in order, and handled once."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass

from nightjar_formats.model import TargetKey, escaped_target

from bot.aws.bucket import Arrival
from bot.core.events import Payload, check_lock
from bot.engine.internal import InternalEvent
from bot.results.state import PendingCheck


@dataclass(frozen=True, slots=True)
class RunArrived:
    """A manifest arrived in the bucket. `time` distinguishes later checks of the run; it is empty for the first."""

    lab: str
    target: str
    arrival: Arrival
    time: str = ""

    @property
    def guid(self) -> str:
        """Identify the manifest, and which check of it this is."""
        manifest = f"{self.arrival.bucket}\0{self.arrival.key}\0{self.arrival.version}"
        guid = f"run:{hashlib.sha256(manifest.encode()).hexdigest()[:32]}"
        return f"{guid}:{self.time}" if self.time else guid


@dataclass(frozen=True, slots=True)
class CheckEvent:
    """A check run must be written, because the results of a commit on a target have changed.

    `over`: no more results are expected. `again`: a person asked to write the check run even if nothing changed;
    `asked` names the person and the time.
    """

    lab: str
    target: str
    sha: str
    revision: int
    over: bool = False
    again: bool = False
    asked: str = ""

    @classmethod
    def of(cls, pending: PendingCheck) -> CheckEvent:
        """Return the event for a check run that the store lists as pending."""
        return cls(pending.target.lab, pending.target.target, pending.sha, pending.revision, pending.over)

    def target_in(self, payload: Payload) -> TargetKey:
        """Return the target, of the repository that the payload of the event names."""
        return TargetKey(payload.string("repository", "full_name"), self.lab, self.target)


def _check_guid(repository: int, event: CheckEvent) -> str:
    target = escaped_target(event.target)
    guid = f"check:{repository}:{event.lab}:{target}:{event.sha}:{event.asked or event.revision}"
    return f"{guid}:over" if event.over else guid


def _lock(repository: int, event: RunArrived | CheckEvent) -> str:
    return check_lock(repository, TargetKey("", event.lab, event.target).check_name)


RUN_ARRIVED = InternalEvent("nightjar.run", RunArrived, guid=lambda _, run: run.guid, lock=_lock)
CHECK_EVENT = InternalEvent("nightjar.check", CheckEvent, guid=_check_guid, lock=_lock)


def check_event_in(payload: Payload) -> PendingCheck:
    """Return the pending check run that the payload of a `CHECK_EVENT` describes."""
    event = CHECK_EVENT.read(payload)
    return PendingCheck(event.target_in(payload), event.sha, event.revision, event.over)
