"""Read the settings file on the default branches of repositories, in case a webhook was lost.

GitHub's lists of repositories, a hundred in a request, say when each was last pushed to. A file is read again only if
that has changed since: docs/decisions/repository-settings-scope.md
"""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import structlog

from bot.config.own_file import REPOSITORY_FILE
from bot.config.shared import PATH
from bot.core.events import Json, Payload, Repository
from bot.engine.internal import InternalEvent, announce
from bot.engine.sweeps import only_logged
from bot.github.commits.contents import found_at
from bot.github.commits.refs import branch_head
from bot.github.errors import RateLimited
from bot.github.limits.ranks import Rank, ranked
from bot.github.pull_heads import repository_ids
from bot.github.repositories.in_force import StoredFile, name_of, read_found, stored_files_of
from bot.github.repositories.known import reasons_left_alone
from handlers.repository_file import texts
from handlers.repository_file.records import FILE_SCAN, LAST_SCANS, FileScan, LastScans

if TYPE_CHECKING:
    from bot.config import Config
    from bot.engine.internal import Announce
    from bot.engine.records import Records
    from bot.github.client import GitHub
    from bot.github.repositories.installed import InstalledRepositories, ListedRepository

HALF_HOURLY = "11,41 * * * *"
"""The cron schedule of the sweep; `PAUSE` decides which files each sweep reads."""
PAUSE = 6 * 3600.0
"""Seconds between two checks of a file: a change whose webhook was lost takes effect within this time. The start of the
bot needs no check: webhooks from its downtime are redelivered (`bot.app.redelivery`)."""
LISTED_FROM = 5
"""Repositories of one owner from which their list costs fewer requests than their files."""
SWEEP_SECONDS = 600.0
"""Seconds for which a sweep reads files. The job of a timer is cancelled after 15 minutes; the next sweep goes on."""

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


class RepositoryFileSweep:
    """Reads the files of all repositories.

    `github_for` returns a client for `owner/name`, `installed` what lists the repositories of installations, `clock`
    seconds since 1970, and `stopwatch` seconds from any start.
    """

    def __init__(
        self,
        config: Config,
        records: Records,
        *,
        announce_event: Announce,
        github_for: Callable[[str], Awaitable[GitHub]],
        installed: Callable[[], InstalledRepositories],
        clock: Callable[[], float] = time.time,
        stopwatch: Callable[[], float] = time.monotonic,
    ) -> None:
        self._config = config
        self._records = records
        self._announce = announce_event
        self._github_for = github_for
        self._installed = installed
        self._clock = clock
        self._stopwatch = stopwatch
        self._listed_at: dict[str, float] = {}
        """When all files of an owner were last found to be current by GitHub's list, by this process."""

    @property
    def repositories(self) -> list[str]:
        """Return the repositories whose files are read."""
        return [name for name, keys in self._config.repositories.items() if keys.of(REPOSITORY_FILE)]

    @property
    def is_needed(self) -> bool:
        """Return whether app.yaml lets the bot read any files."""
        return any(settings.of(REPOSITORY_FILE) for settings in self._config.configured.entries.values())

    async def has_work(self) -> bool:
        """Return whether `sweep` would read anything from GitHub."""
        names, stored_files, scans = await self._read_stored()
        if any(stored_files[name].faults for name in names):
            return True
        return any(self._due(owner, owned, scans) for owner, owned in _by_owner(names).items())

    async def _read_stored(self) -> tuple[list[str], Mapping[str, StoredFile], Mapping[str, FileScan]]:
        """Return the repositories whose files may be read, what is stored of the files, and when each was read."""
        ids = await repository_ids(self._records, map(str.lower, self.repositories))
        away = await reasons_left_alone(self._records, ids)
        names = [name for name in self.repositories if name.lower() not in away]
        return names, await stored_files_of(self._records, names), await self._scans()

    async def sweep(self) -> str:
        """Read each file that may have changed and was not checked for `PAUSE`, and each that has faults.

        A failure in one repository is logged, does not stop the others, and is tried again the next time. Each read is
        stored at once, so the next sweep, or another process, goes on where this one ends.
        """
        began, announced = self._stopwatch(), 0
        names, stored_files, scans = await self._read_stored()
        for owner, owned in _by_owner(names).items():
            if self._stopwatch() - began >= SWEEP_SECONDS:
                break
            due = self._due(owner, owned, scans)
            with only_logged(texts.NOT_LISTED, owner=owner), ranked(Rank.SWEEP):
                listed = await self._listed(owner) if len(due) >= LISTED_FROM else {}
                changed = {name for name in due if _may_differ(scans.get(name.lower()), listed.get(name.lower()))}
                # A file with faults is always read: a new app.yaml, or a new version of the bot, may accept it.
                to_read = [name for name in owned if name in changed or stored_files[name].faults]
                count, is_complete = await self._read(to_read, stored_files, listed, began + SWEEP_SECONDS)
                announced += count
                if is_complete and listed:
                    self._listed_at[owner] = self._clock()
        return f"announced {announced}"

    async def _scans(self) -> dict[str, FileScan]:
        """Return when each file was last read, by names in lower case."""
        former = await self._records.get(LAST_SCANS.of()) or LastScans()
        return {name: FileScan(at) for name, at in former.at.items()} | await self._records.under(FILE_SCAN)

    def _due(self, owner: str, owned: Sequence[str], scans: Mapping[str, FileScan]) -> list[str]:
        """Return the repositories of an owner whose files were not checked for `PAUSE`, or never read."""
        limit = self._clock() - PAUSE
        is_current = self._listed_at.get(owner, 0.0) > limit
        return [
            name
            for name in owned
            if (scan := scans.get(name.lower())) is None or (not is_current and scan.read_at <= limit)
        ]

    async def _listed(self, owner: str) -> Mapping[str, ListedRepository]:
        """Return the repositories of an owner's installation by names in lower case, none without an installation."""
        installed = self._installed()
        for installation in await installed.installations():
            if installation.account.lower() == owner and not installation.suspended:
                repositories = await installed.repositories_of(installation.id)
                return {repository.full_name.lower(): repository for repository in repositories}
        return {}

    async def _read(
        self,
        repositories: Iterable[str],
        stored_files: Mapping[str, StoredFile],
        listed: Mapping[str, ListedRepository],
        ends_at: float,
    ) -> tuple[int, bool]:
        """Read files of one owner; return how many were announced, and whether all of them were read."""
        announced, is_complete = 0, True
        for repository in repositories:
            if self._stopwatch() >= ends_at:
                return announced, False
            is_complete, was_complete = False, is_complete
            with only_logged(texts.NOT_SCANNED, repository=repository):
                moment, description = self._clock(), listed.get(repository.lower())
                try:
                    announced += await self._scan(repository, stored_files[repository])
                except RateLimited as error:
                    # The other repositories of the owner have the same limit.
                    log.warning(texts.NOT_SCANNED, repository=repository, reason=str(error))
                    return announced, False
                scan = FileScan(moment)
                if description is not None:
                    scan = FileScan(moment, description.pushed_at, description.default_branch)
                await self._records.put(FILE_SCAN.of(repository.lower()), scan)
                is_complete = was_complete
        return announced, is_complete

    async def _scan(self, repository: str, stored_file: StoredFile) -> bool:
        """Announce the file as a push if it differs from the stored one, in order with real pushes to its branch."""
        github, app_settings = await self._github_for(repository), self._config.repository(repository)
        if app_settings is None:
            return False  # it has left the pattern of app.yaml meanwhile
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


def _by_owner(names: Iterable[str]) -> dict[str, list[str]]:
    """Return names of repositories by their owners in lower case."""
    owned = defaultdict(list)
    for name in names:
        owned[name.partition("/")[0].lower()].append(name)
    return owned


def _may_differ(scan: FileScan | None, listed: ListedRepository | None) -> bool:
    """Return whether a file may have changed since it was read, by the newest push and the default branch."""
    if scan is None or listed is None or not scan.pushed_at:
        return True
    return (scan.pushed_at, scan.branch) != (listed.pushed_at, listed.default_branch)
