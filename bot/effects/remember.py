"""Writes to our own records."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Self, TypeVar

from bot.effects import texts
from bot.engine.records import Key, Records, StoredValue
from bot.github.access import NO_PERMISSIONS, WritePermissions
from bot.plan.effect import Applied, EffectContext

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class StoreRecord:
    """Store a value under a key, replacing any other; without a value, remove the record."""

    permissions: ClassVar[WritePermissions] = NO_PERMISSIONS

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

    async def apply(self, context: EffectContext) -> Applied:
        """Write the record, which is idempotent."""
        await self.write(context.records)
        return Applied((texts.RECORD_REMOVED if self.stored is None else texts.RECORD_STORED).format(key=self.key))

    async def write(self, records: Records) -> None:
        """Write the record."""
        if self.stored is None:
            await records.remove_name(self.key)
        else:
            await records.write(self.key, self.stored)
