"""Checks and their results."""

from __future__ import annotations

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
    """The result of one check. `remedy` says what to do, and is empty where the check passes."""

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


def combined(check: Check, problems: list[tuple[str, str]], ok: str) -> Finding:
    """Combine the problems of a check, each a text and its remedy, in one finding; `ok` is its text without any."""
    if not problems:
        return Finding(check, ok)
    texts, remedies = (list(dict.fromkeys(column)) for column in zip(*problems, strict=True))
    return Finding(check, "; ".join(texts), "; ".join(remedies))
