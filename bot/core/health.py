"""Health checks of one process: each has a name, and passes or gives a reason.

`GET /readyz` and the metrics show them. To add a check, pass it on where `bot.app.serve` joins the parts.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

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


class HealthRounds(Protocol):
    """The rounds of checks in this process."""

    checked_at: float | None
    """When the last round ended, in seconds since 1970; None before the first."""

    def results(self) -> Sequence[CheckResult]:
        """Return the results of the last round; it runs no check."""
        ...

    async def check_now(self) -> None:
        """Run a round of checks, and return when it has ended."""
        ...


HEALTH_ROUNDS = PartKey[HealthRounds]("the rounds of checks of what the bot depends on")


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
