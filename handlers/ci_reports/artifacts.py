"""Read the results of a workflow run: JUnit files in artifacts of GitHub Actions, each artifact one suite.

The code of a pull request writes these files. So they are read within limits, and are used for advice only.
https://docs.github.com/rest/actions/artifacts
"""

from __future__ import annotations

import tempfile
from collections.abc import Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from typing import TYPE_CHECKING, BinaryIO, cast

from cachetools import LRUCache
from nightjar_formats.limits import MAX_INFLATED_BYTES
from nightjar_formats.refused import Refused

from bot.config.types import matches
from bot.core.events import Payload
from bot.core.parts import PartKey
from bot.core.single_flight import SingleFlight
from bot.core.untrusted.limits import OverLimit
from bot.core.untrusted.queue import Owner
from bot.github.errors import is_not_found
from bot.github.text.markdown import code, truncate
from bot.github.transport.download import TooLong
from handlers.ci_reports import texts
from handlers.ci_reports.archives import ArchiveBudget, read_archive
from handlers.ci_reports.outcomes import SuiteOutcomes

if TYPE_CHECKING:
    from bot.core.untrusted.pool import Pool
    from bot.github.client import GitHub
    from bot.results.ingest.files import FileLists

ARTIFACTS = "/repos/{+repo}/actions/runs/{run}/artifacts"
ARCHIVE = "/repos/{+repo}/actions/artifacts/{id}/zip"

MOST_ARTIFACTS = 20
"""The most artifacts of a run that are read, with two requests for each."""
MOST_LISTED = 500
"""The most artifacts of a run that are listed, with one request for each hundred."""
MAX_ARTIFACT_BYTES = 64 << 20
MOST_REMEMBERED = 400_000
"""The most tests that a process caches, about 100 MB. Many pull requests are compared with the same run of the base."""
SHOWN = 200
"""The most characters of a name or a reason that the section shows."""


@dataclass(frozen=True, slots=True)
class RunAttempt:
    """One attempt of a run: its commit, and its page."""

    id: int
    attempt: int
    sha: str
    url: str


@dataclass(frozen=True, slots=True)
class Reports:
    """The suites of a run by the names of their artifacts.

    `unread` are artifacts that match and could not be read at all, `troubles` says why, in sentences of Markdown.
    """

    suites: Mapping[str, SuiteOutcomes]
    unread: frozenset[str] = frozenset()
    troubles: tuple[str, ...] = ()

    @property
    def size(self) -> int:
        """Return its size for the cache: the number of stored tests, plus one."""
        return 1 + sum(len(suite.seen) for suite in self.suites.values())


class Artifacts:
    """Reads the reports of workflow runs and caches the last few; each run's `ArchiveBudget` has `most` bytes."""

    def __init__(self, files: FileLists, pool: Pool, most: int = MAX_INFLATED_BYTES) -> None:
        self._files = files
        self._pool = pool
        self._most = most
        self._known: LRUCache[tuple[str, RunAttempt, tuple[str, ...]], Reports] = LRUCache(
            MOST_REMEMBERED, getsizeof=lambda reports: reports.size
        )
        # Both sections may ask at the same moment, because the end of a run triggers both.
        self._flights: SingleFlight[tuple[str, RunAttempt, tuple[str, ...]], Reports] = SingleFlight()

    async def reports_of(self, github: GitHub, repository: str, run: RunAttempt, patterns: Sequence[str]) -> Reports:
        """Read the artifacts of a run whose names match a pattern; one that cannot be read does not affect the others.

        Raises `TryAgain`, and GitHub's refusals.
        """
        key = (repository, run, tuple(patterns))
        reports = self._known.get(key)
        if reports is None:
            reports = await self._flights.do(key, lambda: self._read(github, repository, run, patterns))
            # LRUCache raises ValueError for an item that is larger than the whole cache.
            if reports.size <= MOST_REMEMBERED:
                self._known[key] = reports
        return reports

    async def _read(self, github: GitHub, repository: str, run: RunAttempt, patterns: Sequence[str]) -> Reports:
        self._pool.check(Owner(repository.lower(), run.sha))  # before anything is fetched for it
        artifacts = await _list_artifacts(github, repository, run, patterns)
        listed = (await self._files.read(github, repository, run.sha)).paths if artifacts else frozenset()
        suites: dict[str, SuiteOutcomes] = {}
        unread = {artifact.string("name") for artifact in artifacts}
        troubles = (
            [texts.ARTIFACTS_LEFT_OUT.format(count=len(artifacts), most=MOST_ARTIFACTS)]
            if len(artifacts) > MOST_ARTIFACTS
            else []
        )
        budget = ArchiveBudget(self._most)
        for artifact in artifacts[:MOST_ARTIFACTS]:
            name = artifact.string("name")
            try:
                suites[name], errors = await self._read_suite(github, repository, run, artifact, listed, budget)
            except OverLimit as over:
                errors = (str(over),)
                # The code of the pull request may cause this on purpose, with a process lost each time: read no more of
                # the run.
                budget.end(texts.ARTIFACT_NOT_READ)
            except Refused as refused:
                # One unreadable artifact hides no other: in TVM's bot one fault stopped the whole comment (TVM #12824).
                errors = (str(refused),)
            else:
                unread.remove(name)
            troubles += [texts.ARTIFACT_UNREADABLE.format(name=_code(name), why=_code(error)) for error in errors]
        return Reports(suites, frozenset(unread), tuple(troubles))

    async def _read_suite(
        self,
        github: GitHub,
        repository: str,
        run: RunAttempt,
        artifact: Payload,
        listed: frozenset[str],
        budget: ArchiveBudget,
    ) -> tuple[SuiteOutcomes, tuple[str, ...]]:
        """Return the tests of an artifact, and why some of its files could not be read.

        Raises `Refused` if nothing of it can be used, `OverLimit` if it costs too much to read.
        """
        budget.check()
        with tempfile.TemporaryFile() as file:
            await _fetch(github, repository, artifact, cast("BinaryIO", file))
            owner, limits = Owner(repository.lower(), run.sha), self._pool.limits.artifact
            files = [cast("BinaryIO", file)]
            archive = await self._pool.run(
                owner, limits, read_archive, listed, budget.remaining, budget.limit, files=files
            )
        budget.remaining = archive.remaining
        if archive.suite is None:
            raise Refused(archive.errors[0])
        return archive.suite, archive.errors


async def _list_artifacts(github: GitHub, repository: str, run: RunAttempt, patterns: Sequence[str]) -> list[Payload]:
    """Return the artifacts whose names match, sorted by name; of several with one name, the newest."""
    newest: dict[str, Payload] = {}
    listed_count = 0
    url_vars = {"repo": repository, "run": str(run.id)}
    async with aclosing(github.getiter(ARTIFACTS, url_vars=url_vars, iterable_key="artifacts")) as artifacts:
        async for item in artifacts:
            artifact = Payload(item, "artifact")
            name = artifact.string("name")
            # GitHub still lists artifacts whose files it has deleted.
            if matches(patterns, name) and not artifact.flag("expired"):
                earlier = newest.setdefault(name, artifact)
                newest[name] = max(earlier, artifact, key=lambda candidate: candidate.integer("id"))
            listed_count += 1
            if listed_count == MOST_LISTED:
                break
    return [newest[name] for name in sorted(newest)]


async def _fetch(github: GitHub, repository: str, artifact: Payload, file: BinaryIO) -> None:
    if artifact.integer("size_in_bytes") > MAX_ARTIFACT_BYTES:
        raise Refused(texts.ARTIFACT_TOO_LARGE.format(mib=MAX_ARTIFACT_BYTES >> 20))
    try:
        url_vars = {"repo": repository, "id": str(artifact.integer("id"))}
        await github.download(ARCHIVE, url_vars, file, limit=MAX_ARTIFACT_BYTES)
    except TooLong:
        raise Refused(texts.ARTIFACT_TOO_LARGE.format(mib=MAX_ARTIFACT_BYTES >> 20)) from None
    except Exception as error:
        if is_not_found(error):
            raise Refused(texts.ARTIFACT_REMOVED) from None
        raise


def _code(text: str) -> str:
    return code(truncate(text, SHOWN))


ARTIFACTS_READER = PartKey[Artifacts]("artifacts")
