"""Results in one process, as handlers and effects read them.

The store blocks, so every call of it goes to a thread.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from copy import copy
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from nightjar_formats.model import SeenTest, TargetKey

from bot.core.aliases import NO_ALIASES, Aliases
from bot.core.parts import PartKey
from bot.results.compare.cheap import is_cheap
from bot.results.state import Admission, TargetState

if TYPE_CHECKING:
    from bot.aws.bucket import Bucket
    from bot.core.untrusted.pool import Pool
    from bot.core.untrusted.queue import Owner
    from bot.github.client import GitHub
    from bot.results.compare.ancestors import Candidate, Relation
    from bot.results.compare.context import FailureContext
    from bot.results.compare.flaky import Flakiness
    from bot.results.compare.health import SuiteHealth
    from bot.results.ingest.files import FileLists
    from bot.results.settings.results import Results
    from bot.results.store.contexts import AskedFailures
    from bot.results.store.store import ResultsStore


Result = TypeVar("Result")


class RunBlocking(Protocol):
    """Runs a function that blocks, as `asyncio.to_thread` does."""

    async def __call__(self, function: Callable[..., Result], /, *args: Any, **kwargs: Any) -> Result:
        """Return what the function returns."""
        ...


class ResultsService:
    """The results of the `repositories` that have labs, as app.yaml spells them; `source_for` opens a bucket."""

    def __init__(
        self,
        repositories: Iterable[str],
        store: ResultsStore,
        files: FileLists,
        pool: Pool,
        source_for: Callable[[str], Bucket],
    ) -> None:
        self.store = store
        self.pool = pool
        self.file_lists = files
        self.source_for = source_for
        self._run: RunBlocking = asyncio.to_thread
        self._compares_here = False
        self._names = {name.lower(): name for name in repositories}

    def running_in(self, run: RunBlocking) -> ResultsService:
        """Return the same service, whose calls of the store `run` does, in threads of its own.

        There, what is cheap to compare is compared too: a process of the pool would take ten times as long.
        """
        other = copy(self)
        other._run = run
        other._compares_here = True
        return other

    async def compare(
        self,
        owner: Owner,
        pair: tuple[Mapping[str, SeenTest], Mapping[str, SeenTest] | None],
        function: Callable[..., Result],
        *arguments: object,
    ) -> Result:
        """Do what compares a pair of runs, in a process of the pool where it may take long. Raises `OverLimit`."""
        if self._compares_here and await self._run(is_cheap, *pair):
            return await self._run(function, *arguments)
        return await self.pool.run(owner, self.pool.limits.comparison, function, *arguments)

    def canonical(self, about: TargetKey) -> TargetKey:
        """Return a target with its repository's name as app.yaml has it, for so the bucket's keys have it.

        GitHub returns names in their canonical form, and accepts any letter case.
        """
        return replace(about, repository=self._names.get(about.repository.lower(), about.repository))

    async def targets(self, repository: str, sha: str) -> list[TargetKey]:
        """Return the targets with anything stored about a commit."""
        named = self.canonical(TargetKey(repository, "", "")).repository
        return await self._run(self.store.targets, named, sha)

    async def admission(self, repository: str, sha: str) -> Admission | None:
        """Return what is known about a commit that labs tested."""
        return await self._run(self.store.admission, repository, sha)

    async def state(self, about: TargetKey, sha: str) -> TargetState:
        """Return what is known about a commit on a target."""
        return await self._run(self.store.state, about, sha)

    async def baseline_candidates(self, about: TargetKey, suite: str, sha: str) -> list[Candidate]:
        """Return the commits that another one may be compared with if they are ancestors of it, newest first."""
        return await self._run(self.store.baselines, about, suite, sha)

    async def relations(self, repository: str, shas: Collection[str]) -> list[Relation]:
        """Return what is known about how some commits lie to others."""
        return await self._run(self.store.relations, repository, shas)

    async def learn(self, repository: str, relations: Sequence[Relation]) -> None:
        """Store how commits lie to one another."""
        await self._run(self.store.learn, repository, relations)

    async def seen(self, about: TargetKey, suite: str, sha: str) -> Mapping[str, SeenTest]:
        """Return the verdict of every test of a suite at a commit."""
        return await self._run(self.store.seen, about, suite, sha)

    async def contexts(
        self, about: TargetKey, sha: str, asked: Mapping[str, AskedFailures], aliases: Aliases = NO_ALIASES
    ) -> Mapping[tuple[str, str], FailureContext]:
        """Return the contexts of failures at a commit, by suite and test; `asked` has those of each suite."""
        if not asked:
            return {}
        return await self._run(self.store.timelines.contexts, about, sha, asked, aliases)

    async def flakiness(
        self, about: TargetKey, suite: str, sha: str, now: Mapping[str, SeenTest], aliases: Aliases = NO_ALIASES
    ) -> Mapping[str, Flakiness]:
        """Return how flaky tests of a suite are, up to a commit at which they ended like `now`."""
        return await self._run(self.store.failures.flakiness, about, suite, sha, now, aliases)

    async def unreliable(self, about: TargetKey, sha: str = "") -> Mapping[str, SuiteHealth]:
        """Return the suites whose results are unreliable at a commit on a target, by default at the newest run."""
        every = await self._run(self.store.failures.health, about, sha)
        return {suite: one for suite, one in every.items() if one.unreliable}

    async def durations(self, about: TargetKey, suite: str, sha: str) -> Mapping[str, float]:
        """Return how many seconds each test of a suite took at a commit, as far as its runs reported it."""
        return await self._run(self.store.durations, about, suite, sha)

    async def files(self, github: GitHub, repository: str, sha: str) -> frozenset[str]:
        """Return the paths of all files at a commit."""
        return await self.file_lists.of(github, repository, sha)

    async def publish(self, repository: str, results: Results, name: str, document: Mapping[str, Any]) -> bool:
        """Have a JSON file beside the folders of a repository's labs say this; return whether it was written now.

        Raises `TryAgain` while the bucket is unavailable, `UserError` where it may not be written.
        """
        named = self.canonical(TargetKey(repository, "", "")).repository
        bucket, key = self.source_for(results.bucket), f"{results.prefix}{named}/{name}"
        body = json.dumps(document, indent=2).encode() + b"\n"
        return await bucket.write_over(key, body, content_type="application/json")


RESULTS = PartKey[ResultsService]("results")
