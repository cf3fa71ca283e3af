"""What handlers write into our own records."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from bot.github.access import NO_PERMISSIONS, WritePermissions
from bot.plan.effect import Applied, EffectContext


@dataclass(frozen=True, slots=True)
class Remember:
    """Keep a small JSON object under a key, in place of what stood there."""

    permissions: ClassVar[WritePermissions] = NO_PERMISSIONS

    key: str
    value: Mapping[str, Any]

    @property
    def target(self) -> str:
        """The key."""
        return f"record:{self.key}"

    async def apply(self, context: EffectContext) -> Applied:
        """Write the record; writing the same twice is the same as once."""
        await context.records.put(self.key, dict(self.value))
        return Applied(f"remembered {self.key}")
