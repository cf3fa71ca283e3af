"""The permissions of tokens. Each token gets only what its caller needs.

https://docs.github.com/en/rest/apps/apps#create-an-installation-access-token-for-an-app
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from bot.github.errors import AccessPaused

ACTIONS: Final = "actions"
CHECKS: Final = "checks"
CONTENTS: Final = "contents"
ISSUES: Final = "issues"
MEMBERS: Final = "members"
METADATA: Final = "metadata"
PULL_REQUESTS: Final = "pull_requests"
STATUSES: Final = "statuses"
WORKFLOWS: Final = "workflows"
"""Optional: needed only for changes to `.github/workflows`."""

_TITLES = {STATUSES: "Commit statuses", PULL_REQUESTS: "Pull requests"}

READ, WRITE = "read", "write"
_LEVELS = (READ, WRITE, "admin")

_ONLY_READ = frozenset({MEMBERS})
"""Permissions that a write needs only at the level `read`: to request a team's review, the App must see teams."""

WritePermissions = frozenset[str]
"""The permissions that a caller needs in order to write, such as `{ISSUES}`."""
NO_PERMISSIONS: WritePermissions = frozenset()


@dataclass(frozen=True, slots=True)
class Access:
    """Permissions with their levels; hashable, so that it can be part of a token's key.

    It has at least one permission: for an empty set, GitHub makes a token with all permissions of the App.
    """

    levels: tuple[tuple[str, str], ...]

    @classmethod
    def writing(cls, permissions: WritePermissions) -> Access:
        """Return the permissions for a write, each at the level `write` unless `read` is enough."""
        return cls(((METADATA, READ), *((name, READ if name in _ONLY_READ else WRITE) for name in sorted(permissions))))

    def within(self, granted: Mapping[str, str]) -> Access:
        """Return these permissions without those that an installation has not granted: GitHub refuses them."""
        allowed = tuple((name, level) for name, level in self.levels if _includes(granted.get(name), level))
        return Access(allowed or ((METADATA, READ),))


IDENTITY = Access(((METADATA, READ),))
"""The permissions to look up a repository or an account."""
READING = Access(
    tuple((name, READ) for name in (ACTIONS, CHECKS, CONTENTS, ISSUES, MEMBERS, METADATA, PULL_REQUESTS, STATUSES))
)
"""The permissions of plans, pages and readers of results, which write nothing."""


@dataclass(frozen=True, slots=True)
class InstalledRepository:
    """The ID of a repository, and of the installation that gives the App access to it.

    With `paused`, the App has no access for now: every request about the repository raises this error, and none is
    sent.
    """

    installation: int
    repository: int
    paused: AccessPaused | None = None


def permission_title(name: str, level: str) -> str:
    """Name a permission as GitHub's settings pages do: `Commit statuses: write` for `statuses` and `write`."""
    return f"{_TITLES.get(name) or name.replace('_', ' ').capitalize()}: {level}"


def _includes(granted: str | None, level: str) -> bool:
    return granted in _LEVELS and _LEVELS.index(granted) >= _LEVELS.index(level)
