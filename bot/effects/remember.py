"""Writes to our own records, stored together with their plan."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self, TypeVar

from bot.effects import texts
from bot.engine.records import Key, StoredValue
from bot.plan.effect import Applied, StoreContext, StoredEffect

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class StoreRecord(StoredEffect):
    """Store a value under a key, replacing any other; without a value, remove the record."""

    key: str
    stored: StoredValue | None

    @classmethod
    def of(cls, key: Key[T], value: T | None) -> Self:
        """Return the effect that stores a value, or removes the record for None."""
        return cls(key.name, None if value is None else StoredValue.of(key, value))

    @property
    def effect_key(self) -> str:
        """The key."""
        return f"record:{self.key}"

    async def store(self, context: StoreContext) -> Applied:
        """Store or remove the record."""
        context.changes.write(self.key, self.stored)
        return Applied((texts.RECORD_REMOVED if self.stored is None else texts.RECORD_STORED).format(key=self.key))
