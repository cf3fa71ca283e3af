"""Find out whether a repository is public on GitHub, so that strangers may see its pages."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import structlog

from bot.config.api import API
from bot.core.payload import Payload
from bot.github.pull_heads import repository_id_of
from bot.github.repositories.privacy import CalledPrivate, is_called_public

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
"""Simultaneous requests to GitHub: the first visitor makes the bot ask about all repositories."""
PAUSE = 60.0
"""Seconds from a failed request to the next."""

log: structlog.stdlib.BoundLogger = structlog.get_logger(__name__)


@dataclass(slots=True)
class _PublicAnswer:
    """GitHub's answer and the time of the request, by the given clock. `public` is None without an answer."""

    public: bool | None = None
    asked_at: float = 0.0
    not_before: float = 0.0
    request: asyncio.Task[None] | None = None


class Visibility:
    """Tells whether the repositories of app.yaml are public. Only GitHub's own answer makes one public.

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
        self._answers: dict[str, _PublicAnswer] = {}
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
                await self._wait_for_first_answers(_PublicAnswer())
            return is_open
        answer = self._answers.setdefault(repository.lower(), _PublicAnswer())
        if not await self._is_current(repository, answer):
            self._ask_unless_paused(repository, answer)
            if answer.public is None:
                await self._wait_for_first_answers(answer)
            elif answer.public and answer.request is not None:
                # `wait_for` would cancel the request at the time-out, but others wait for the same answer.
                await asyncio.wait({answer.request}, timeout=PATIENCE)
        # Check again: a payload may have called the repository private meanwhile.
        return answer.public is True and await self._is_current(repository, answer)

    def _ask_unless_paused(self, repository: str, answer: _PublicAnswer) -> None:
        if answer.request is None and self._clock() >= answer.not_before:
            answer.request = asyncio.create_task(self._ask(repository, answer))

    async def _wait_for_first_answers(self, answer: _PublicAnswer) -> None:
        """Wait until GitHub has answered about all repositories without an answer, or has called this one public."""
        for name, config in self._config.repositories.items():
            first_answer = self._answers.setdefault(name.lower(), _PublicAnswer())
            if config.of(API).private is None and first_answer.public is None:
                self._ask_unless_paused(name, first_answer)
        loop = asyncio.get_running_loop()
        deadline = loop.time() + PATIENCE
        pending = {
            first_answer.request
            for first_answer in self._answers.values()
            if first_answer.request and first_answer.public is None
        }
        while pending and not answer.public and (seconds_left := deadline - loop.time()) > 0:
            _, pending = await asyncio.wait(pending, timeout=seconds_left, return_when=asyncio.FIRST_COMPLETED)

    async def _is_current(self, repository: str, answer: _PublicAnswer) -> bool:
        """Return whether GitHub's answer is recent, and no later payload has called the repository private."""
        if answer.public is None or self._clock() - answer.asked_at >= FRESH_SECONDS:
            return False
        return answer.public is False or not await self._called_private.delivery_of(repository)

    async def _is_same(self, repository: str, description: Payload) -> bool:
        return await repository_id_of(self._records, repository) in (None, description.integer("id"))

    async def _ask(self, repository: str, answer: _PublicAnswer) -> None:
        async with self._at_once:
            await self._read(repository, answer)

    async def _read(self, repository: str, answer: _PublicAnswer) -> None:
        try:
            # Read both before the request: GitHub's answer may be older than a payload that arrives meanwhile, and must
            # not override it.
            private_delivery, asked_at = await self._called_private.delivery_of(repository), self._clock()
            github = await self._github_for(repository)
            description = Payload(await github.getitem("/repos/{+repo}", url_vars={"repo": repository}), "repository")
            # The name may belong to another repository by now; its visibility says nothing about our records.
            public = is_called_public(description) and await self._is_same(repository, description)
            if public and private_delivery:
                await self._called_private.take_back(repository, private_delivery)
            answer.public, answer.asked_at = public, asked_at
        except Exception as error:
            # A 404 is handled here too: the repository was deleted, or it is private and the App was removed from it.
            answer.public, answer.not_before = None, self._clock() + PAUSE
            log.warning("cannot find out whether a repository is public", repository=repository, reason=str(error))
        finally:
            answer.request = None
