"""The outcomes of a plan's effects: the input of a handler's conclude stage."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

from bot.core.adapters import adapter_of
from bot.engine.processor import EffectState

if TYPE_CHECKING:
    from bot.plan.effect import Effect

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class EffectOutcome:
    """The outcome of one effect; `text` is for people if it failed, and for operators if not."""

    effect: Effect
    state: EffectState
    text: str
    value: Any = None
    """The value of `Applied`, as JSON; see `returned`."""
    simulated: bool = False
    """Whether this is a dry run, which assumes that the effect is applied."""

    def returned(self, kind: type[T], simulated: T) -> T | None:
        """Return the value of `Applied`, None if it had none; in a dry run, `simulated`."""
        if self.simulated:
            return simulated
        return None if self.value is None else adapter_of(kind).validate_python(self.value)


@dataclass(frozen=True, slots=True)
class EffectOutcomes:
    """The outcomes of all effects of a plan, in their order.

    `again`: people may already have seen an earlier conclusion, or the answer to a failed plan.
    """

    ended: tuple[EffectOutcome, ...] = ()
    again: bool = False

    @property
    def failures(self) -> list[EffectOutcome]:
        """The outcomes of effects that were not applied; the text of each gives the reason to people."""
        return [outcome for outcome in self.ended if outcome.state.is_failure]

    def of(self, kind: type[Effect]) -> EffectOutcome | None:
        """Return the outcome of the first effect of a kind, or None if the plan had no such effect."""
        return next((outcome for outcome in self.ended if isinstance(outcome.effect, kind)), None)
