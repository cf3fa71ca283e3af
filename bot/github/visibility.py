"""Find out whether a repository is public on GitHub, so that strangers may see what the bot knows about it."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import structlog

from bot.config.api import API
from bot.core.payload import Payload
from bot.github.privacy import CalledPrivate, is_called_public
from bot.github.pull_heads import repository_id_of

if TYPE_CHECKING:
    from bot.config import Config
    from bot.engine.records import Records
    from bot.github.client import GitHub

FRESH_SECONDS = 300.0
"""Seconds for which GitHub's answer is valid, even while GitHub is unavailable.

Refusing strangers for a while does less harm than showing them a private repository, and most of their pages need
GitHub anyway.
"""
PATIENCE = 3.0
"""Seconds that a visitor waits for GitHub's answer before the repository counts as private."""
AT_ONCE = 16
"""Requests to GitHub at a time: the first question is about all repositories."""
PAUSE = 60.0
"""Seconds from a failed request to the next."""

log: structlog.stdlib.BoundLogger = structlog.get_logger(__name__)


@dataclass(slots=True)
class _Known:
    """GitHub's answer and the time of the request, by the given clock. `public` is None without an answer."""

    public: bool | None = None
    at: float = 0.0
    not_before: float = 0.0
    asking: asyncio.Task[None] | None = None


class Visibility:
    """Say whether the repositories of app.yaml are public. Only GitHub's own answer makes one public.

    `github_for` returns a client for `owner/name`; `clock` counts seconds from any start. Each process has one.
    """

    def __init__(
        self,
        config: Config,
        github_for: Callable[[str], Awaitable[GitHub]],
        records: Records,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._config = config
        self._github_for = github_for
        self._records = records
        self._called_private = CalledPrivate(records)
        self._clock = clock
        self._known: dict[str, _Known] = {}
        self._at_once = asyncio.Semaphore(AT_ONCE)

    async def is_public(self, repository: str) -> bool:
        """Return whether anybody may read about `owner/name`. False for a repository that is unknown here or on GitHub.

        The time does not reveal which repositories exist: a name that is not public, known here or not, waits until
        GitHub has answered about each repository for the first time, and later not at all. Raises ConnectorException
        while the database is unavailable.
        """
        config = self._config.repository(repository)
        if config is None or config.of(API).private is not None:
            is_open = config is not None and config.of(API).private is False
            if not is_open:
                await self._wait_for_first_answers(_Known())
            return is_open
        known = self._known.setdefault(repository.lower(), _Known())
        if not await self._holds(repository, known):
            self._ask_unless_paused(repository, known)
            if known.public is None:
                await self._wait_for_first_answers(known)
            elif known.public and known.asking is not None:
                # `wait_for` would cancel the request at the time-out, but others wait for the same answer.
                await asyncio.wait({known.asking}, timeout=PATIENCE)
        # Check again: a payload may have called the repository private meanwhile.
        return known.public is True and await self._holds(repository, known)

    def _ask_unless_paused(self, repository: str, known: _Known) -> None:
        if known.asking is None and self._clock() >= known.not_before:
            known.asking = asyncio.create_task(self._ask(repository, known))

    async def _wait_for_first_answers(self, known: _Known) -> None:
        """Wait until GitHub has answered about all repositories without an answer, or has called this one public."""
        for name, config in self._config.repositories.items():
            other = self._known.setdefault(name.lower(), _Known())
            if config.of(API).private is None and other.public is None:
                self._ask_unless_paused(name, other)
        loop = asyncio.get_running_loop()
        deadline = loop.time() + PATIENCE
        pending = {other.asking for other in self._known.values() if other.asking and other.public is None}
        while pending and not known.public and (left := deadline - loop.time()) > 0:
            _, pending = await asyncio.wait(pending, timeout=left, return_when=asyncio.FIRST_COMPLETED)

    async def _holds(self, repository: str, known: _Known) -> bool:
        """Return whether GitHub's answer is recent, and no payload has called the repository private since."""
        if known.public is None or self._clock() - known.at >= FRESH_SECONDS:
            return False
        return known.public is False or not await self._called_private.by(repository)

    async def _is_same(self, repository: str, found: Payload) -> bool:
        return await repository_id_of(self._records, repository) in (None, found.integer("id"))

    async def _ask(self, repository: str, known: _Known) -> None:
        async with self._at_once:
            await self._read(repository, known)

    async def _read(self, repository: str, known: _Known) -> None:
        try:
            # Read both before the request: GitHub's answer may be older than a payload that arrives meanwhile, and must
            # not override it.
            called, at = await self._called_private.by(repository), self._clock()
            github = await self._github_for(repository)
            found = Payload(await github.getitem("/repos/{+repo}", url_vars={"repo": repository}), "repository")
            # The name may belong to another repository by now; its visibility says nothing about our records.
            public = is_called_public(found) and await self._is_same(repository, found)
            if public and called:
                await self._called_private.take_back(repository, called)
            known.public, known.at = public, at
        except Exception as error:
            # A 404 is handled here too: the repository was deleted, or it is private and the App was removed from it.
            known.public, known.not_before = None, self._clock() + PAUSE
            log.warning("cannot find out whether a repository is public", repository=repository, reason=str(error))
        finally:
            known.asking = None
