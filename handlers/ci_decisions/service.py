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
from nightjar_lab.ci.decision import CiDecision, CiVerdict, run_everything

from bot.core.errors import TryAgain
from bot.core.single_flight import Remembered
from bot.github.errors import NotInstalled, RateLimited, is_not_found
from bot.github.limits.ranks import CURRENT_RANK
from bot.github.pull_heads import PullHead, head_of, repository_id_of
from bot.github.repositories.in_force import config_in_force
from handlers.changed_files.changes import (
    NOT_NEEDED,
    ChangedFiles,
    Changes,
    ProposedChange,
    UnknownChanges,
    changes_of_other_commit,
    read_changes,
    read_proposed,
)
from handlers.ci_decisions import texts
from handlers.ci_decisions.decide import needs_files
from handlers.rebuild_docker.config import REBUILD_DOCKER
from handlers.rebuild_docker.decide import rebuild_docker
from handlers.skip_ci.config import SKIP_CI as SKIP_CI_KEY
from handlers.skip_ci.decide import docs_only, skip_ci
from handlers.skip_ci.records import SKIP_CI
from handlers.slow_tests.config import SLOW_TESTS
from handlers.slow_tests.handler import decide_slow_tests
from handlers.slow_tests.records import CHOICE

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
class RecordedPull:
    """What our own records contain about a pull request."""

    repository_id: int
    head: PullHead


@dataclass(frozen=True, slots=True)
class PullFacts:
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
        recorded = await self._recorded(repository, number)
        try:
            config = await config_in_force(self._config, self._records, repository)
        except Exception:
            # Any error at all, here and below: a database that is unavailable must not stop CI.
            log.exception("the repository's settings could not be read", repository=repository, number=number)
            config = None
        pull = await self._read_pull(repository, number, sha, recorded, config)
        decided_sha = pull.head.sha if pull.head else sha
        if config is None:
            return run_everything(texts.NO_SETTINGS, decided_sha).as_json()
        slow_tests, later_level = await self._slow_tests(repository, number, pull, config)
        return CiDecision(
            sha=decided_sha,
            run_slow_tests=slow_tests,
            later_level=later_level,
            skip_ci=skip_ci(config.of(SKIP_CI_KEY), pull.title, pull.changes),
            docs_only=docs_only(config.of(SKIP_CI_KEY), pull.title, pull.changes),
            rebuild_docker=rebuild_docker(config.of(REBUILD_DOCKER), pull.changes),
        ).as_json()

    async def _recorded(self, repository: str, number: int) -> RecordedPull | None:
        try:
            repository_id = await repository_id_of(self._records, repository)
            head = await head_of(self._records, repository_id, number) if repository_id is not None else None
        except Exception:
            log.exception("the head's record could not be read", repository=repository, number=number)
            return None
        return RecordedPull(repository_id, head) if repository_id is not None and head is not None else None

    async def _read_pull(
        self, repository: str, number: int, sha: str, recorded: RecordedPull | None, config: RepositoryConfig | None
    ) -> PullFacts:
        """Return what is known of a pull request: from what webhooks recorded if that is enough, else from GitHub.

        If GitHub gives no answer, its changes are unknown. But if nothing was recorded, GitHub's error is raised for a
        pull request that does not exist, and for a caller that names no commit.
        """
        depends_on_pull = config is not None and (
            config.of(SKIP_CI_KEY) is not None or config.of(REBUILD_DOCKER) is not None
        )
        if recorded is not None and not depends_on_pull and sha in ("", recorded.head.sha):
            return PullFacts(recorded.repository_id, recorded.head)
        try:
            # The key contains what webhooks have reported, so that a cached answer from before them does not count.
            key = (CURRENT_RANK.get(), repository.lower(), number, await self._webhook_facts(number, recorded))
            proposed = await in_time(self._newest(key, repository, number, sha))
        except Exception as error:
            # Without a head there is nothing to decide about; a caller that names a commit gets the fallback.
            if recorded is None and (isinstance(error, NoSuchPullRequest) or not sha):
                raise
            log.warning("a decision was made without GitHub", repository=repository, number=number, reason=str(error))
            unknown = UnknownChanges(texts.NO_ANSWER_ABOUT_PULL)
            return (
                PullFacts(recorded.repository_id, recorded.head, "", unknown)
                if recorded
                else PullFacts(None, None, "", unknown)
            )
        head = PullHead.of(proposed.pull).merged_into(recorded.head) if recorded else PullHead.of(proposed.pull)
        if head.sha != proposed.pull.head_sha:
            # A webhook has reported a newer head than GitHub's API shows: neither cached answer may serve the next
            # caller.
            self._pulls.forget((False, *key))
            self._pulls.forget((True, *key))
            return PullFacts(proposed.repository_id, head, changes=UnknownChanges(texts.BEHIND))
        if sha not in ("", head.sha):
            return PullFacts(proposed.repository_id, head, changes=changes_of_other_commit(sha, head.sha))
        changes: Changes = NOT_NEEDED
        if config is not None and needs_files(config, proposed.pull.title):
            changes = await self._changes(repository, proposed)
        return PullFacts(proposed.repository_id, head, proposed.pull.title, changes)

    async def _webhook_facts(self, number: int, recorded: RecordedPull | None) -> tuple[str, ...]:
        if recorded is None:
            return ()
        shown_skip = await self._records.get(SKIP_CI.of(recorded.repository_id, number))
        return (recorded.head.sha, recorded.head.updated_at, shown_skip.reason if shown_skip else "")

    async def _newest(self, key: tuple[object, ...], repository: str, number: int, sha: str) -> ProposedChange:
        """Return GitHub's answer; ask again if the cached one is about a commit other than `sha`.

        It asks again at most once in `SECONDS`, whatever callers pass: anyone may make up commits.
        """
        has_asked = False

        async def ask() -> ProposedChange:
            nonlocal has_asked
            has_asked = True
            return await self._ask(repository, number)

        cached = await self._pulls.get((False, *key), ask)
        if has_asked or sha in ("", cached.pull.head_sha):
            return cached
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
            return await read_changes(await self._github_for(repository), repository, proposed)

        try:
            key = (CURRENT_RANK.get(), repository.lower(), pull.number, pull.head_sha, pull.base_ref)
            return await in_time(self._files.get(key, ask))
        except Exception as error:
            log.warning("changed files are not known", repository=repository, number=pull.number, reason=str(error))
            return UnknownChanges(texts.NO_ANSWER_ABOUT_PULL)

    async def _slow_tests(
        self, repository: str, number: int, pull: PullFacts, config: RepositoryConfig
    ) -> tuple[CiVerdict, str]:
        """Return whether slow tests run, and the level of tests to run if it comes after `main`, otherwise empty."""
        slow_tests = config.of(SLOW_TESTS)
        if slow_tests is None:
            return CiVerdict(True, texts.SLOW_TESTS_NOT_ON), ""
        if pull.repository_id is None or pull.head is None:
            return run_everything(texts.NO_ANSWER_ABOUT_PULL).run_slow_tests, ""
        try:
            choice = await self._records.get(CHOICE.of(pull.repository_id, number))
        except Exception:
            log.exception("the choice of slow tests could not be read", repository=repository, number=number)
            return CiVerdict(True, texts.CHOICE_UNREADABLE), ""
        verdict = decide_slow_tests(slow_tests, pull.head.head_ref, choice, self._config.mentions[0])
        return CiVerdict(verdict.is_on, verdict.reason), verdict.later_level


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
