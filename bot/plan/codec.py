"""Effects as JSON and back: the form in which plans are stored, shown and replayed."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, cast

from bot.core.adapters import adapter_of
from bot.core.errors import DeclarationError, UnknownEffect
from bot.core.events import Json
from bot.plan.effect import Effect

TWO_KINDS = "two kinds of effects are named {kind}"


class Codec:
    """Encode and decode effects of the given kinds. The names of the kinds are durable."""

    def __init__(self, kinds: Iterable[type[Effect]]) -> None:
        self._kinds: dict[str, type[Effect]] = {}
        for kind in kinds:
            if kind.__name__ in self._kinds:
                raise DeclarationError(TWO_KINDS.format(kind=kind.__name__))
            self._kinds[kind.__name__] = kind

    @property
    def kinds(self) -> frozenset[str]:
        """Return the names of the kinds."""
        return frozenset(self._kinds)

    def encode(self, effect: Effect) -> dict[str, Any]:
        """Return the effect as JSON values, its kind under `kind`."""
        kind = type(effect).__name__
        return {"kind": kind, **adapter_of(self._kinds[kind]).dump_python(effect, mode="json")}

    def decode(self, stored: Json) -> Effect:
        """Return the effect that was stored. Raises `UnknownEffect` for a kind that this version does not have."""
        fields = dict(stored)
        kind = cast("str", fields.pop("kind"))
        if kind not in self._kinds:
            raise UnknownEffect(kind)
        return adapter_of(self._kinds[kind]).validate_python(fields)
