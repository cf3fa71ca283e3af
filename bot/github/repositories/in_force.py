"""The settings in force: app.yaml, overlaid with a repository's own `.github/nightjar.yaml` on its default branch."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field
from functools import lru_cache, partial
from typing import TYPE_CHECKING

import structlog

from bot.config.faults import ConfigError, ConfigFault
from bot.config.own_file import REPOSITORY_FILE as READS_OWN_FILE
from bot.config.repository_file import MOST_BYTES, parse_repository_file
from bot.config.shared import PATH, overlaid
from bot.config.texts import FILE_KINDS, FILE_TOO_LARGE, NOT_A_FILE
from bot.core.run_in_thread import run_in_thread
from bot.engine.records import Record, RecordError
from bot.github.commits.contents import FILE, FoundFile

if TYPE_CHECKING:
    from bot.config import Config, RepositoryConfig
    from bot.config.keys import Keys
    from bot.engine.records import Key, RecordReader, Records

PARSED_FILES = 200
"""The most parsed files in the cache."""
AT_ONCE = 500
"""Records that one statement reads."""

CORRUPT = "cannot read the stored settings of a repository; only app.yaml applies"
OUTDATED = "the stored settings of a repository are invalid in this version; only app.yaml applies"

log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class ValidFile:
    """A valid file: the SHA of its content, the commit at which it was read, and its text.

    All are empty if there is no file, which is valid too.
    """

    sha: str = ""
    commit: str = ""
    text: str = ""


@dataclass(frozen=True, slots=True)
class StoredFile:
    """The stored state of a repository's file: `good` is in force, `seen` identifies the file on the default branch.

    They differ if the file on the branch has faults; `faults` is their number. It was pushed with `commit` onto
    `before`, at `pushed_at` by GitHub's clock, in whole seconds since 1970.
    """

    seen: str = ""
    commit: str = ""
    before: str = ""
    pushed_at: int = 0
    faults: int = 0
    good: ValidFile = field(default_factory=ValidFile)

    def is_newer_than(self, pushed_at: int, commit: str) -> bool:
        """Return whether this is from a later push. Webhooks arrive in any order, and times are whole seconds."""
        return self.pushed_at > pushed_at or (self.pushed_at == pushed_at and self.before == commit)


REPOSITORY_FILE = Record(
    "repository-file",
    1,
    StoredFile,
    "the version of `.github/nightjar.yaml` that is in force for a repository",
    days=None,
)


def file_key(repository: str) -> Key[StoredFile]:
    """Return the key of the stored state of the file of `owner/name`."""
    return REPOSITORY_FILE.of(repository.lower())


async def stored_file_of(records: RecordReader, repository: str) -> StoredFile:
    """Return the stored state of a repository's file; an empty state if its record cannot be read."""
    try:
        return await records.get(file_key(repository)) or StoredFile()
    except RecordError:
        log.exception(CORRUPT, repository=repository)
        return StoredFile()


async def stored_files_of(records: Records, repositories: Collection[str]) -> dict[str, StoredFile]:
    """Return the stored states of the files of repositories, by the given names, with one statement for each 500."""
    names = list(repositories)
    stored_files: dict[str, StoredFile] = {}
    for start in range(0, len(names), AT_ONCE):
        some = names[start : start + AT_ONCE]
        try:
            stored = await records.get_some([REPOSITORY_FILE.of(name.lower()) for name in some])
        except RecordError:
            # One of them cannot be read.
            stored_files |= {name: await stored_file_of(records, name) for name in some}
        else:
            stored_files |= {name: stored.get(REPOSITORY_FILE.of(name.lower()).name) or StoredFile() for name in some}
    return stored_files


async def file_faults(config: Config, records: Records) -> dict[str, int]:
    """Return the number of faults in the file of each repository that may have one, on its default branch."""
    read = [name for name, keys in config.repositories.items() if keys.of(READS_OWN_FILE)]
    return {name: stored_file.faults for name, stored_file in (await stored_files_of(records, read)).items()}


async def config_in_force(config: Config, records: RecordReader, repository: str) -> RepositoryConfig | None:
    """Return the settings in force for `owner/name`: its last valid file over app.yaml; None if app.yaml lacks it.

    Reads one record.
    """
    settings = config.repository(repository)
    if settings is None or not settings.of(READS_OWN_FILE):
        return settings
    return await with_file(settings, (await stored_file_of(records, repository)).good.text)


async def configs_in_force(
    config: Config, records: Records, repositories: Iterable[str]
) -> dict[str, RepositoryConfig]:
    """Return the settings in force by the given names, without repositories that app.yaml lacks.

    One statement reads the records of up to 500 of them.
    """
    settings = {name: keys for name in repositories if (keys := config.repository(name)) is not None}
    stored = await stored_files_of(records, [name for name, keys in settings.items() if keys.of(READS_OWN_FILE)])
    files = {name: await with_file(settings[name], file.good.text) for name, file in stored.items()}
    return settings | files


async def with_file(settings: RepositoryConfig, text: str) -> RepositoryConfig:
    """Return a repository's settings overlaid with the text of its file; a text with faults changes nothing."""
    if not text:
        return settings
    keys = await run_in_thread(partial(_parsed, text, type(settings)), text)
    return overlaid(settings, keys) if keys is not None else settings


def name_of(file: FoundFile | None) -> str:
    """Return the SHA of a file's content, empty if there is no file."""
    return file.sha if file is not None else ""


async def read_found(file: FoundFile | None, settings: RepositoryConfig) -> tuple[str, Sequence[ConfigFault]]:
    """Return the text of a file, or its faults; `settings` are the repository's settings in app.yaml."""
    if file is None:
        return "", ()
    if file.kind != FILE:
        return "", (ConfigFault(PATH, 1, 1, "", NOT_A_FILE.format(kind=FILE_KINDS.get(file.kind, file.kind))),)
    # Check the size before parsing: GitHub sends no content for a file over 1 MB, which would look like an empty file.
    if file.size > MOST_BYTES:
        return "", (ConfigFault(PATH, 1, 1, "", FILE_TOO_LARGE.format(most=MOST_BYTES // 1024)),)
    parse = partial(parse_repository_file, file.raw, type(settings), config=settings)
    try:
        await run_in_thread(parse, file.raw.decode(errors="replace"))
    except ConfigError as error:
        return "", error.faults
    return file.raw.decode(), ()


@lru_cache(PARSED_FILES)
def _parsed(text: str, model: type[RepositoryConfig]) -> Keys | None:
    try:
        return parse_repository_file(text.encode(), model)
    except ConfigError as error:
        # None is cached too, so this is logged once per text, not for each delivery.
        log.warning(OUTDATED, faults=list(map(str, error.faults[:10])))
        return None
