"""Find the quarantined tests of a target on a day, from the list in app.yaml."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from nightjar_formats.model import TargetKey

from bot.core.aliases import STAR

if TYPE_CHECKING:
    from bot.results.settings.quarantine import QuarantinedTest


@dataclass(frozen=True)
class Quarantine:
    """The quarantined tests of one target, by exact name and by prefix; an exact name takes precedence."""

    exact: dict[str, QuarantinedTest]
    prefixes: tuple[tuple[str, QuarantinedTest], ...]

    def of(self, test: str) -> QuarantinedTest | None:
        """Return the item that names a test, or None."""
        if item := self.exact.get(test):
            return item
        return next((item for prefix, item in self.prefixes if test.startswith(prefix)), None)


NO_QUARANTINE = Quarantine({}, ())


def quarantine_at(items: Iterable[QuarantinedTest], target: TargetKey, moment: float) -> tuple[Quarantine, Quarantine]:
    """Return the quarantine of a target at a moment (seconds since 1970), and the items that have ended by then."""
    today = f"{datetime.fromtimestamp(moment, UTC):%Y-%m-%d}"
    items_of_target = [item for item in items if not item.targets or target.full_name in item.targets]
    return (
        _quarantine_of(item for item in items_of_target if item.until >= today),
        _quarantine_of(item for item in items_of_target if item.until < today),
    )


def _quarantine_of(items: Iterable[QuarantinedTest]) -> Quarantine:
    exact: dict[str, QuarantinedTest] = {}
    prefixes: list[tuple[str, QuarantinedTest]] = []
    for item in items:
        if item.test.endswith(STAR):
            prefixes.append((item.test.removesuffix(STAR), item))
        else:
            exact.setdefault(item.test, item)
    # The longest matching prefix wins.
    prefixes.sort(key=lambda pair: -len(pair[0]))
    return Quarantine(exact, tuple(prefixes))
