"""Whether a repository is public on GitHub: what strangers may be told of."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import structlog

from bot.payload import Payload

if TYPE_CHECKING:
    from bot.config import Config
    from bot.github.client import GitHub

FRESH_SECONDS = 300.0
"""How long GitHub's answer is believed before it is asked again, in the background."""
LONGEST_SECONDS = 3600.0
"""How long it is believed while GitHub cannot be asked; after that the repository counts as private."""
PATIENCE = 3.0
"""Seconds that the very first question may wait for GitHub."""
PAUSE = 60.0
"""Seconds after a failed question before the next."""

log: structlog.stdlib.BoundLogger = structlog.get_logger(__name__)


@dataclass(slots=True)
class _Known:
    """What GitHub said, and when; `public` None: it has not said anything yet. Moments are on the given clock."""

    public: bool | None = None
    at: float = 0.0
    not_before: float = 0.0
    asking: asyncio.Task[None] | None = None


class Visibility:
    """Say whether the repositories of app.yaml are public. Only GitHub's own answer makes one public.

    `github_for` gives a client for `owner/name`; `clock` is in seconds from anywhere. One for the process.
    """

    def __init__(
        self,
        config: Config,
        github_for: Callable[[str], Awaitable[GitHub]],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._config = config
        self._github_for = github_for
        self._clock = clock
        self._known: dict[str, _Known] = {}

    async def is_public(self, repository: str) -> bool:
        """Say whether anybody may read about `owner/name`; not for one that is unknown, here or on GitHub.

        Answers at once, so that the time taken does not tell which repositories there are, except the first time.
        """
        config = self._config.repository(repository)
        if config is None:
            return False
        if config.api.private is not None:
            return not config.api.private
        known = self._known.setdefault(repository.lower(), _Known())
        age = self._clock() - known.at
        if (
            known.asking is None
            and self._clock() >= known.not_before
            and (known.public is None or age >= FRESH_SECONDS)
        ):
            known.asking = asyncio.create_task(self._ask(repository, known))
        if known.public is None and known.asking is not None:
            await asyncio.wait({known.asking}, timeout=PATIENCE)
        return known.public is True and self._clock() - known.at < LONGEST_SECONDS

    async def _ask(self, repository: str, known: _Known) -> None:
        try:
            github = await self._github_for(repository)
            # https://docs.github.com/rest/repos/repos#get-a-repository
            found = Payload(await github.getitem("/repos/{+repo}", url_vars={"repo": repository}), "repository")
            # `internal` is private too, and has a visibility of its own.
            known.public = found.raw.get("private") is False and found.text("visibility") in ("", "public")
            known.at = self._clock()
        except Exception as error:
            known.not_before = self._clock() + PAUSE
            log.warning("whether a repository is public is not known", repository=repository, reason=str(error))
        finally:
            known.asking = None
