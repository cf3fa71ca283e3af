"""Health checks of one process: each has a name, and passes or gives a reason.

`GET /readyz` and the metrics show them. To add a check, pass it on where `bot.app.serve` joins the parts.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from bot.core.parts import PartKey


@dataclass(frozen=True, slots=True)
class HealthCheck:
    """One check. `find` returns None or the reason in words; it is called for every request, so it must not block.

    A `fatal` check makes `/readyz` answer 503; any other check only warns. A check is fatal if this process cannot work
    at all while it fails, never if it is about one repository or one lab.
    """

    name: str
    find: Callable[[], str | None]
    fatal: bool = True


@dataclass(frozen=True, slots=True)
class CheckResult:
    """The result of one check of what the bot depends on. `remedy` says what to do, and is empty if it passes."""

    check: str
    text: str
    remedy: str


LastResults = Callable[[], Sequence[CheckResult]]
"""Returns the results of the last round of checks in this process; it runs no check."""
CHECK_RESULTS = PartKey[LastResults]("the results of the last round of checks")


@dataclass(frozen=True, slots=True)
class Health:
    """The failing checks at one moment: the reason of each, by its name."""

    failures: Mapping[str, str]
    warnings: Mapping[str, str]

    @property
    def reason(self) -> str:
        """Return why the process is not ready, empty if it is."""
        return "; ".join(self.failures.values())


def health_of(checks: Sequence[HealthCheck]) -> Health:
    """Run every check once."""
    failing = [(check, reason) for check in checks if (reason := check.find()) is not None]
    return Health(
        failures={check.name: reason for check, reason in failing if check.fatal},
        warnings={check.name: reason for check, reason in failing if not check.fatal},
    )
