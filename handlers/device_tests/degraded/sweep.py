"""Check regularly whether targets must be degraded or restored, and announce it.

Any replica may do that: the GUID of an announcement names the change, so it is handled once.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable
from typing import TYPE_CHECKING

from bot.core.events import Repository
from bot.core.parts import PartKey
from bot.engine.internal import announce
from bot.engine.sweeps import HOUR, hours_between, only_logged
from bot.github.pull_heads import repository_id_of
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

TICK = "*/5 * * * *"
"""When the sweep runs."""
SETTLED_SECONDS = HOUR
"""Seconds for which the bucket must have been read without a gap: after an outage of ours, runs wait."""
GAP_SECONDS = 2 * HOUR
"""After a gap of so many seconds, uploads of labs may not have been ingested yet."""


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
        """Return whether there are labs, or targets that were degraded before app.yaml lost their lab."""
        return any(labs_of(settings) for settings in self._config.repositories.values()) or bool(
            await self._records.under(DEGRADED)
        )

    async def tick(self) -> str:
        """Evaluate all targets; return what was done, for the log."""
        announced = 0
        for repository in self._config.repositories:
            with only_logged(texts.SWEEP_FAILED, repository=repository):
                announced += await self._evaluate(repository)
        return texts.SWEEP_DONE.format(announced=announced)

    async def _evaluate(self, repository: str) -> int:
        repository_id, moment = await repository_id_of(self._records, repository), self._clock()
        if repository_id is None or not await self._is_settled(repository, moment):
            return 0
        judgements = await judge_targets(self._config, self._records, self._store, repository, repository_id, moment)
        announced = 0
        for judgement in judgements:
            if judgement.new_state is None or not judgement.must_report:
                continue
            # The hour gives the issue a new chance if it could not be written.
            change = f"{judgement.new_state.sha}:{judgement.new_state.restored}:{hours_between(0.0, moment)}"
            digest = hashlib.sha256(change.encode()).hexdigest()[:16]
            event = TargetChanged(judgement.target.lab, judgement.target.target, moment, digest)
            announced += await announce(
                self._accept, TARGET_CHANGED, Repository(repository_id, repository, None), event
            )
        return announced

    async def _is_settled(self, repository: str, moment: float) -> bool:
        """Return whether results that the store lacks were really not sent: the bucket was read for long enough."""
        config = self._config.repository(repository)
        # Without labs, targets are only restored (`without_requests`), which needs no results.
        results = config.of(LAB_RESULTS) if config is not None else None
        if results is None:
            return True
        listed = await self._records.get(LISTED.of(repository.lower()))
        # While the bucket cannot be read, a run that the store lacks may be in it.
        if listed is None or moment - listed.at > GAP_SECONDS + results.poll_seconds:
            return False
        key = JUDGED.of(repository.lower())
        last = await self._records.get(key)
        # After an outage of the bot, earlier uploads are still being ingested: none of them counts as missing.
        since = moment if last is None or moment - last.at > GAP_SECONDS else last.since
        await self._records.put(key, JudgedTargets(moment, since))
        return moment - since >= SETTLED_SECONDS


DEGRADED_SWEEP = PartKey[DegradedSweep]("degraded-sweep")
