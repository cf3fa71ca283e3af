"""Store who asked for replays on the pages, as part of the audit log."""

from __future__ import annotations

from dataclasses import dataclass

from bot.core.events import Person
from bot.engine.records import Record, Records
from bot.engine.upkeep import FAILED_DAYS

MOST_REPLAYS = 50
"""The most requests that are stored for one delivery, the newest ones."""


@dataclass(frozen=True, slots=True)
class AskedReplay:
    """A request for a replay: the person's ID, their login at that time, and `at` in seconds since 1970."""

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


async def note_replay(records: Records, guid: str, person: Person, moment: float) -> None:
    """Store that a person asked for a replay of a delivery."""
    replay = AskedReplay(person.id, person.login, moment)

    def added(stored: AskedReplays | None) -> AskedReplays:
        earlier = stored.replays if stored else ()
        return AskedReplays((*earlier, replay)[-MOST_REPLAYS:])

    await records.update(ASKED_REPLAYS.of(guid), added)


async def replays_asked(records: Records, guid: str) -> tuple[AskedReplay, ...]:
    """Return who asked for replays of a delivery, oldest first."""
    stored = await records.get(ASKED_REPLAYS.of(guid))
    return stored.replays if stored else ()
