"""The repositories of app.yaml: their IDs, their names on GitHub, and why the bot leaves some of them alone.

A repository's ID survives renames and transfers, so everything from GitHub is matched by ID. The record
`known-repository:<id>` has the name in app.yaml, the name on GitHub, and the reason if the bot leaves it alone. If
another repository gets the old name on GitHub, it has another ID, and the settings of the first don't apply to it.

A repository that matches a pattern of app.yaml has its name on GitHub in both places. It is in `config.repositories`
once it is known here (`docs/decisions/patterns-of-repositories.md`).
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Any

import structlog
from pydantic import BeforeValidator

from bot.core.events import Delivery, Payload, Repository
from bot.engine.records import Record
from bot.github.pull_heads import REPOSITORY_ID, RepositoryId, repository_id_of
from bot.github.repositories.privacy import CalledPrivate, is_called_private

if TYPE_CHECKING:
    from bot.config import Config, RepositoryConfig
    from bot.config.repositories import ConfiguredRepositories
    from bot.engine.records import Key, RecordReader, Records


class LeftAlone(StrEnum):
    """Why the bot leaves a repository alone. The values are durable: records hold them."""

    NO = ""
    ARCHIVED = "archived"
    DELETED = "deleted"
    REMOVED = "removed"
    UNINSTALLED = "uninstalled"
    SUSPENDED = "suspended"


ARCHIVED = "it is archived on GitHub"
DELETED = "it was deleted on GitHub"
REMOVED = "the App was taken off it"
UNINSTALLED = "the App was uninstalled from its account"
SUSPENDED = "the App's installation on its account is suspended"
AWAY_TEXTS = {
    LeftAlone.NO: "",
    LeftAlone.ARCHIVED: ARCHIVED,
    LeftAlone.DELETED: DELETED,
    LeftAlone.REMOVED: REMOVED,
    LeftAlone.UNINSTALLED: UNINSTALLED,
    LeftAlone.SUSPENDED: SUSPENDED,
}
_STORED_AS_TEXT = {
    "it is archived on GitHub": LeftAlone.ARCHIVED,
    "it was deleted on GitHub": LeftAlone.DELETED,
    "the App was taken off it": LeftAlone.REMOVED,
    "the App was uninstalled from its account": LeftAlone.UNINSTALLED,
    "the App's installation on its account is suspended": LeftAlone.SUSPENDED,
}
"""Version 1 of the record stored these sentences. They must not change, even if the texts above do."""

AWAY_BY_ACTION = {"archived": LeftAlone.ARCHIVED, "deleted": LeftAlone.DELETED, "unarchived": LeftAlone.NO}
"""How the action of a `repository` event changes whether the bot works on the repository; other actions change nothing.
https://docs.github.com/en/webhooks/webhook-events-and-payloads#repository"""
NO_LONGER_OURS = frozenset({LeftAlone.DELETED, LeftAlone.REMOVED, LeftAlone.UNINSTALLED})
"""Reasons after which another repository may get the name, for example if somebody creates it again."""
PAUSED = frozenset({LeftAlone.SUSPENDED, LeftAlone.REMOVED})
"""Reasons that an owner can undo within the same installation: jobs of the repository wait until then."""
PRIVATIZED = "privatized"
"""The action of the `repository` event that says that a repository became private."""
# https://docs.github.com/en/webhooks/webhook-events-and-payloads#installation
AWAY_BY_INSTALLATION = {
    "deleted": LeftAlone.UNINSTALLED,
    "suspend": LeftAlone.SUSPENDED,
    "unsuspend": LeftAlone.NO,
    "created": LeftAlone.NO,
}

TAKEN = "another repository now has a name that app.yaml lists, so the bot ignores it"

log: structlog.stdlib.BoundLogger = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class KnownRepository:
    """A repository that app.yaml names, or that matches a pattern. `away` says why its timers are stopped."""

    id: int
    name: str
    full_name: str
    away: Annotated[LeftAlone, BeforeValidator(lambda value: _STORED_AS_TEXT.get(value, value))] = LeftAlone.NO

    @property
    def reason(self) -> str:
        """Why its timers are stopped, as text for people; empty while they run."""
        return AWAY_TEXTS[self.away]

    @property
    def renamed(self) -> bool:
        """Whether its name on GitHub differs from that in app.yaml."""
        return self.name.lower() != self.full_name.lower()


KNOWN_REPOSITORY = Record(
    "known-repository", 2, KnownRepository, "a repository's names in app.yaml and on GitHub, by its id", days=None
)


class Repositories:
    """The repositories of one configuration.

    `release` runs the jobs that wait for GitHub now: it is called when an owner has changed the App's access.
    """

    def __init__(self, config: Config, records: Records, release: Callable[[], Awaitable[None]] | None = None) -> None:
        self._configured = config.configured
        self._records = records
        self._release = release or _release_nothing
        self._called_private = CalledPrivate(records)
        self._seen: dict[int, KnownRepository] = {}
        self.changed: list[int] = []
        """IDs of the repositories that match patterns and that `see` has stored since the list was last emptied."""

    async def all(self) -> list[KnownRepository]:
        """Return every repository of app.yaml that the bot knows. Reads many records, so only timers should call it."""
        stored = await self._records.under(KNOWN_REPOSITORY)
        repositories = [configured_repository(self._configured, repository) for repository in stored.values()]
        return [repository for repository in repositories if repository is not None]

    async def get(self, repository_id: int, records: RecordReader | None = None) -> KnownRepository | None:
        """Return the repository with an ID; None if the bot has not seen it, or app.yaml no longer lists it.

        Whoever has fetched its record passes `records`.
        """
        repository = await (records or self._records).get(KNOWN_REPOSITORY.of(repository_id))
        return configured_repository(self._configured, repository) if repository is not None else None

    async def name_of(self, repository: Repository) -> str | None:
        """Return a repository's name in app.yaml, None if it is not listed."""
        configured = self._configured
        stored = self._seen.get(repository.id) or await self._records.get(KNOWN_REPOSITORY.of(repository.id))
        known_repository = configured_repository(self._configured, stored) if stored is not None else None
        if known_repository is not None:
            # Another process may already know that the repository has left the owner of its pattern.
            is_still_configured = configured.names(known_repository.name) or configured.entry_for(repository.full_name)
            return known_repository.name if is_still_configured else None
        is_named = configured.names(repository.full_name)
        # A payload may be older than the record that says that the repository has left the owner of its pattern.
        if not is_named and (stored is not None or configured.entry_for(repository.full_name) is None):
            return None
        if await self.holder(repository.full_name, repository.id):
            return None
        # Only GitHub's payloads come from repositories without a record, and only if the App is installed there.
        configured.know(repository.id, repository.full_name)
        return repository.full_name

    async def holder(self, name: str, repository_id: int) -> KnownRepository | None:
        """Return another repository that has this name in app.yaml; None if the repository with this ID may have it."""
        holder = await self.named(name)
        is_other = holder is not None and holder.id != repository_id and holder.away not in NO_LONGER_OURS
        return holder if is_other else None

    async def named(self, name: str) -> KnownRepository | None:
        """Return the repository that has this name in app.yaml; None if the bot has not seen it.

        Reads two records, however many repositories there are: the ID that is stored for a name in app.yaml is that of
        the repository that got the name last, because `see` stores both.
        """
        repository_id = await repository_id_of(self._records, name)
        repository = await self.get(repository_id) if repository_id is not None else None
        return repository if repository is not None and repository.name.lower() == name.lower() else None

    async def see(self, repository_id: int, full_name: str, *, name: str = "", away: LeftAlone | None = None) -> None:
        """Store a repository's names and state on GitHub if app.yaml lists it, by `name` or its full name, or used to.

        With `away` None, the stored reason stays.
        """
        if away is not None:
            self._seen.pop(repository_id, None)  # another process may have stored another reason
        old = self._seen.get(repository_id) or await self.get(repository_id)
        configured_name = self._name_for(full_name, name, old)
        if not configured_name:
            if old is not None:
                await self._store_departure(old, full_name)
            return
        if old is None and (holder := await self.holder(configured_name, repository_id)) is not None:
            log.warning(TAKEN, repository=configured_name, id=repository_id, named=holder.id, now=holder.full_name)
            return
        old_reason = old.away if old else LeftAlone.NO
        new = KnownRepository(repository_id, configured_name, full_name, old_reason if away is None else away)
        if new == self._seen.get(repository_id):
            return
        if new != old:
            changes: dict[Key[Any], object] = {KNOWN_REPOSITORY.of(repository_id): new}
            # The name of a repository that is no longer ours may belong to another one by now.
            if new.away not in NO_LONGER_OURS:
                changes[REPOSITORY_ID.of(configured_name.lower())] = RepositoryId(repository_id)
            await self._records.put_all(changes)
            _report(old, new)
            if not self._configured.names(configured_name):
                self.changed.append(repository_id)
        configured_repository(self._configured, new)
        self._seen[repository_id] = new
        if old is not None and old.away in PAUSED and old.away != new.away:
            await self._release()

    def _name_for(self, full_name: str, name: str, old: KnownRepository | None) -> str:
        """Return the name in app.yaml of a repository, empty if it has none; a name of its own wins over a pattern."""
        configured = self._configured
        own_names = filter(configured.names, (full_name, name, old.name if old else ""))
        return next(own_names, full_name if configured.entry_for(full_name) is not None else "")

    async def _store_departure(self, repository: KnownRepository, full_name: str) -> None:
        """Store the new name of a repository that has left its pattern, so that older payloads don't bring it back."""
        self._seen.pop(repository.id, None)
        self._configured.forget(repository.id)
        await self._records.put(KNOWN_REPOSITORY.of(repository.id), replace(repository, full_name=full_name))
        self.changed.append(repository.id)
        log.info("repository no longer matches a pattern", repository=repository.name, now=full_name)

    async def note(self, delivery: Delivery) -> None:
        """Store the names and states of the repositories in a delivery. Raises `PayloadError` if a field is missing."""
        payload, action = delivery.payload, delivery.action
        if delivery.event == "installation":
            await self._see_all(delivery, "repositories", AWAY_BY_INSTALLATION.get(action))
            if action == "deleted":
                await self._see_uninstalled(payload.text("installation", "account", "login"))
            # After every action: a job may wait although the bot never received the event `suspend`.
            await self._release()
        elif delivery.event == "installation_repositories":
            await self._see_all(delivery, "repositories_removed", LeftAlone.REMOVED)
            await self._see_all(delivery, "repositories_added", LeftAlone.NO)
        elif delivery.event == "repository":
            repository = delivery.repository
            self._seen.pop(repository.id, None)  # another process may have stored a newer state
            await self.see(repository.id, repository.full_name, away=AWAY_BY_ACTION.get(action))
        # Events with a dot in their names are internal: their bodies repeat stored data.
        elif "." not in delivery.event and delivery.names_repository:
            repository = delivery.repository
            if repository.id not in self._seen or self._seen[repository.id].full_name != repository.full_name:
                await self.see(repository.id, repository.full_name)
        if "." not in delivery.event and delivery.names_repository:
            changed = delivery.event == "repository" and action == PRIVATIZED
            await self._note_private(delivery, payload.at("repository"), changed=changed)

    async def is_called_private(self, name: str, records: RecordReader) -> bool:
        """Return whether a payload has called a repository of app.yaml private."""
        return bool(await self._called_private.delivery_of(name, records))

    async def _see_all(self, delivery: Delivery, key: str, away: LeftAlone | None) -> None:
        for repository in delivery.payload.items(key) if delivery.payload.has(key) else ():
            self._seen.pop(repository.integer("id"), None)
            await self.see(repository.integer("id"), repository.string("full_name"), away=away)
            await self._note_private(delivery, repository)

    async def _see_uninstalled(self, account: str) -> None:
        """Store that the account's paused repositories cannot come back; the event of the uninstallation omits them."""
        for repository in await self.all():
            owner = repository.full_name.partition("/")[0]
            if repository.away in PAUSED and owner.lower() == account.lower():
                await self.see(repository.id, repository.full_name, away=LeftAlone.UNINSTALLED)

    async def _note_private(self, delivery: Delivery, described: Payload, *, changed: bool = False) -> None:
        """Store that a payload describes a repository of app.yaml as private. No payload makes one public."""
        if not is_called_private(described):
            return
        name = await self.name_of(Repository(described.integer("id"), described.string("full_name"), None))
        if name is not None:
            await self._called_private.note(name, delivery.guid, changed=changed)


async def reasons_left_alone(records: Records, ids: Mapping[str, int]) -> dict[str, str]:
    """Return why the bot leaves repositories alone, by their names in app.yaml, without those on which it works.

    `ids` are their IDs by name, in lower case (`repository_ids`).
    """
    keys = {name: KNOWN_REPOSITORY.of(repository_id) for name, repository_id in ids.items()}
    stored = await records.get_some(keys.values())
    return {
        name: repository.reason
        for name, key in keys.items()
        if (repository := stored.get(key.name)) is not None and repository.away and repository.name.lower() == name
    }


def configured_repository(
    configured: ConfiguredRepositories[RepositoryConfig], stored: KnownRepository
) -> KnownRepository | None:
    """Return a stored repository with its name in app.yaml as it is now, None if no entry applies to it.

    One that matches a pattern becomes part of `config.repositories`, or leaves it.
    """
    if configured.names(stored.name):
        configured.forget(stored.id)
        return stored
    if stored.away in (LeftAlone.DELETED, LeftAlone.UNINSTALLED):
        configured.forget(stored.id)
        has_entry = configured.entry_for(stored.full_name) is not None
    else:
        has_entry = configured.know(stored.id, stored.full_name, listed=stored.away is not LeftAlone.REMOVED)
    if not has_entry:
        return None
    return stored if stored.name == stored.full_name else replace(stored, name=stored.full_name)


async def _release_nothing() -> None:
    """Do nothing, for processes that run no jobs."""


def _report(old: KnownRepository | None, new: KnownRepository) -> None:
    if new.renamed and (old is None or old.full_name != new.full_name):
        log.warning("repository was renamed: change its name in app.yaml", repository=new.name, now=new.full_name)
    if new.away and (old is None or old.away != new.away):
        log.warning("repository is left alone", repository=new.name, reason=new.reason)
    elif old is not None and old.away and not new.away:
        log.info("repository is back", repository=new.name)
