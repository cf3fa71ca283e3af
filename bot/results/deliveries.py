"""What happens in the bucket and in time, as deliveries of our own: durable, in order, each once.

Their names have a dot, which no event of GitHub's may have: the webhook's door lets none of them in.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict
from typing import Any, NamedTuple

from bot.aws.bucket import Arrival
from bot.core.events import check_lock
from bot.core.payload import Payload
from bot.results.model import RunKey, TargetKey
from bot.results.state import Due

RUN_ARRIVED = "nightjar.run"
"""A manifest lies in the bucket."""
CHECK_DUE = "nightjar.check"
"""What is known of a commit on a target has changed, and its check run is to say so."""


class Announcement(NamedTuple):
    """A delivery of our own, as the engine accepts it."""

    guid: str
    event: str
    body: str
    lock: str


def run_arrived(arrival: Arrival, key: RunKey, repository_id: int, time: str = "") -> Announcement:
    """Announce a manifest; `time` tells one look at a run from the next, where it has to be looked at again."""
    what = f"{arrival.bucket}\0{arrival.key}\0{arrival.version}"
    guid = f"run:{hashlib.sha256(what.encode()).hexdigest()[:32]}"
    return _announcement(f"{guid}:{time}" if time else guid, RUN_ARRIVED, key.about, repository_id, run=asdict(arrival))


def arrival_of(payload: Payload) -> Arrival:
    """Read from a payload of ours which manifest lies in the bucket."""
    run = payload.at("run")
    return Arrival(run.string("bucket"), run.string("key"), run.string("version"))


def check_due(due: Due, repository_id: int) -> Announcement:
    """Announce that a check run is to be written."""
    about = due.about
    guid = f"check:{repository_id}:{about.lab}:{about.target}:{due.sha}:{due.revision}"
    hardware = {"lab": about.lab, "target": about.target, "sha": due.sha, "revision": due.revision, "over": due.over}
    return _announcement(f"{guid}:over" if due.over else guid, CHECK_DUE, about, repository_id, hardware=hardware)


def check_of(guid: str, repository: str) -> tuple[TargetKey, str]:
    """Read from the GUID of a delivery of ours which check run it was about: of which target, at which commit."""
    _, _, lab, target, sha, *_ = guid.split(":")
    return TargetKey(repository, lab, target), sha


def check_again(about: TargetKey, sha: str, repository_id: int, asked: str) -> Announcement:
    """Announce that a check run is to be written anew, whatever it says now; `asked` names who asked and when."""
    guid = f"check:{repository_id}:{about.lab}:{about.target}:{sha}:{asked}"
    hardware = {"lab": about.lab, "target": about.target, "sha": sha, "revision": 0, "over": False, "again": True}
    return _announcement(guid, CHECK_DUE, about, repository_id, hardware=hardware)


def due_of(payload: Payload) -> Due:
    """Read from a payload of ours which check run is to be written."""
    hardware = payload.at("hardware")
    about = TargetKey(payload.string("repository", "full_name"), hardware.string("lab"), hardware.string("target"))
    return Due(about, hardware.string("sha"), hardware.integer("revision"), hardware.flag("over"))


def _announcement(guid: str, event: str, about: TargetKey, repository_id: int, **more: Any) -> Announcement:
    body = {"action": "", "repository": {"id": repository_id, "full_name": about.repository}, **more}
    return Announcement(guid, event, json.dumps(body), check_lock(repository_id, about.check_name))
