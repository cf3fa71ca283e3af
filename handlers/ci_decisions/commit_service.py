"""Decide about a commit of a branch: the answer of `GET /api/v1/repos/{owner}/{repo}/commits/{sha}/decision`.

Where the bot cannot ask GitHub, everything runs and the reasons say so.
"""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import TYPE_CHECKING

import structlog
from gidgethub import BadRequest
from nightjar_lab.ci.decision import run_everything

from bot.core.single_flight import Remembered
from bot.github.errors import NotInstalled, is_conflict, is_not_found
from bot.github.limits.ranks import CURRENT_RANK
from bot.github.repositories.in_force import config_in_force
from handlers.changed_files.changes import NOT_NEEDED, Changes, UnknownChanges
from handlers.changed_files.commits import BranchPush, no_base, read_compared, read_parent, read_pushes
from handlers.ci_decisions import texts
from handlers.ci_decisions.decide import commit_needs_files, decide_for_commit
from handlers.ci_decisions.service import FILES_SECONDS, SECONDS, NothingThere, changes_seconds, error_seconds, in_time

if TYPE_CHECKING:
    from bot.config import Config, RepositoryConfig
    from bot.engine.records import Records
    from bot.github.client import GitHub


log = structlog.get_logger(__name__)


class NoSuchCommit(NothingThere):
    """The repository is in app.yaml, but has no such commit."""


class CommitDecisions:
    """Answers CI's questions about commits of branches, from GitHub. There is one per process.

    Requests to GitHub have the caller's rank. Answers are cached for each rank separately, as in `service.Decisions`.
    `github_for` returns a client for `owner/name`; `clock` counts seconds from any start.
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
        # A commit never changes its parent or its files; a branch may be pushed at any time.
        self._parents: Remembered[tuple[object, ...], str] = Remembered(lambda _: FILES_SECONDS, error_seconds, clock)
        self._files: Remembered[tuple[object, ...], Changes] = Remembered(changes_seconds, error_seconds, clock)
        self._pushes: Remembered[tuple[object, ...], Sequence[BranchPush]] = Remembered(
            lambda _: SECONDS, error_seconds, clock
        )

    async def __call__(self, repository: str, sha: str, branch: str = "") -> Mapping[str, object]:
        """Return the members of the answer about a commit of `branch`; an empty `branch` stands for any.

        Raises `NoSuchCommit`.
        """
        if self._config.repository(repository) is None:
            raise NoSuchCommit(repository)
        try:
            config = await config_in_force(self._config, self._records, repository)
        except Exception:
            log.exception("the repository's settings could not be read", repository=repository, sha=sha)
            config = None
        if config is None:
            return run_everything(texts.NO_SETTINGS, sha).as_json()
        try:
            changes = await in_time(self._changes(repository, sha, branch, config))
        except NoSuchCommit:
            raise
        except Exception as error:
            # Any error at all: a CI that gets no answer must run everything, not fail.
            log.warning("a decision was made without GitHub", repository=repository, sha=sha, reason=str(error))
            changes = UnknownChanges(texts.NO_ANSWER_ABOUT_COMMIT)
        return decide_for_commit(config, sha, changes, branch).as_json()

    async def _changes(self, repository: str, sha: str, branch: str, config: RepositoryConfig) -> Changes:
        async def ask_parent() -> str:
            return await self._parent(repository, sha)

        async def ask_pushes() -> Sequence[BranchPush]:
            return await read_pushes(await self._github_for(repository), repository, branch)

        async def ask_files() -> Changes:
            return await read_compared(await self._github_for(repository), repository, parent, sha)

        place = (CURRENT_RANK.get(), repository.lower())
        parent = await self._parents.get((*place, sha), ask_parent)
        if not commit_needs_files(config):
            return NOT_NEEDED
        pushes = await self._pushes.get((*place, branch), ask_pushes)
        return no_base(sha, parent, pushes) or await self._files.get((*place, sha), ask_files)

    async def _parent(self, repository: str, sha: str) -> str:
        try:
            return await read_parent(await self._github_for(repository), repository, sha)
        except (BadRequest, NotInstalled) as error:
            # 409: the repository is empty (https://docs.github.com/rest/git/commits#get-a-commit-object).
            if isinstance(error, NotInstalled) or is_not_found(error) or is_conflict(error):
                raise NoSuchCommit(f"{repository}@{sha}") from error
            raise
