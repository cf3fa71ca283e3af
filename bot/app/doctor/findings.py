"""What a check found."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from enum import StrEnum
from typing import Any


class Check(StrEnum):
    """What is checked, in the order in which it is shown."""

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


def together(check: Check, problems: list[tuple[str, str]], fine: str) -> Finding:
    """Return one finding for all problems of a check, each a text and its remedy; `fine` where there are none."""
    if not problems:
        return Finding(check, fine)
    texts, remedies = (list(dict.fromkeys(column)) for column in zip(*problems, strict=True))
    return Finding(check, "; ".join(texts), "; ".join(remedies))
