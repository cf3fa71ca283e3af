"""Whether the newest app.yaml is in use: a running process keeps the last good one."""

from __future__ import annotations

from dataclasses import dataclass

from bot.core.parts import PartKey


@dataclass(slots=True)
class NewestConfig:
    """Why the newest app.yaml is not in use, for operators, and where its first error is; both empty if it is."""

    problem: str = ""
    place: str = ""


NEWEST_CONFIG = PartKey[NewestConfig]("the newest app.yaml")
