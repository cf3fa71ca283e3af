"""Effects: one write each, described as data. An effect may be applied several times, but writes only once."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Protocol, TypeVar

from bot.github.access import NO_PERMISSIONS, WritePermissions
from bot.github.addresses import NO_PAGE, GitHubPage

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from bot.config import RepositoryConfig
    from bot.core.events import Repository
    from bot.core.parts import PartKey, PartMap
    from bot.engine.changes import Changes
    from bot.engine.internal import Announce
    from bot.engine.records import Records
    from bot.engine.writes import Writes
    from bot.github.app import AppIdentity
    from bot.github.client import GitHub


P = TypeVar("P")


@dataclass(frozen=True, slots=True)
class Applied:
    """The outcome of an effect: `text` for the audit log; `changed` is False if nothing had to change."""

    text: str
    changed: bool = True
    value: object = None
    """What the handler's conclude stage reads: an enum or a frozen dataclass of plain JSON values."""
    page: GitHubPage = NO_PAGE
    """The page where GitHub shows what was created, changed or left unchanged; empty if it has no page for it."""


@dataclass(frozen=True, slots=True)
class EffectContext:
    """What an effect may use to apply itself."""

    intent: str
    repository: Repository
    config: RepositoryConfig
    github: GitHub
    me: AppIdentity
    records: Records
    parts: PartMap
    announce: Announce
    writes: Writes
    """For writes that don't go to GitHub and must not be sent twice; `github` does this by itself."""
    new_changes: Callable[[], Changes]
    elsewhere: Callable[[str], Awaitable[tuple[int, GitHub]]]
    """Gives the ID of another repository, by its `owner/name`, and a client that writes there with this effect's
    permissions. Raises `NotInstalled`."""

    def part(self, key: PartKey[P]) -> P:
        """Return what a feature or a module shares. Raises LookupError if nobody provides it."""
        return self.parts[key]


@dataclass(frozen=True, slots=True)
class StoreContext:
    """What a `StoredEffect` may use."""

    intent: str
    repository: Repository
    changes: Changes
    parts: PartMap

    def part(self, key: PartKey[P]) -> P:
        """Return what a feature or a module shares. Raises LookupError if nobody provides it."""
        return self.parts[key]


class ChangesSettings:
    """The base of an effect after which other settings may be in force for the repository."""

    __slots__ = ()


class Effect(Protocol):
    """One thing to be written to GitHub, a CI, or our own database.

    Effects are frozen dataclasses of plain JSON values, so that a plan can be stored, shown and replayed.
    """

    @property
    def permissions(self) -> WritePermissions:
        """The permissions that it writes to GitHub with, `NO_PERMISSIONS` for none: its client has these and no others.

        Most kinds of effects always need the same ones, and declare them as a class variable.
        """
        ...

    @property
    def effect_key(self) -> str:
        """Name what is written, unique within a plan; the same for the same intent."""
        ...

    async def apply(self, context: EffectContext) -> Applied:
        """Check whether the change exists already, merge twins that an unclear write created, then write.

        A try after an unclear write may be allowed to check only: see `bot.engine.writes`.

        Raises `TryAgain` if another try may succeed, `UserError` with a text for the person, or GitHub's refusal.
        """
        ...


class StoredEffect(ABC):
    """The base of effects that only change records and announce events: they are stored in the transaction of the plan.

    So they need no job. Otherwise they are effects like all others, shown in the dry run, on pages and in the audit.
    """

    __slots__ = ()
    permissions: ClassVar[WritePermissions] = NO_PERMISSIONS

    @property
    @abstractmethod
    def effect_key(self) -> str:
        """Name what is written, as in `Effect`."""

    @abstractmethod
    async def store(self, context: StoreContext) -> Applied:
        """Add what is to be written to the changes. It may be called again, if another job changes the same records."""

    async def apply(self, context: EffectContext) -> Applied:
        """Store the effect alone, for a job of an earlier release. Raises `Outdated`: the job then runs again."""
        changes = context.new_changes()
        applied = await self.store(StoreContext(context.intent, context.repository, changes, context.parts))
        await changes.store()
        return applied
