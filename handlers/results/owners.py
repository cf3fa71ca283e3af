"""Who owns a test: `owners` of app.yaml and of the repository's own file, or else the repository's CODEOWNERS.

CODEOWNERS is read when a nightly run has new failures. The list of the commit's files, which such a run needs anyway,
has git's hash of it, so only a changed file costs a request.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import TYPE_CHECKING

from bot.core.run_in_thread import run_in_thread
from bot.effects.remember import StoreRecord
from bot.github.commits.contents import read_blob
from bot.results.compare.codeowners import MOST_BYTES, CodeOwners
from bot.results.compare.owners import OwnersOf, owners_of
from handlers.results.config import OWNERS
from handlers.results.records import CODE_OWNERS, StoredCodeOwners

if TYPE_CHECKING:
    from bot.config.model import RepositoryConfig
    from bot.engine.records import RecordReader, Records
    from bot.plan.effect import Effect
    from bot.plan.handler import Context
    from bot.results.ingest.files import CommitFiles

PARSED_FILES = 50


async def store_code_owners(context: Context, files: CommitFiles) -> list[Effect]:
    """Return the effect that stores CODEOWNERS of a nightly commit with these files; none if it is stored already."""
    repository = context.repository.full_name
    key = CODE_OWNERS.of(repository.lower())
    stored = await context.records.get(key)
    if files.codeowners == (stored.sha if stored else ""):
        return []
    if not files.codeowners:
        return [StoreRecord.of(key, None, is_shown=True)] if files.is_complete else []
    text = ""
    # As on GitHub, a larger file has no effect.
    if files.codeowners_bytes <= MOST_BYTES:
        text = (await read_blob(context.github, repository, files.codeowners)).decode(errors="replace")
    return [StoreRecord.of(key, StoredCodeOwners(files.codeowners, text), is_shown=True)]


async def owners_in_force(records: RecordReader, repository: str, settings: RepositoryConfig) -> OwnersOf:
    """Return what finds the owners of a repository's tests; reads one record."""
    return await _owners(settings, await records.get(CODE_OWNERS.of(repository.lower())))


async def all_owners_in_force(records: Records, settings: Mapping[str, RepositoryConfig]) -> dict[str, OwnersOf]:
    """Return what finds the owners of tests, by repository; reads all records with one statement."""
    keys = {name: CODE_OWNERS.of(name.lower()) for name in settings}
    stored = await records.get_some(list(keys.values()))
    return {name: await _owners(settings[name], stored.get(key.name)) for name, key in keys.items()}


async def _owners(settings: RepositoryConfig, stored: StoredCodeOwners | None) -> OwnersOf:
    items = settings.of(OWNERS)
    if stored is None:
        return owners_of(items)
    text = stored.text
    # Two seconds for the largest file.
    code_owners = await run_in_thread(lambda: _parsed(text), text)

    def of_file(test: str) -> tuple[str, ...]:
        owners: tuple[str, ...] = code_owners.owners(test.partition("::")[0])
        return owners

    return owners_of(items, of_file)


@lru_cache(PARSED_FILES)
def _parsed(text: str) -> CodeOwners:
    return CodeOwners(text)
