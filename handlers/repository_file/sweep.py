"""Read the settings file on the default branches of repositories, in case a webhook was lost."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import structlog

from bot.config.own_file import REPOSITORY_FILE
from bot.config.shared import PATH
from bot.core.events import Repository
from bot.core.payload import Json, Payload
from bot.engine.internal import InternalEvent, announce
from bot.engine.records import Record
from bot.engine.sweeps import only_logged
from bot.github.commits.contents import found_at
from bot.github.commits.refs import branch_head
from bot.github.limits.ranks import Rank, ranked
from bot.github.repositories.in_force import StoredFile, name_of, read_found, stored_file_of
from bot.github.repositories.known import Repositories, away_by_name
from handlers.repository_file import texts

if TYPE_CHECKING:
    from bot.config import Config
    from bot.engine.processor import Announce
    from bot.engine.records import Records
    from bot.github.client import GitHub

HALF_HOURLY = "11,41 * * * *"
"""The cron schedule of the sweep; `PAUSE` decides which files each sweep reads."""
PAUSE = 6 * 3600.0
"""Seconds between two reads of a file: a change whose webhook was lost takes effect within this time. The start of the
bot needs no read: webhooks from its downtime are redelivered (`bot.app.redelivery`)."""

log: structlog.stdlib.BoundLogger = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class FileFound:
    """A file on the head of the default branch that differs from the stored one; `at` is in seconds since 1970.

    `pushed_at` is GitHub's time of the newest push to any branch.
    """

    branch: str
    head: str
    pushed_at: str | int | None
    at: int

    def as_push(self) -> Json:
        """Return the payload of a push that would bring the file."""
        repository = {"default_branch": self.branch, "pushed_at": self.pushed_at}
        return {"ref": f"refs/heads/{self.branch}", "after": self.head, "repository": repository}


FILE_FOUND = InternalEvent(
    "nightjar.repository-file",
    FileFound,
    guid=lambda repository, file: f"repository-file:{repository}:{file.head}:{file.at}",
    lock=lambda repository, file: f"ref:{repository}:refs/heads/{file.branch}",
    push=FileFound.as_push,
)


@dataclass(frozen=True, slots=True)
class LastScans:
    """When each repository's file was read last, in seconds since 1970, by names in lower case."""

    at: Mapping[str, float] = field(default_factory=dict)


LAST_SCANS = Record("repository-files", 1, LastScans, "when the file of each repository was last read", days=None)


class RepositoryFileSweep:
    """Reads the files of all repositories. `github_for` returns a client for `owner/name`, `clock` seconds."""

    def __init__(
        self,
        config: Config,
        records: Records,
        *,
        announce_event: Announce,
        github_for: Callable[[str], Awaitable[GitHub]],
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._config = config
        self._records = records
        self._announce = announce_event
        self._github_for = github_for
        self._clock = clock

    @property
    def repositories(self) -> list[str]:
        """Return the repositories whose files are read."""
        return [name for name, keys in self._config.repositories.items() if keys.of(REPOSITORY_FILE)]

    async def sweep(self) -> str:
        """Read each file that was not read for `PAUSE`, or has faults.

        A failure in one repository is logged, does not stop the others, and is tried again the next time.
        """
        stored = (await self._records.get(LAST_SCANS.of()) or LastScans()).at
        scanned = {name.lower(): stored.get(name.lower(), 0.0) for name in self.repositories}
        announced, away = 0, away_by_name(await Repositories(self._config, self._records).all())
        for repository in self.repositories:
            if repository.lower() in away:
                continue
            moment, stored_file = self._clock(), await stored_file_of(self._records, repository)
            # A file with faults is always read: a new app.yaml, or a new version of the bot, may accept it.
            if scanned[repository.lower()] > moment - PAUSE and not stored_file.faults:
                continue
            with only_logged(texts.NOT_SCANNED, repository=repository), ranked(Rank.SWEEP):
                announced += await self._scan(repository, stored_file)
                scanned[repository.lower()] = moment
        if scanned != stored:
            await self._records.put(LAST_SCANS.of(), LastScans(scanned))
        return f"announced {announced}"

    async def _scan(self, repository: str, stored_file: StoredFile) -> bool:
        """Announce the file as a push if it differs from the stored one, in order with real pushes to its branch."""
        github, app_settings = await self._github_for(repository), self._config.repositories[repository]
        file = await found_at(github, repository, PATH)
        _, faults = await read_found(file, app_settings)
        if (name_of(file), len(faults)) == (stored_file.seen, stored_file.faults):
            return False
        answer = await github.getitem("/repos/{+repo}", url_vars={"repo": repository})
        repository_payload = Payload(answer, "repository")
        branch = repository_payload.string("default_branch")
        head = await branch_head(github, repository, branch)
        # The repository is empty, or its default branch was renamed at this moment; the next sweep sees it.
        if head is None:
            return False
        event = FileFound(branch, head, repository_payload.raw.get("pushed_at"), int(self._clock()))
        identity = Repository(repository_payload.integer("id"), repository, None)
        return await announce(self._announce, FILE_FOUND, identity, event)
