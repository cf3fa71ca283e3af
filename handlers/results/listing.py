"""List runs with their state, for the API."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING

from nightjar_formats.model import RunKey
from sqlalchemy.exc import OperationalError

from bot.core.errors import TryAgain
from bot.effects.checks import CHECK_RUN
from bot.engine.records import Key
from bot.github.pull_heads import repository_id_of
from bot.results.state import Run, RunState
from bot.results.store.lists.run_lists import list_runs
from handlers.results import texts
from handlers.results.config import LAB_RESULTS

if TYPE_CHECKING:
    from bot.config import Config
    from bot.effects.checks import WrittenCheckRun
    from bot.engine.records import Records
    from bot.results.store.store import ResultsStore


@dataclass(frozen=True, slots=True)
class RunQuery:
    """The filters of a list of runs of a repository (`owner/name`); None matches any run.

    `before` is a run; only older ones are listed.
    """

    repository: str
    lab: str | None = None
    target: str | None = None
    sha: str | None = None
    state: RunState | None = None
    before: RunKey | None = None
    limit: int = 50


@dataclass(frozen=True, slots=True)
class RunWithCheck:
    """A run, and GitHub's address of the check run that shows it; empty while there is none."""

    run: Run
    check_run: str


class RunListing:
    """Lists the runs of repositories that have labs; `github_url` is the address of GitHub's pages."""

    def __init__(self, config: Config, store: ResultsStore, records: Records, github_url: str) -> None:
        self._config = config
        self._store = store
        self._records = records
        self._github_url = github_url

    async def __call__(self, query: RunQuery) -> list[RunWithCheck]:
        """Return the runs, newest first.

        Raises LookupError if app.yaml has no `results` for the repository, ValueError if `before` is not one of its
        runs, `TryAgain` while the database is unavailable.
        """
        # GitHub accepts any letter case, but results are stored under the name in app.yaml.
        repository = self._config.configured.name_of(query.repository)
        settings = self._config.repository(query.repository)
        if repository is None or settings is None or settings.of(LAB_RESULTS) is None:
            raise LookupError(query.repository)
        listing = partial(
            self._store.read,
            list_runs,
            repository,
            lab=query.lab,
            target=query.target,
            sha=query.sha,
            state=query.state,
            last_listed=replace(query.before, repository=repository) if query.before else None,
            limit=query.limit,
        )
        try:
            runs = await asyncio.to_thread(listing)
        except OperationalError as error:
            raise TryAgain(texts.DATABASE_AWAY) from error
        except LookupError as error:
            raise ValueError(query.before) from error
        keys = await self._check_keys(repository, runs)
        check_runs = await self._records.get_some(set(keys.values()))
        return [RunWithCheck(run, self._address(repository, check_runs.get(str(keys.get(run.key))))) for run in runs]

    async def _check_keys(self, repository: str, runs: Sequence[Run]) -> dict[RunKey, Key[WrittenCheckRun]]:
        """Return the keys of the records of check runs, by run; empty if the repository's ID is not known yet."""
        repository_id = await repository_id_of(self._records, repository) if runs else None
        if repository_id is None:
            return {}
        return {run.key: CHECK_RUN.of(repository_id, run.key.sha, run.key.about.check_name) for run in runs}

    def _address(self, repository: str, check_run: WrittenCheckRun | None) -> str:
        return f"{self._github_url}/{repository}/runs/{check_run.id}" if check_run and check_run.id else ""
