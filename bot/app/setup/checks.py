"""The last page of the set-up, in the process that serves by then: the doctor's checks, and the first delivery."""

from __future__ import annotations

import asyncio
import shlex
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from aiohttp import web

from bot.app.doctor.findings import Finding
from bot.app.setup.gate import SETUP
from bot.app.setup.shown import CHECKS, CREATED, INSTALL, LABS, START, TEMPLATES, SetupFiles, see_other, show, shown
from bot.engine.jobs.definitions import OWN_EVENT
from bot.engine.jobs.journal import DeliveryRecord
from bot.engine.sql.errors import DatabaseFailure
from handlers.results.config import LAB_RESULTS

if TYPE_CHECKING:
    from bot.app.serve import Bot
    from bot.config import Config

EVERY = 5.0
"""Seconds between two rounds of checks while somebody looks at them: a round is a few requests to GitHub."""
NEWEST = 50
"""Newest deliveries among which the first one from GitHub is searched for; the others are our own events."""


@dataclass
class SetupChecks:
    """The page of the checks; `clock` is in seconds from any starting point."""

    files: SetupFiles
    clock: Callable[[], float] = time.monotonic
    _found: list[Finding] = field(default_factory=list)
    _found_at: float | None = None
    _arrived: DeliveryRecord | None = None
    _checking: asyncio.Lock | None = None

    @property
    def templates(self) -> Path:
        """Return the folder of the templates."""
        return TEMPLATES

    def join(self, app: web.Application, bot: Bot) -> None:
        """Add the routes to the application of a running bot."""
        self._checking = asyncio.Lock()

        async def checks(request: web.Request) -> web.StreamResponse:
            if (entering := self.files.gate.enter(request)) is not None:
                return entering
            self.files.gate.check(request)
            found, arrived = await self._findings(bot), await self._first_delivery(bot)
            context = {
                "findings": found,
                "failed": sum(not one.ok for one in found),
                "arrived": arrived,
                "hook": f"{bot.config.public_url}/webhook" if bot.config.public_url else "",
                "repositories": list(bot.config.repositories),
                "wait": arrived is None,
                "labs": add_commands(bot.config),
                "env": str(self.files.env.path),
                "config": str(self.files.config.path),
            }
            return await show(request, "setup_checks.html", context)

        async def done(request: web.Request) -> web.StreamResponse:
            entering = self.files.gate.enter(request)
            return see_other(CHECKS) if entering is None else entering

        app.router.add_get(CHECKS, shown(checks))
        for path in (SETUP, CREATED, INSTALL, LABS):
            app.router.add_get(path, shown(done))
        for path in (START, LABS):
            app.router.add_post(path, shown(done))

    async def _findings(self, bot: Bot) -> list[Finding]:
        assert self._checking is not None
        async with self._checking:
            if self._found_at is None or self.clock() - self._found_at >= EVERY:
                self._found = await bot.watch.doctor.examine()
                self._found_at = self.clock()
        return self._found

    async def _first_delivery(self, bot: Bot) -> DeliveryRecord | None:
        """Return a delivery from GitHub, None while there is none or the database is unavailable."""
        if self._arrived is None:
            try:
                recent = await bot.engine.journal.recent(NEWEST)
            except DatabaseFailure:
                return None
            self._arrived = next((one for one in reversed(recent) if OWN_EVENT not in one.event), None)
        return self._arrived


def add_commands(config: Config) -> list[str]:
    """Return the commands that give each lab of app.yaml its token."""
    return [
        shlex.join(["nightjar", "lab", "add", lab, *words_of_targets(keys.targets), "--repo", repository])
        for repository, results in config.configured.with_feature(LAB_RESULTS)
        for lab, keys in results.labs.items()
    ]


def words_of_targets(targets: Iterable[str]) -> list[str]:
    """Return the options that name targets."""
    return [word for target in targets for word in ("--target", target)]
