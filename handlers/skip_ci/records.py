"""What `ci/skip` says on the heads of pull requests."""

from __future__ import annotations

from dataclasses import dataclass

from bot.engine.records import Record


@dataclass(frozen=True, slots=True)
class ShownSkip:
    """The status on a pull request's head: whether CI may skip it, and why."""

    sha: str
    reason: str
    value: bool
    description: str
    run_again: bool = False
    """Whether the status says that CI has to run again, because the decision about this head changed."""


SKIP_CI = Record("skip-ci", 1, ShownSkip, "what `ci/skip` says on the head of a pull request", days=365)
