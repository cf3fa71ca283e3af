"""Look for measurements that moved when a nightly run is complete, and announce that people should hear of it.

The search is an effect of the plan about regressions, so a run without measurements costs one statement and no job.
"""

from __future__ import annotations

import hashlib
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import sqlalchemy as sa
from nightjar_formats.model import TargetKey

from bot.config.types import seconds
from bot.core.events import Repository
from bot.engine.internal import InternalEvent, announce
from bot.github.access import NO_PERMISSIONS, WritePermissions
from bot.plan.effect import Applied, EffectContext
from bot.results.compare.quarantine import quarantine_at
from bot.results.deliveries import check_event_in
from bot.results.measurements.moved import MovedSeries, MoveState
from bot.results.service import RESULTS
from bot.results.settings.measurements import ChangeLimits
from bot.results.store.lists.run_lists import admission_of_commit
from bot.results.store.measurements.moved import confirmed_series, moved_by_id
from bot.results.store.measurements.search import find_moves, has_new_nights, store_moves
from handlers.regressions import texts
from handlers.regressions.config import REGRESSIONS as REGRESSIONS_KEY
from handlers.regressions.groups import active_targets
from handlers.regressions.moved.groups import MOVED_GROUP, GroupUpdate, updated_groups
from handlers.regressions.records import REGRESSIONS
from handlers.results.config import LAB_RESULTS, QUARANTINE, RENAMES, labs_of

if TYPE_CHECKING:
    from bot.config.model import RepositoryConfig
    from bot.engine.records import Records
    from bot.plan.handler import Context
    from bot.results.service import ResultsService

LONGEST_AGE = 30 * 86400.0
"""Seconds after which a commit is too old for a message, as for regressions."""
MOST_RECENT = 5_000
"""The newest changes of a repository that may be reported."""


@dataclass(frozen=True, slots=True)
class MovesArrived:
    """Messages about measurements are outdated; `asked` identifies the search after which they are."""

    asked: str


MOVES_ARRIVED = InternalEvent(
    "nightjar.moves",
    MovesArrived,
    guid=lambda repository, event: f"moves:{repository}:{event.asked}",
    lock=lambda repository, _: f"moves:{repository}",
)


@dataclass(frozen=True, slots=True)
class SearchMoves:
    """Look for changes of measurements on a lab's target (`on`), whose nightly run of the commit `sha` is complete."""

    permissions: ClassVar[WritePermissions] = NO_PERMISSIONS

    lab: str
    on: str
    sha: str

    @property
    def effect_key(self) -> str:
        """The target and the commit."""
        return f"moves:{self.lab}/{self.on}:{self.sha}"

    async def apply(self, context: EffectContext) -> Applied:
        """Store the changes, and announce messages that they make outdated."""
        service, results = context.part(RESULTS), context.config.of(LAB_RESULTS)
        target = service.canonical(TargetKey(context.repository.full_name, self.lab, self.on))
        limits = results.change_limits(self.lab, self.on) if results else ChangeLimits()
        searches = await service.read(find_moves, target, limits, context.config.of(RENAMES).aliases)
        changed = bool(searches) and await service.write(store_moves, searches)
        await self._announce(context, service)
        template = texts.MOVES_STORED if changed else texts.NO_NEW_MOVES
        return Applied(template.format(where=target.full_name, sha=self.sha[:7]), changed)

    async def _announce(self, context: EffectContext, service: ResultsService) -> None:
        """Announce outdated messages, whatever the search changed: an earlier try may have crashed before this."""
        regressions = context.config.of(REGRESSIONS_KEY)
        if regressions is None:
            return
        moment = service.store.clock()
        updates = await load_updates(context.records, service, context.repository, context.config, moment)
        if not updates:
            return
        # Once for each search: the same message may be outdated in the same way again.
        digest = hashlib.sha256(context.intent.encode()).hexdigest()[:32]
        repository = Repository(context.repository.id, context.repository.full_name, None)
        not_before = None
        if any(update.old is None for update in updates):
            evaluated = await context.records.under(REGRESSIONS, context.repository.id)
            other_targets = active_targets(evaluated, moment).keys() - {f"{self.lab}:{self.on}"}
            # By the database's clock, as the engine reads it.
            not_before = time.time() + seconds(regressions.wait) if other_targets else None
        await announce(context.announce, MOVES_ARRIVED, repository, MovesArrived(digest), not_before=not_before)


async def search_effects(context: Context) -> tuple[SearchMoves, ...]:
    """Return the effect that searches the target of a check event; none if no nightly run with measurements is new."""
    event, results = check_event_in(context.delivery.payload), context.config.of(LAB_RESULTS)
    lab = results.labs.get(event.target.lab) if results else None
    if results is None or lab is None or event.target.target not in lab.targets or not event.over:
        return ()
    service = context.part(RESULTS)
    target, limits = service.canonical(event.target), results.change_limits(event.target.lab, event.target.target)
    if not await service.read(_needs_search, target, event.sha, limits):
        return ()
    return (SearchMoves(target.lab, target.target, event.sha),)


def _needs_search(connection: sa.Connection, target: TargetKey, sha: str, limits: ChangeLimits) -> bool:
    if not has_new_nights(connection, target, limits):
        return False
    admission = admission_of_commit(connection, target.repository, sha)
    return admission is not None and admission.mainline


async def load_updates(
    records: Records, service: ResultsService, repository: Repository, config: RepositoryConfig, moment: float
) -> list[GroupUpdate]:
    """Return the groups of changes whose messages are outdated at a moment, in seconds since 1970."""
    groups = list((await records.under(MOVED_GROUP, repository.id)).values())
    name = service.canonical_name(repository.full_name)
    ids = {member.id for group in groups for member in group.members}
    stored, recent = await service.read(_changes, name, ids, moment - LONGEST_AGE)
    configured = {
        f"{lab}/{target}": quarantine_at(config.of(QUARANTINE), TargetKey(name, lab, target), moment)[0]
        for lab, settings in labs_of(config).items()
        for target in settings.targets
    }

    def is_lasting(change: MovedSeries) -> bool:
        quarantine = configured.get(change.target.full_name)
        return change.state is MoveState.OPEN and quarantine is not None and quarantine.of(change.test) is None

    return updated_groups(groups, stored, recent, is_lasting, moment)


def _changes(
    connection: sa.Connection, repository: str, ids: set[str], since: float
) -> tuple[dict[str, MovedSeries], list[MovedSeries]]:
    recent = confirmed_series(connection, repository, MOST_RECENT, since)
    return moved_by_id(connection, ids), recent
