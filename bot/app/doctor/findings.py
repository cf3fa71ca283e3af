"""Checks and their results."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, dataclass
from enum import StrEnum
from typing import Any


class Check(StrEnum):
    """The checks, in the order in which they are shown."""

    DATABASE = "database"
    CLOCK = "clock"
    APP = "app"
    KEY = "key"
    PERMISSIONS = "permissions"
    EVENTS = "events"
    HOOK = "hook"
    REPOSITORIES = "repositories"
    BUCKET = "bucket"
    JENKINS = "jenkins"
    SIGN_IN = "sign-in"


@dataclass(frozen=True, slots=True)
class Finding:
    """The result of one check. `remedy` says what to do, and is empty if the check passes."""

    check: Check
    text: str
    remedy: str = ""

    @property
    def ok(self) -> bool:
        """Whether the check passes."""
        return not self.remedy

    def as_json(self) -> dict[str, Any]:
        """Return the finding as JSON values."""
        return {**asdict(self), "check": str(self.check), "ok": self.ok}


def findings_of(check: Check, problems: Iterable[tuple[str, str]], ok: str) -> list[Finding]:
    """Return a finding for each problem of a check, a text and its remedy; one with the text `ok` without any."""
    return [Finding(check, *problem) for problem in dict.fromkeys(problems)] or [Finding(check, ok)]
