"""Read the results of labs from handlers and effects.

The store blocks, so each of its calls runs in a thread.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Collection, Mapping, Sequence
from copy import copy
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from nightjar_formats.model import SeenTest, TargetKey

from bot.core.aliases import NO_ALIASES, Aliases
from bot.core.parts import PartKey
from bot.results.compare.diff import is_cheap
from bot.results.state import Admission, TargetState

if TYPE_CHECKING:
    from bot.aws.bucket import RunStore
    from bot.core.untrusted.pool import Pool
    from bot.core.untrusted.queue import Owner
    from bot.github.client import GitHub
    from bot.results.compare.ancestors import Candidate, Relation
    from bot.results.compare.context import FailureContext
    from bot.results.compare.flaky import Flakiness
    from bot.results.compare.health import SuiteHealth
    from bot.results.ingest.files import FileLists
    from bot.results.settings.results import Results
    from bot.results.store.failures.contexts import ContextQuery
    from bot.results.store.store import ResultsStore


Result = TypeVar("Result")


class RunBlocking(Protocol):
    """Runs a function that blocks, as `asyncio.to_thread` does."""

    async def __call__(self, function: Callable[..., Result], /, *args: Any, **kwargs: Any) -> Result:
        """Return what the function returns."""
        ...


class ResultsService:
    """The results of labs. `name_of` returns a repository's name as app.yaml has it; `source_for` opens a store."""

    def __init__(
        self,
        name_of: Callable[[str], str | None],
        store: ResultsStore,
        files: FileLists,
        pool: Pool,
        source_for: Callable[[str], RunStore],
    ) -> None:
        self.store = store
        self.pool = pool
        self.file_lists = files
        self.source_for = source_for
        self._run: RunBlocking = asyncio.to_thread
        self._compares_in_threads = False
        self._name_of = name_of

    def running_in(self, run: RunBlocking) -> ResultsService:
        """Return a copy that calls the store through `run`, which has its own threads.

        The copy also compares small runs in these threads: a process of the pool would take ten times as long.
        """
        service = copy(self)
        service._run = run
        service._compares_in_threads = True
        return service

    async def compare(
        self,
        owner: Owner,
        pair: tuple[Mapping[str, SeenTest], Mapping[str, SeenTest] | None],
        function: Callable[..., Result],
        *arguments: object,
    ) -> Result:
        """Call `function`, which compares a pair of runs, in a process of the pool unless the pair is small.

        Raises `OverLimit` if the comparison exceeds the limits of the process.
        """
        if self._compares_in_threads and await self._run(is_cheap, *pair):
            return await self._run(function, *arguments)
        return await self.pool.run(owner, self.pool.limits.comparison, function, *arguments)

    def canonical(self, target: TargetKey) -> TargetKey:
        """Return the target with its repository's name as app.yaml has it, because bucket keys use that name.

        GitHub returns canonical names, and accepts any letter case.
        """
        return replace(target, repository=self._name_of(target.repository) or target.repository)

    async def targets(self, repository: str, sha: str) -> list[TargetKey]:
        """Return the targets for which something is stored about a commit."""
        canonical_name = self.canonical(TargetKey(repository, "", "")).repository
        return await self._run(self.store.targets, canonical_name, sha)

    async def admission(self, repository: str, sha: str) -> Admission | None:
        """Return the admission of a commit, or None if no run of it was admitted."""
        return await self._run(self.store.admission, repository, sha)

    async def state(self, target: TargetKey, sha: str) -> TargetState:
        """Return the combined result of a commit's runs on a target."""
        return await self._run(self.store.state, target, sha)

    async def baseline_candidates(self, target: TargetKey, suite: str, sha: str) -> list[Candidate]:
        """Return commits with results of a suite, newest first; its ancestors among them are possible baselines."""
        return await self._run(self.store.baselines, target, suite, sha)

    async def relations(self, repository: str, shas: Collection[str]) -> list[Relation]:
        """Return the stored relations of some commits to others."""
        return await self._run(self.store.relations, repository, shas)

    async def learn(self, repository: str, relations: Sequence[Relation]) -> None:
        """Store relations between commits."""
        await self._run(self.store.learn, repository, relations)

    async def seen(self, target: TargetKey, suite: str, sha: str) -> Mapping[str, SeenTest]:
        """Return the verdict of every test of a suite at a commit."""
        return await self._run(self.store.seen, target, suite, sha)

    async def contexts(
        self, target: TargetKey, sha: str, failures: Mapping[str, ContextQuery], aliases: Aliases = NO_ALIASES
    ) -> Mapping[tuple[str, str], FailureContext]:
        """Return the contexts of failures at a commit, by suite and test; `failures` are the failures of each suite."""
        if not failures:
            return {}
        return await self._run(self.store.failures.contexts, target, sha, failures, aliases)

    async def flakiness(
        self, target: TargetKey, suite: str, sha: str, outcomes: Mapping[str, SeenTest], aliases: Aliases = NO_ALIASES
    ) -> Mapping[str, Flakiness]:
        """Return how flaky tests of a suite are, up to a commit; `outcomes` are the tests' outcomes at that commit."""
        return await self._run(self.store.failures.flakiness, target, suite, sha, outcomes, aliases)

    async def unreliable(self, target: TargetKey, sha: str = "") -> Mapping[str, SuiteHealth]:
        """Return the suites whose results are unreliable at a commit on a target, by default at the newest run."""
        health_by_suite = await self._run(self.store.failures.health, target, sha)
        return {suite: health for suite, health in health_by_suite.items() if health.unreliable}

    async def durations(self, target: TargetKey, suite: str, sha: str) -> Mapping[str, float]:
        """Return how many seconds each test of a suite took at a commit, for the tests whose duration was reported."""
        return await self._run(self.store.durations, target, suite, sha)

    async def files(self, github: GitHub, repository: str, sha: str) -> frozenset[str]:
        """Return the paths of all files at a commit."""
        return await self.file_lists.of(github, repository, sha)

    async def publish(self, repository: str, results: Results, name: str, document: Mapping[str, Any]) -> bool:
        """Ensure the content of a JSON file beside the folders of a repository's labs; return whether it changed.

        Raises `TryAgain` while the bucket is unavailable, `UserError` where it may not be written.
        """
        canonical_name = self.canonical(TargetKey(repository, "", "")).repository
        store, key = self.source_for(results.store), f"{results.prefix}{canonical_name}/{name}"
        body = json.dumps(document, indent=2).encode() + b"\n"
        return await store.write_over(key, body, content_type="application/json")


RESULTS = PartKey[ResultsService]("results")
