"""What a workflow run tested: JUnit files in artifacts of GitHub Actions, each artifact one suite.

The code of a pull request writes them: they are read within limits and believed no further than advice goes.
https://docs.github.com/rest/actions/artifacts
"""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, BinaryIO

from cachetools import LRUCache

from bot.ci.outcomes import Suite
from bot.ci.zips import read_zip
from bot.config.types import matches
from bot.github.auth import SingleFlight
from bot.github.download import TooLong
from bot.github.errors import is_not_found
from bot.github.markdown import code, truncate
from bot.payload import Payload
from bot.results import formats
from bot.results.collect import Columns, collect, merge, read_names, split
from bot.results.columns import SEEN, duration
from bot.results.identity import Resolver
from bot.results.limits import MAX_INFLATED_BYTES, Refused, TooMuch
from bot.results.opening import inflated

if TYPE_CHECKING:
    from bot.github.client import GitHub
    from bot.results.files import FileLists

ARTIFACTS = "/repos/{+repo}/actions/runs/{run}/artifacts"
ARCHIVE = "/repos/{+repo}/actions/artifacts/{id}/zip"

MOST_ARTIFACTS = 20
"""Artifacts of a run that are read, two requests for each."""
MOST_LISTED = 500
"""Artifacts of a run that are looked at, a hundred a request."""
MAX_ARTIFACT_BYTES = 64 << 20
MOST_REMEMBERED = 400_000
"""Tests of runs that a process keeps at hand; they take about 100 MB. A run of the base serves many pull requests."""
REPORTS = (".xml", ".xml.gz")
"""How the names of files end that are read as JUnit."""
MOST_WRONG = 3
"""Files of an artifact of which it is told why they could not be read."""
SHOWN = 200
"""Characters of a name or a reason that are shown."""

UNREADABLE = "The artifact {name} could not be read: {why}."
TOO_LARGE = f"it has more than {MAX_ARTIFACT_BYTES >> 20} MiB"
TOO_LONG = "the files of all artifacts that are read have more than {limit:,} bytes together once they are inflated"
GONE = "it is gone"
NO_REPORTS = f"it holds no file that ends with {REPORTS[0]}"
MORE_WRONG = "and {count:,} more of its files could not be read"
LEFT_OUT = f"Of {{count}} artifacts that match, the first {MOST_ARTIFACTS} were read."


@dataclass(frozen=True, slots=True)
class WorkflowRun:
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

    suites: Mapping[str, Suite]
    unread: frozenset[str] = frozenset()
    troubles: tuple[str, ...] = ()

    @property
    def size(self) -> int:
        """Return how much it is to be kept."""
        return 1 + sum(len(suite.seen) for suite in self.suites.values())


@dataclass(slots=True)
class Budget:
    """The bytes that all files of a run together may have, and may still have, once everything is inflated.

    One for all artifacts: each with its own, the code of a pull request would keep a core busy for minutes.
    """

    left: int
    limit: int = field(init=False)

    def __post_init__(self) -> None:
        self.limit = self.left

    def check(self) -> None:
        """Raise `TooMuch` if it is spent."""
        if self.left < 0:
            raise TooMuch(TOO_LONG.format(limit=self.limit))


class Artifacts:
    """Reads the reports of workflow runs, and remembers the last few runs; `most` is in bytes, of each `Budget`."""

    def __init__(self, files: FileLists, most: int = MAX_INFLATED_BYTES) -> None:
        self._files = files
        self._most = most
        self._known: LRUCache[tuple[str, WorkflowRun, tuple[str, ...]], Reports] = LRUCache(
            MOST_REMEMBERED, getsizeof=lambda reports: reports.size
        )
        # Two sections may ask at the same moment, for a run ends once for both.
        self._flights: SingleFlight[tuple[str, WorkflowRun, tuple[str, ...]], Reports] = SingleFlight()

    async def of_run(self, github: GitHub, repository: str, run: WorkflowRun, patterns: Sequence[str]) -> Reports:
        """Return what the artifacts of a run hold whose names match; what one lacks never keeps another from counting.

        Raises `TryAgain`, and GitHub's refusals.
        """
        key = (repository, run, tuple(patterns))
        known = self._known.get(key)
        if known is None:
            known = await self._flights.do(key, lambda: self._read(github, repository, run, patterns))
            if known.size <= MOST_REMEMBERED:
                self._known[key] = known
        return known

    async def _read(self, github: GitHub, repository: str, run: WorkflowRun, patterns: Sequence[str]) -> Reports:
        found = await _listed(github, repository, run, patterns)
        listed = await self._files.of(github, repository, run.sha) if found else frozenset()
        suites: dict[str, Suite] = {}
        unread = {artifact.string("name") for artifact in found}
        troubles = [LEFT_OUT.format(count=len(found))] if len(found) > MOST_ARTIFACTS else []
        budget = Budget(self._most)
        for artifact in found[:MOST_ARTIFACTS]:
            name = artifact.string("name")
            try:
                suites[name], wrong = await _suite(github, repository, artifact, listed, budget)
            except Refused as refused:
                wrong = (str(refused),)
            else:
                unread.remove(name)
            troubles += [UNREADABLE.format(name=_code(name), why=_code(why)) for why in wrong]
        return Reports(suites, frozenset(unread), tuple(troubles))


async def _listed(github: GitHub, repository: str, run: WorkflowRun, patterns: Sequence[str]) -> list[Payload]:
    """Return the artifacts whose names match, sorted by name; of several attempts at one name the newest."""
    newest: dict[str, Payload] = {}
    looked_at = 0
    url_vars = {"repo": repository, "run": str(run.id)}
    async with aclosing(github.getiter(ARTIFACTS, url_vars=url_vars, iterable_key="artifacts")) as artifacts:
        async for item in artifacts:
            artifact = Payload(item, "artifact")
            name = artifact.string("name")
            if matches(patterns, name) and not artifact.flag("expired"):
                known = newest.setdefault(name, artifact)
                newest[name] = max(known, artifact, key=lambda one: one.integer("id"))
            looked_at += 1
            if looked_at == MOST_LISTED:
                break
    return [newest[name] for name in sorted(newest)]


async def _suite(
    github: GitHub, repository: str, artifact: Payload, listed: frozenset[str], budget: Budget
) -> tuple[Suite, tuple[str, ...]]:
    """Return the tests of an artifact, and why files of it could not be read. Raises `Refused` for the whole of it."""
    budget.check()
    if artifact.integer("size_in_bytes") > MAX_ARTIFACT_BYTES:
        raise Refused(TOO_LARGE)
    with tempfile.TemporaryFile() as file:
        try:
            where = {"repo": repository, "id": str(artifact.integer("id"))}
            await github.download(ARCHIVE, where, file, limit=MAX_ARTIFACT_BYTES)
        except TooLong:
            raise Refused(TOO_LARGE) from None
        except Exception as error:
            if is_not_found(error):
                raise Refused(GONE) from None
            raise
        return await asyncio.to_thread(parsed, file, listed, budget)


def parsed(file: BinaryIO, listed: frozenset[str], budget: Budget) -> tuple[Suite, tuple[str, ...]]:
    """Return the tests of an archive of JUnit files, and why some of those could not be read.

    `listed` are the files of the repository at the commit; what is inflated is taken from the budget. Raises `Refused`
    where nothing of it can be used.
    """
    resolve, wrong, count = Resolver(listed).resolve, list[str](), 0

    def read(name: str, stream: BinaryIO) -> Columns | str:
        try:
            # A file in an archive may be compressed once more: the archive's own limit knows nothing of that.
            meter = _Meter(budget)
            packed = inflated(_Counted(stream, meter), name)  # type: ignore[arg-type]  # it is read
            counted = _Counted(packed, meter)
            return collect(formats.read(counted, name, "junit"), resolve)  # type: ignore[arg-type]  # it is read
        except Refused as refused:
            if budget.left < 0:
                raise
            return str(refused)

    def good() -> Iterator[Columns]:
        nonlocal count
        for report in read_zip(file, lambda name: name.lower().endswith(REPORTS), read):
            count += 1
            if isinstance(report, str):
                wrong.append(report)
            else:
                yield report

    # One after the other, so that never more than the tests of a whole run are held.
    columns = merge(good())
    if not count:
        raise Refused(NO_REPORTS)
    seen, seconds = {}, {}
    for test, packed in zip(read_names(columns.names), columns.tests.values(), strict=True):
        status, timed = split(packed)
        seen[test] = SEEN[status]
        if (took := duration(timed)) is not None:
            seconds[test] = took
    return Suite(seen, seconds, complete=not wrong), _few(wrong)


def _few(wrong: Sequence[str]) -> tuple[str, ...]:
    more = [MORE_WRONG.format(count=len(wrong) - MOST_WRONG)] if len(wrong) > MOST_WRONG else []
    return (*wrong[:MOST_WRONG], *more)


@dataclass(slots=True)
class _Meter:
    """Takes from a budget what a file is, before or after it is inflated once more: of the two whichever is more.

    A megabyte of compressed nothing is work too.
    """

    budget: Budget
    taken: int = 0

    def take(self, given: int) -> None:
        """Count a file of which `given` bytes were read so far; raises `TooMuch` once the budget is spent."""
        self.budget.left -= max(0, given - self.taken)
        self.taken = max(given, self.taken)
        self.budget.check()


@dataclass(slots=True)
class _Counted:
    """A stream whose bytes are told to a meter."""

    inner: BinaryIO
    meter: _Meter
    given: int = 0

    def read(self, size: int = -1) -> bytes:
        """Return some bytes."""
        piece = self.inner.read(size)
        self.given += len(piece)
        self.meter.take(self.given)
        return piece


def _code(text: str) -> str:
    return code(truncate(text, SHOWN))
