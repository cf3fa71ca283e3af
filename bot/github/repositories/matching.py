"""Keep `config.repositories` complete: the repositories that match a pattern of app.yaml.

Each process adds those that its deliveries name (`bot.github.repositories.known`). This module adds the others: those
that are stored from earlier, those that other processes store meanwhile, and those that GitHub lists as installed. A
process without patterns reads and writes nothing here.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import TYPE_CHECKING

import structlog

from bot.config.repositories import owner_of
from bot.core.listing import counted
from bot.engine.records import Record
from bot.engine.sql.errors import DatabaseFailure
from bot.engine.sweeps import only_logged
from bot.github.repositories.known import (
    KNOWN_REPOSITORY,
    NO_LONGER_OURS,
    KnownRepository,
    LeftAlone,
    Repositories,
    configured_repository,
)

if TYPE_CHECKING:
    from bot.config import Config
    from bot.engine.records import Records
    from bot.github.repositories.installed import InstalledRepositories

SIX_HOURLY = "23 */6 * * *"
"""The cron expression of the listing on GitHub, which finds what no webhook told."""
REFRESH_SECONDS = 60.0
"""Seconds until a process knows the repositories that another process has stored."""
MOST_CHANGES = 1000
"""Changes by ID. A process that has missed more reads all repositories."""

NOT_LISTED = "cannot list the repositories of an installation"
LISTED = "{repositories} listed, {changed} changed"

log: structlog.stdlib.BoundLogger = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class PatternChanges:
    """How many changes of repositories that match patterns were ever stored, and the IDs of the last ones."""

    count: int = 0
    last: tuple[int, ...] = ()

    def with_changes(self, ids: list[int]) -> PatternChanges:
        """Return the record after further changes."""
        return PatternChanges(self.count + len(ids), (*self.last, *ids)[-MOST_CHANGES:])

    def since(self, count: int) -> tuple[int, ...] | None:
        """Return the IDs that have changed since there were `count` changes; None if they are no longer stored."""
        missed = self.count - count
        return self.last[len(self.last) - missed :] if 0 <= missed <= len(self.last) else None


PATTERN_CHANGES = Record(
    "pattern-changes", 1, PatternChanges, "the last changes of repositories that match patterns of app.yaml", days=None
)


async def load_matching(config: Config, records: Records) -> None:
    """Add the known repositories that match patterns to `config.repositories`. Raises DatabaseFailure."""
    if not config.configured.owners:
        return
    config.configured.forget_all()
    async for page in records.pages(KNOWN_REPOSITORY):
        for repository in page:
            configured_repository(config.configured, repository)


class MatchingRepositories:
    """The repositories of one process that match patterns. `repositories` are those that its deliveries change."""

    def __init__(self, config: Config, records: Records, repositories: Repositories) -> None:
        self._config = config
        self._configured = config.configured
        self._records = records
        self._repositories = repositories
        self._count = 0

    async def load(self) -> None:
        """Read all known repositories. Raises DatabaseFailure."""
        if not self._configured.owners:
            return
        # Read first: what changes while the pages are read is read again by the next refresh.
        self._count = (await self._records.get(PATTERN_CHANGES.of()) or PatternChanges()).count
        await load_matching(self._config, self._records)

    async def refresh(self) -> None:
        """Publish what this process has changed, and read what the others have. Raises DatabaseFailure."""
        if not self._configured.owners:
            return
        await self._publish()
        changes = await self._records.get(PATTERN_CHANGES.of()) or PatternChanges()
        ids = changes.since(self._count)
        if ids is None:
            await self.load()
            return
        stored = await self._records.get_some([KNOWN_REPOSITORY.of(repository_id) for repository_id in set(ids)])
        for repository in stored.values():
            configured_repository(self._configured, repository)
        self._count = changes.count

    async def _publish(self) -> None:
        ids = self._repositories.changed[:]
        if ids:
            await self._records.update(
                PATTERN_CHANGES.of(), lambda stored: (stored or PatternChanges()).with_changes(ids)
            )
            del self._repositories.changed[: len(ids)]

    async def run(self) -> None:
        """Refresh once a minute until cancelled."""
        while self._configured.owners:
            await asyncio.sleep(REFRESH_SECONDS)
            try:
                await self.refresh()
            except DatabaseFailure as error:
                log.warning("cannot read the repositories of patterns", reason=str(error))

    async def discover(self, installed: InstalledRepositories) -> str:
        """Store what GitHub lists for the owners of patterns; return a line for the log. Raises GitHub's errors.

        One request for a hundred installations, and one for a hundred repositories of these owners. An owner whose
        list cannot be read is logged, and what is known of it stays.
        """
        known: dict[str, dict[int, KnownRepository]] = {owner: {} for owner in self._configured.owners}
        async for page in self._records.pages(KNOWN_REPOSITORY):
            for repository in page:
                configured_repository(self._configured, repository)
                if (known_of_owner := known.get(owner_of(repository.full_name))) is not None:
                    known_of_owner[repository.id] = repository
        installations = {item.account.lower(): item for item in await installed.read_installations()}
        count = changed = 0
        for owner, stored in known.items():
            installation = installations.get(owner)
            if installation is None:
                changed += await self._leave_alone(stored, LeftAlone.UNINSTALLED)
            elif installation.suspended:
                changed += await self._leave_alone(stored, LeftAlone.SUSPENDED)
            else:
                with only_logged(NOT_LISTED, owner=owner):
                    for listed in await installed.read_repositories(installation.id):
                        count += 1
                        if listed.id not in stored and self._configured.entry_for(listed.full_name) is None:
                            continue
                        away = LeftAlone.ARCHIVED if listed.archived else LeftAlone.NO
                        same = stored.pop(listed.id, None)
                        if same is None or (same.full_name, same.away) != (listed.full_name, away):
                            await self._repositories.see(listed.id, listed.full_name, away=away)
                            changed += 1
                    changed += await self._leave_alone(stored, LeftAlone.REMOVED)
        await self._publish()
        return LISTED.format(repositories=counted(count, "repository", "repositories"), changed=changed)

    async def _leave_alone(self, stored: dict[int, KnownRepository], away: LeftAlone) -> int:
        """Store why the bot leaves repositories alone that match patterns; return how many this changes.

        Those that app.yaml names itself are the doctor's to check.
        """
        changed = [
            repository
            for repository in stored.values()
            if repository.away != away
            and repository.away not in NO_LONGER_OURS
            and not self._configured.names(repository.name)
            and self._configured.entry_for(repository.full_name) is not None
        ]
        for repository in changed:
            await self._repositories.see(repository.id, repository.full_name, away=away)
        return len(changed)
