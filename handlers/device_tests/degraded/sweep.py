"""Check regularly whether targets must be degraded or restored, and announce it.

Any replica may do that: the GUID of an announcement names the change, so it is handled once.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable, Collection
from typing import TYPE_CHECKING

from bot.core.events import Repository
from bot.core.parts import PartKey
from bot.engine.internal import announce
from bot.engine.records import Key
from bot.engine.sweeps import HOUR, hours_between, only_logged
from bot.github.pull_heads import repository_ids
from handlers.device_tests.degraded import texts
from handlers.device_tests.degraded.records import DEGRADED, JUDGED, JudgedTargets
from handlers.device_tests.degraded.reporting import TARGET_CHANGED, TargetChanged
from handlers.device_tests.degraded.targets import judge_targets
from handlers.results.config import LAB_RESULTS, labs_of
from handlers.results.records import LISTED

if TYPE_CHECKING:
    from bot.config import Config
    from bot.engine.internal import Announce
    from bot.engine.records import Records
    from bot.results.store.store import ResultsStore

TICK = "*/15 * * * *"
"""When the sweep runs."""
SETTLED_SECONDS = HOUR
"""Seconds for which the bucket must have been read without a gap: after an outage of ours, runs wait."""
GAP_SECONDS = 2 * HOUR
"""After a gap of so many seconds, uploads of labs may not have been ingested yet."""
STORED_SECONDS = HOUR
"""Seconds after which the time of an evaluation is stored again, although nothing has changed."""


class DegradedSweep:
    """Evaluates the targets of all repositories."""

    def __init__(
        self,
        config: Config,
        records: Records,
        store: ResultsStore,
        *,
        accept: Announce,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._config = config
        self._records = records
        self._store = store
        self._accept = accept
        self._clock = clock

    async def has_work(self) -> bool:
        """Return whether `tick` would store or announce anything."""
        moment = self._clock()
        names = await self._names()
        settled, changes = await self._settled(names, moment)
        if changes:
            return True
        return any([await self._changes(name, names[name], moment) for name in settled])

    async def tick(self) -> str:
        """Evaluate all targets; return what was done, for the log."""
        announced, moment = 0, self._clock()
        names = await self._names()
        settled, changes = await self._settled(names, moment)
        await self._records.put_all(changes)
        for name in settled:
            with only_logged(texts.SWEEP_FAILED, repository=name):
                repository = Repository(names[name], name, None)
                for change in await self._changes(name, repository.id, moment):
                    announced += await announce(self._accept, TARGET_CHANGED, repository, change)
        return texts.SWEEP_DONE.format(announced=announced)

    async def _names(self) -> dict[str, int]:
        """Return the repositories with labs, or with targets that were degraded before they lost them, by their IDs."""
        with_labs = {name for name, settings in self._config.repositories.items() if labs_of(settings)}
        degraded = {int(key.partition(":")[0]) for key in await self._records.under(DEGRADED)}
        names = list(self._config.repositories) if degraded else list(with_labs)
        ids = await repository_ids(self._records, map(str.lower, names))
        known = {name: ids[name.lower()] for name in names if name.lower() in ids}
        return {name: number for name, number in known.items() if name in with_labs or number in degraded}

    async def _changes(self, repository: str, repository_id: int, moment: float) -> list[TargetChanged]:
        """Return the targets that must be degraded or restored."""
        changes = []
        for judgement in await judge_targets(
            self._config, self._records, self._store, repository, repository_id, moment
        ):
            if judgement.new_state is None or not judgement.must_report:
                continue
            # The hour gives the issue a new chance if it could not be written.
            change = f"{judgement.new_state.sha}:{judgement.new_state.restored}:{hours_between(0.0, moment)}"
            digest = hashlib.sha256(change.encode()).hexdigest()[:16]
            changes.append(TargetChanged(judgement.target.lab, judgement.target.target, moment, digest))
        return changes

    async def _settled(
        self, repositories: Collection[str], moment: float
    ) -> tuple[list[str], dict[Key[JudgedTargets], JudgedTargets]]:
        """Return the repositories whose missing results were really not sent, and the records to store about all.

        The bucket of such a repository was read for long enough.
        """
        # Without labs, targets are only restored (`without_requests`), which needs no results.
        settled, changes = [], dict[Key[JudgedTargets], JudgedTargets]()
        listed = await self._records.get_some([LISTED.of(name.lower()) for name in repositories])
        judged = await self._records.get_some([JUDGED.of(name.lower()) for name in repositories])
        for name in repositories:
            config = self._config.repository(name)
            results = config.of(LAB_RESULTS) if config is not None else None
            if results is None:
                settled.append(name)
                continue
            listing, key = listed.get(LISTED.of(name.lower()).name), JUDGED.of(name.lower())
            # While the bucket cannot be read, a run that the store lacks may be in it.
            if listing is None or moment - listing.at > GAP_SECONDS + results.poll_seconds:
                continue
            last = judged.get(key.name)
            # After an outage of the bot, earlier uploads are still being ingested: none of them counts as missing.
            since = moment if last is None or moment - last.at > GAP_SECONDS else last.since
            if last is None or last.since != since or moment - last.at >= STORED_SECONDS:
                changes[key] = JudgedTargets(moment, since)
            if moment - since >= SETTLED_SECONDS:
                settled.append(name)
        return settled, changes


DEGRADED_SWEEP = PartKey[DegradedSweep]("degraded-sweep")
