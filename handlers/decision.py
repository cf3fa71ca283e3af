"""What CI should do for a pull request's head: the answer of `GET /api/v1/repos/{owner}/{repo}/pulls/{n}/decision`.

A CI that cannot find out runs everything: where the head is known and something else goes wrong, the answer is to run.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import structlog
from cachetools import TTLCache
from gidgethub import BadRequest

from bot.events import PullRequest
from bot.github.errors import NotInstalled, is_not_found
from bot.github.governor import sweeping
from bot.heads import Head, head_of, repository_id_of
from bot.payload import Payload
from bot.repository_file import config_in_force
from handlers import slow_tests

if TYPE_CHECKING:
    from bot.config import Config
    from bot.engine.records import Records
    from bot.github.client import GitHub

REMEMBERED_SECONDS = 60
REMEMBERED_PULLS = 1_000

SWITCHED_OFF = "On: the bot's switch for slow tests is off for this repository, so everything runs."
UNREADABLE = "On: whether somebody switched slow tests off could not be read, so everything runs."

log = structlog.get_logger(__name__)


class NoSuchPullRequest(LookupError):
    """There is no such pull request in a repository that is ours."""


@dataclass(frozen=True, slots=True)
class Decisions:
    """Answer what CI asks: from our own records, else with one request to GitHub, kept for a minute.

    `github_for` gives a client for `owner/name`.
    """

    config: Config
    records: Records
    github_for: Callable[[str], Awaitable[GitHub]]
    _asked: TTLCache[tuple[str, int], tuple[int, Head]] = field(
        default_factory=lambda: TTLCache(REMEMBERED_PULLS, REMEMBERED_SECONDS)
    )

    async def __call__(self, repository: str, number: int) -> Mapping[str, object]:
        """Return the members of the answer.

        Raises `NoSuchPullRequest`, and `TryAgain` where GitHub must be asked for the head and cannot be.
        """
        if self.config.repository(repository) is None:
            raise NoSuchPullRequest(repository)
        repository_id, head = await self._find(repository, number)
        try:
            verdict = await self._verdict(repository, slow_tests.choice_key(repository_id, number), head)
        except Exception:
            log.exception("the choice of slow tests could not be read", repository=repository, number=number)
            verdict = slow_tests.Verdict(True, UNREADABLE)
        return {"sha": head.sha, "run_slow_tests": {"value": verdict.on, "reason": verdict.reason}}

    async def _verdict(self, repository: str, choice_key: str, head: Head) -> slow_tests.Verdict:
        config = await config_in_force(self.config, self.records, repository)
        if config is None or config.slow_tests is None:
            return slow_tests.Verdict(True, SWITCHED_OFF)
        choice = slow_tests.Choice.read(await self.records.get(choice_key))
        return slow_tests.decide(config.slow_tests, head.head_ref, choice, self.config.mentions[0])

    async def _find(self, repository: str, number: int) -> tuple[int, Head]:
        try:
            repository_id = await repository_id_of(self.records, repository)
            head = await head_of(self.records, repository_id, number) if repository_id is not None else None
        except Exception:
            log.exception("the head's record could not be read", repository=repository, number=number)
        else:
            if repository_id is not None and head is not None:
                return repository_id, head
        key = (repository.lower(), number)
        if key not in self._asked:
            self._asked[key] = await self._ask(repository, number)
        return self._asked[key]

    async def _ask(self, repository: str, number: int) -> tuple[int, Head]:
        url_vars = {"repo": repository, "number": str(number)}
        try:
            with sweeping():  # anybody may ask about any number: that must not use up what webhooks need
                github = await self.github_for(repository)
                pull = Payload(await github.getitem("/repos/{+repo}/pulls/{number}", url_vars=url_vars), "pull request")
        except (BadRequest, NotInstalled) as error:
            if isinstance(error, BadRequest) and not is_not_found(error):
                raise
            raise NoSuchPullRequest(f"{repository}#{number}") from error
        return pull.integer("base", "repo", "id"), Head.of(PullRequest.of(pull))
