"""Decide about a pull request's head: the answer of `GET /api/v1/repos/{owner}/{repo}/pulls/{n}/decision`.

A CI without an answer runs everything. So if the head is known and something else fails, the answer is to run
everything, and the reason says that this is a fallback.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar

import structlog
from gidgethub import BadRequest

from bot.core.errors import TryAgain
from bot.core.single_flight import Remembered
from bot.github.errors import NotInstalled, RateLimited, is_not_found
from bot.github.in_force import config_in_force
from bot.github.pull_heads import PullHead, head_of, repository_id_of
from bot.github.ranks import current_rank
from handlers.changed_files.changes import (
    NOT_NEEDED,
    ChangedFiles,
    Changes,
    ProposedChange,
    UnknownChanges,
    changes_of,
    other_commit,
    read_proposed,
)
from handlers.changed_files.verdicts import CiVerdict
from handlers.ci_decisions import texts
from handlers.ci_decisions.decide import CiDecision, needs_files, run_everything
from handlers.rebuild_docker.config import REBUILD_DOCKER
from handlers.rebuild_docker.decide import rebuild_docker
from handlers.skip_ci.config import SKIP_CI as SKIP_CI_KEY
from handlers.skip_ci.decide import docs_only, skip_ci
from handlers.skip_ci.handler import SKIP_CI
from handlers.slow_tests.config import SLOW_TESTS
from handlers.slow_tests.handler import CHOICE, decide_slow_tests

if TYPE_CHECKING:
    from bot.config import Config, RepositoryConfig
    from bot.engine.records import Records
    from bot.github.client import GitHub

UNKNOWN_SECONDS = 60.0
"""Seconds to cache "no such pull request", unless a webhook reports one: anyone may ask for invented numbers."""
SECONDS = 10.0
"""Seconds to cache a pull request, unless a webhook reports a change: one build asks in many of its steps."""
FILES_SECONDS = 600.0
"""Seconds to cache the changed files. Without a push, they only change if some of the commits land on the base."""
PATIENCE = 5.0
"""Seconds to wait for GitHub, twice at most; a later answer is cached for the next caller."""


Result = TypeVar("Result")

log = structlog.get_logger(__name__)


class NothingThere(LookupError):
    """What CI asks about does not exist in a repository that is ours."""


class NoSuchPullRequest(NothingThere):
    """There is no such pull request in a repository that is ours."""


@dataclass(frozen=True, slots=True)
class KnownPull:
    """What our own records contain about a pull request."""

    repository_id: int
    head: PullHead


@dataclass(frozen=True, slots=True)
class SeenPull:
    """What the bot or GitHub knows about a pull request; `head` is None where neither knows it.

    If GitHub's answer is about another commit, `title` is empty and `changes` says why.
    """

    repository_id: int | None
    head: PullHead | None
    title: str = ""
    changes: Changes = NOT_NEEDED


class Decisions:
    """Answers CI from our own records, and from GitHub if they are not enough. There is one per process.

    Requests to GitHub have the caller's rank. Answers are cached for each rank separately, so that a rate limit that
    strangers have reached affects nobody else. `github_for` returns a client for `owner/name`; `clock` counts seconds
    from any start.
    """

    def __init__(
        self,
        config: Config,
        records: Records,
        github_for: Callable[[str], Awaitable[GitHub]],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._config = config
        self._records = records
        self._github_for = github_for
        self._pulls: Remembered[tuple[object, ...], ProposedChange] = Remembered(
            lambda _: SECONDS, error_seconds, clock
        )
        self._files: Remembered[tuple[object, ...], Changes] = Remembered(changes_seconds, error_seconds, clock)

    async def __call__(self, repository: str, number: int, sha: str = "") -> Mapping[str, object]:
        """Return the members of the answer about the head; `sha` is the commit that the caller builds, or empty.

        Raises `NoSuchPullRequest`, and `TryAgain` if only GitHub knows the head and does not answer.
        """
        if self._config.repository(repository) is None:
            raise NoSuchPullRequest(repository)
        known = await self._known(repository, number)
        try:
            config = await config_in_force(self._config, self._records, repository)
        except Exception:
            # Any error at all, here and below: a database that is unavailable must not stop CI.
            log.exception("the repository's settings could not be read", repository=repository, number=number)
            config = None
        seen = await self._read_pull(repository, number, sha, known, config)
        about = seen.head.sha if seen.head else sha
        if config is None:
            return run_everything(texts.NO_SETTINGS, about).as_json()
        return CiDecision(
            sha=about,
            run_slow_tests=await self._slow_tests(repository, number, seen, config),
            skip_ci=skip_ci(config.of(SKIP_CI_KEY), seen.title, seen.changes),
            docs_only=docs_only(config.of(SKIP_CI_KEY), seen.title, seen.changes),
            rebuild_docker=rebuild_docker(config.of(REBUILD_DOCKER), seen.changes),
        ).as_json()

    async def _known(self, repository: str, number: int) -> KnownPull | None:
        try:
            repository_id = await repository_id_of(self._records, repository)
            head = await head_of(self._records, repository_id, number) if repository_id is not None else None
        except Exception:
            log.exception("the head's record could not be read", repository=repository, number=number)
            return None
        return KnownPull(repository_id, head) if repository_id is not None and head is not None else None

    async def _read_pull(
        self, repository: str, number: int, sha: str, known: KnownPull | None, config: RepositoryConfig | None
    ) -> SeenPull:
        more = config is not None and (config.of(SKIP_CI_KEY) is not None or config.of(REBUILD_DOCKER) is not None)
        if known is not None and not more and sha in ("", known.head.sha):
            return SeenPull(known.repository_id, known.head)
        try:
            # The key contains what webhooks have reported, so that a cached answer from before them does not count.
            key = (current_rank(), repository.lower(), number, await self._known_of(number, known))
            proposed = await in_time(self._newest(key, repository, number, sha))
        except Exception as error:
            # Without a head there is nothing to decide about; a caller that names a commit gets the fallback.
            if known is None and (isinstance(error, NoSuchPullRequest) or not sha):
                raise
            log.warning("a decision was made without GitHub", repository=repository, number=number, reason=str(error))
            unknown = UnknownChanges(texts.NO_ANSWER_ABOUT_PULL)
            return (
                SeenPull(known.repository_id, known.head, "", unknown) if known else SeenPull(None, None, "", unknown)
            )
        head = PullHead.of(proposed.pull).after(known.head) if known else PullHead.of(proposed.pull)
        if head.sha != proposed.pull.head_sha:
            # A webhook has reported a newer head than GitHub's API shows: neither cached answer may serve the next
            # caller.
            self._pulls.forget((False, *key))
            self._pulls.forget((True, *key))
            return SeenPull(proposed.repository_id, head, changes=UnknownChanges(texts.BEHIND))
        if sha not in ("", head.sha):
            return SeenPull(proposed.repository_id, head, changes=other_commit(sha, head.sha))
        changes: Changes = NOT_NEEDED
        if config is not None and needs_files(config, proposed.pull.title):
            changes = await self._changes(repository, proposed)
        return SeenPull(proposed.repository_id, head, proposed.pull.title, changes)

    async def _known_of(self, number: int, known: KnownPull | None) -> tuple[str, ...]:
        if known is None:
            return ()
        shown = await self._records.get(SKIP_CI.of(known.repository_id, number))
        return (known.head.sha, known.head.updated_at, shown.reason if shown else "")

    async def _newest(self, key: tuple[object, ...], repository: str, number: int, sha: str) -> ProposedChange:
        """Return GitHub's answer; ask again if the cached one is about a commit other than `sha`.

        It asks again at most once in `SECONDS`, whatever callers pass: anyone may make up commits.
        """
        asked = False

        async def ask() -> ProposedChange:
            nonlocal asked
            asked = True
            return await self._ask(repository, number)

        known = await self._pulls.get((False, *key), ask)
        if asked or sha in ("", known.pull.head_sha):
            return known
        return await self._pulls.get((True, *key), ask)

    async def _ask(self, repository: str, number: int) -> ProposedChange:
        try:
            return await read_proposed(await self._github_for(repository), repository, number)
        except (BadRequest, NotInstalled) as error:
            if isinstance(error, BadRequest) and not is_not_found(error):
                raise
            raise NoSuchPullRequest(f"{repository}#{number}") from error

    async def _changes(self, repository: str, proposed: ProposedChange) -> Changes:
        pull = proposed.pull

        async def ask() -> Changes:
            return await changes_of(await self._github_for(repository), repository, proposed)

        try:
            key = (current_rank(), repository.lower(), pull.number, pull.head_sha, pull.base_ref)
            return await in_time(self._files.get(key, ask))
        except Exception as error:
            log.warning("changed files are not known", repository=repository, number=pull.number, reason=str(error))
            return UnknownChanges(texts.NO_ANSWER_ABOUT_PULL)

    async def _slow_tests(self, repository: str, number: int, seen: SeenPull, config: RepositoryConfig) -> CiVerdict:
        slow_tests = config.of(SLOW_TESTS)
        if slow_tests is None:
            return CiVerdict(True, texts.SLOW_TESTS_NOT_ON)
        if seen.repository_id is None or seen.head is None:
            return run_everything(texts.NO_ANSWER_ABOUT_PULL).run_slow_tests
        try:
            choice = await self._records.get(CHOICE.of(seen.repository_id, number))
        except Exception:
            log.exception("the choice of slow tests could not be read", repository=repository, number=number)
            return CiVerdict(True, texts.CHOICE_UNREADABLE)
        verdict = decide_slow_tests(slow_tests, seen.head.head_ref, choice, self._config.mentions[0])
        return CiVerdict(verdict.on, verdict.reason)


async def in_time(asking: Awaitable[Result]) -> Result:
    """Wait for GitHub; raise `TryAgain` if it takes longer than `PATIENCE`."""
    try:
        async with asyncio.timeout(PATIENCE):
            return await asking
    except TimeoutError:
        raise TryAgain(texts.SLOW) from None


def error_seconds(error: Exception) -> float:
    """Return for how many seconds an error from GitHub is cached."""
    if isinstance(error, NothingThere):
        return UNKNOWN_SECONDS
    # A limit of our own costs nothing to check again, and must not push other answers out of the cache.
    return 0.0 if isinstance(error, RateLimited) else SECONDS


def changes_seconds(changes: Changes) -> float:
    """Return for how many seconds changed files are cached."""
    return FILES_SECONDS if isinstance(changes, ChangedFiles) else SECONDS
