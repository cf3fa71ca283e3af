"""Find the quarantined tests of a target on a day, from the lists in app.yaml and in the repository's own file.

Systems that leave such tests out lose them: nobody owns the test, people forget the reason, and a broken lab looks
healthy. So an item must have an owner, a reason, an issue and a last day. No button sets it: *Mute* opens a pull
request (`handlers/mute`), so each change is reviewed, and the history of the file says who decided.

- A failure of a quarantined test does not count as a new failure, but every check run lists it, and if it is new, the
  check run stays neutral. So no quarantine turns a failure into a success.
- It is not reported as a regression, and not stored as reported either. If the test still fails when the quarantine
  ends, the next nightly run reports it, because no message has reported it yet.
- The bot compares the last day with today whenever it writes a report. Nothing runs at midnight; *Re-check* updates an
  older check run.
- If a regression was reported before its test was quarantined, it stays in the issue until it recovers.
- The list must have the current name of a test: update it when a test is renamed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
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
QuarantineOf = Callable[[TargetKey], Quarantine]


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
