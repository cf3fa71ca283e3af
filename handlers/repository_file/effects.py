"""Store a repository's own settings; the last good ones stay in force."""

from __future__ import annotations

from dataclasses import dataclass

import structlog

from bot.github.repositories.in_force import REPOSITORY_FILE, StoredFile, ValidFile, stored_file_of
from bot.plan.effect import Applied, ChangesSettings, StoreContext, StoredEffect
from handlers.repository_file.texts import (
    ALREADY_IN_FORCE,
    APP_YAML_IN_FORCE,
    FILE_INVALID,
    IN_FORCE,
    NEWER_STORED,
    NO_FILE,
    THE_FILE_OF,
)

log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class StoreRepositoryFile(ChangesSettings, StoredEffect):
    """Store the file of the default branch; `sha` is git's hash of its content, empty if there is no file.

    It was pushed with `commit` onto `before`, at `pushed_at`, in seconds since 1970. If it has `faults`, `text` is
    empty, and the last good settings stay in force.
    """

    sha: str
    commit: str
    before: str
    pushed_at: int
    text: str
    faults: int

    @property
    def effect_key(self) -> str:
        """The file; a repository has only one."""
        return "repository-file"

    async def store(self, context: StoreContext) -> Applied:
        """Store the file, unless a newer push is stored."""
        repository = context.repository.full_name
        stored = await stored_file_of(context.changes, repository)
        if stored.is_newer_than(self.pushed_at, self.commit):
            return Applied(NEWER_STORED, changed=False)
        good = stored.good if self.faults else ValidFile(self.sha, self.commit, self.text) if self.sha else ValidFile()
        new = StoredFile(self.sha, self.commit, self.before, self.pushed_at, self.faults, good)
        if new == stored:
            return Applied(ALREADY_IN_FORCE, changed=False)
        # Names of repositories are case-insensitive on GitHub.
        context.changes.put(REPOSITORY_FILE.of(repository.lower()), new)
        if not self.faults:
            return Applied(IN_FORCE.format(commit=self.commit[:7]) if self.sha else NO_FILE)
        in_force = THE_FILE_OF.format(commit=good.commit[:7]) if good.sha else APP_YAML_IN_FORCE
        reason = FILE_INVALID.format(commit=self.commit[:7], faults=self.faults, in_force=in_force)
        log.warning("the settings of a repository have errors", repository=repository, reason=reason)
        return Applied(reason)
