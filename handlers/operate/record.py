"""Who asked for replays on the pages: part of the audit log."""

from __future__ import annotations

from dataclasses import dataclass

from bot.core.events import Person
from bot.engine.records import Record, Records
from bot.engine.upkeep import FAILED_DAYS

MOST_REPLAYS = 50
"""Of one delivery that are remembered, the newest."""


@dataclass(frozen=True, slots=True)
class AskedReplay:
    """Who asked for a replay, by ID and by the login of that moment; `at` is in seconds since 1970."""

    person: int
    login: str
    at: float


@dataclass(frozen=True, slots=True)
class AskedReplays:
    """The replays of one delivery that people asked for, oldest first."""

    replays: tuple[AskedReplay, ...]


ASKED_REPLAYS = Record(
    "asked-replays", 1, AskedReplays, "who asked for replays of a delivery on the pages", days=FAILED_DAYS
)


async def note_replay(records: Records, guid: str, person: Person, at: float) -> None:
    """Store that a person asks for a replay."""
    asked = AskedReplay(person.id, person.login, at)

    def added(known: AskedReplays | None) -> AskedReplays:
        before = known.replays if known else ()
        return AskedReplays((*before, asked)[-MOST_REPLAYS:])

    await records.update(ASKED_REPLAYS.of(guid), added)


async def replays_asked(records: Records, guid: str) -> tuple[AskedReplay, ...]:
    """Return who asked for replays of a delivery."""
    known = await records.get(ASKED_REPLAYS.of(guid))
    return known.replays if known else ()
