"""Jobs for the tests."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from nightjar_formats.model import TargetKey

from handlers.device_tests import transitions
from handlers.device_tests.commit_jobs import commit_job_id
from handlers.device_tests.model import NOBODY, DeviceJob, DeviceJobState, FewTests, JobOrigin, Someone
from handlers.device_tests.queue import LimitsOf, TargetLimits

NOW = 1_800_000_000.0
SHA, OTHER_SHA = "a" * 40, "b" * 40
HOUR = 3600.0
HUBOT, OCTOCAT, MONA = Someone(1, "hubot"), Someone(2, "octocat"), Someone(3, "mona")


def new_job(name: str = "job", **changes: Any) -> DeviceJob:
    """Return a job before its submission."""
    fields: dict[str, Any] = {
        "id": name,
        "repository_id": 7,
        "repository": "octocat/compiler",
        "pull_request": 42,
        "sha": SHA,
        "lab": "example-lab",
        "target": "hexagon-v73",
        "suites": (),
        "tier": 2,
        "origin": JobOrigin.COMMAND,
        "requested_by": HUBOT,
        "requested_at": NOW,
        "state": DeviceJobState.WAITING,
        "expires_at": 0.0,
        **changes,
    }
    return DeviceJob(**fields)


def few_tests_job(purpose: str, **changes: Any) -> DeviceJob:
    """Return a job of the bot for a purpose, before its submission."""
    fields: dict[str, Any] = {
        "pull_request": 0,
        "tier": 3,
        "origin": JobOrigin.BOT,
        "requested_by": NOBODY,
        "purpose": purpose,
        "few_tests": FewTests(("a.py::test_a",), 10),
        **changes,
    }
    return new_job(commit_job_id(fields.get("repository_id", 7), purpose), **fields)


def queued(name: str = "job", **changes: Any) -> DeviceJob:
    """Return a job that a lab may claim."""
    return transitions.submitted(new_job(name, **changes), approval_needed=False)


def leased(
    name: str = "job", *, lease: str = "digest", slot: int = 0, moment: float = NOW, **changes: Any
) -> DeviceJob:
    """Return a job that is leased to a lab."""
    return transitions.hand_out(queued(name, **changes), lease, slot, 2 * HOUR, moment)


def limits(slots: Mapping[str, int] | int = 1, timeout: float = 2 * HOUR) -> LimitsOf:
    """Return app.yaml's limits for all targets."""

    def limits_of(key: TargetKey) -> TargetLimits | None:
        if isinstance(slots, int):
            return TargetLimits(slots, timeout)
        return TargetLimits(slots[key.target], timeout) if key.target in slots else None

    return limits_of
