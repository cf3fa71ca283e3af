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
    """The items that apply to one target, by exact name and by prefix; an exact name takes precedence."""

    exact: dict[str, QuarantinedTest]
    prefixes: tuple[tuple[str, QuarantinedTest], ...]

    def of(self, test: str) -> QuarantinedTest | None:
        """Return the item that names a test, or None."""
        if found := self.exact.get(test):
            return found
        return next((item for prefix, item in self.prefixes if test.startswith(prefix)), None)


NO_QUARANTINE = Quarantine({}, ())


def quarantine_at(items: Iterable[QuarantinedTest], about: TargetKey, moment: float) -> tuple[Quarantine, Quarantine]:
    """Return the current quarantines of a target at a moment (seconds since 1970), and those that have ended."""
    today = f"{datetime.fromtimestamp(moment, UTC):%Y-%m-%d}"
    here = [item for item in items if not item.targets or about.full_name in item.targets]
    return (
        _collected(item for item in here if item.until >= today),
        _collected(item for item in here if item.until < today),
    )


def _collected(items: Iterable[QuarantinedTest]) -> Quarantine:
    exact: dict[str, QuarantinedTest] = {}
    prefixes: list[tuple[str, QuarantinedTest]] = []
    for item in items:
        if item.test.endswith(STAR):
            prefixes.append((item.test.removesuffix(STAR), item))
        else:
            exact.setdefault(item.test, item)
    # The longest prefix names a test most closely.
    prefixes.sort(key=lambda pair: -len(pair[0]))
    return Quarantine(exact, tuple(prefixes))
