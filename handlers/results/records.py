"""When buckets were listed and check runs retried, and which failures people ignore, or tried to."""

from __future__ import annotations

from dataclasses import dataclass

from bot.engine.records import Record
from bot.results.report.findings import IgnoredFailures


@dataclass(frozen=True, slots=True)
class Listed:
    """Times of the last listing of a repository's results (`at`) and of the `next`, in seconds since 1970.

    `searched` is when the bot last searched for folders whose letter case differs from the name in app.yaml.
    """

    at: float = 0.0
    next: float = 0.0
    searched: float = 0.0


@dataclass(frozen=True, slots=True)
class RecentlyListed:
    """The time of the next listing of recent commits of a repository, in seconds since 1970."""

    next: float = 0.0


@dataclass(frozen=True, slots=True)
class FailedChecks:
    """The time of the next search for failed check runs, in seconds since 1970, and the newest failed `job`."""

    next: float = 0.0
    job: int = 0


@dataclass(frozen=True, slots=True)
class RefusedPress:
    """Who pressed *Ignore* at a commit without an effect, when (ISO 8601), and why not (Markdown)."""

    by: str
    sha: str
    at: str
    why: str


@dataclass(frozen=True, slots=True)
class StoredCodeOwners:
    """The text of a repository's CODEOWNERS, and git's hash of it."""

    sha: str
    text: str


LISTED = Record("results-listed", 1, Listed, "when the results of a repository were listed", days=None)
RECENTLY_LISTED = Record(
    "results-recently-listed", 1, RecentlyListed, "when the recent results of a repository are listed next", days=None
)
FAILED_CHECKS = Record("results-failed", 1, FailedChecks, "the failed check runs that were tried again", days=None)
IGNORED = Record(
    "hardware-ignored", 1, IgnoredFailures, "the failures on a target that a pull request ignores", days=365
)
REFUSED_PRESS = Record(
    "hardware-ignore-refused",
    1,
    RefusedPress,
    "the last press of *Ignore* on a target of a pull request, if it was refused",
    days=90,
)
CODE_OWNERS = Record(
    "codeowners", 1, StoredCodeOwners, "the CODEOWNERS file of a repository's newest nightly commit", days=None
)
"""By the repository's name in lower case."""
