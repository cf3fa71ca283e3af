"""Writes to our own records, stored together with their plan."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self, TypeVar

from bot.effects import texts
from bot.engine.records import Key, Record, StoredValue
from bot.plan.effect import Applied, StoreContext, StoredEffect

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class ShownChange:
    """The last change of a record that stored pages of a repository show besides results; no two have one text."""

    change: str


SHOWN_CHANGE = Record("shown-change", 1, ShownChange, "the last change of a record that stored pages show", days=None)
"""By the repository's name in lower case."""


def note_shown_change(context: StoreContext, key: str) -> None:
    """Note in the transaction that stores a record that pages show it: those stored before it are outdated."""
    change = ShownChange(f"{key} {context.intent}")
    context.changes.put(SHOWN_CHANGE.of(context.repository.full_name.lower()), change)


@dataclass(frozen=True, slots=True)
class StoreRecord(StoredEffect):
    """Store a value under a key, replacing any other; without a value, remove the record.

    `is_shown`: stored pages show it.
    """

    key: str
    stored: StoredValue | None
    is_shown: bool = False

    @classmethod
    def of(cls, key: Key[T], value: T | None, *, is_shown: bool = False) -> Self:
        """Return the effect that stores a value, or removes the record for None."""
        return cls(key.name, None if value is None else StoredValue.of(key, value), is_shown)

    @property
    def effect_key(self) -> str:
        """The key."""
        return f"record:{self.key}"

    async def store(self, context: StoreContext) -> Applied:
        """Store or remove the record."""
        context.changes.write(self.key, self.stored)
        if self.is_shown:
            note_shown_change(context, self.key)
        return Applied((texts.RECORD_REMOVED if self.stored is None else texts.RECORD_STORED).format(key=self.key))
