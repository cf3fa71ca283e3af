"""Read the results of labs from handlers and effects.

The store blocks, so each of its calls runs in a thread.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Mapping
from copy import copy
from dataclasses import replace
from typing import TYPE_CHECKING, Any, ParamSpec, Protocol, TypeVar

from nightjar_formats.model import SeenTest, TargetKey

from bot.core.parts import PartKey
from bot.results.compare.diff import is_cheap

if TYPE_CHECKING:
    from bot.aws.bucket import RunStore
    from bot.core.untrusted.pool import Pool
    from bot.core.untrusted.queue import Owner
    from bot.results.ingest.files import FileLists
    from bot.results.settings.results import Results
    from bot.results.store.store import ResultsStore, Statements


Arguments = ParamSpec("Arguments")
Result = TypeVar("Result")


class RunBlocking(Protocol):
    """Runs a function that blocks, as `asyncio.to_thread` does."""

    async def __call__(self, function: Callable[..., Result], /, *args: Any, **kwargs: Any) -> Result:
        """Return what the function returns."""
        ...


class ResultsService:
    """The results of labs. `canonical_name` returns a repository's name as app.yaml has it, `source_for` a store."""

    def __init__(
        self,
        canonical_name: Callable[[str], str],
        store: ResultsStore,
        files: FileLists,
        pool: Pool,
        source_for: Callable[[str], RunStore],
    ) -> None:
        self.store = store
        self.pool = pool
        self.file_lists = files
        self.source_for = source_for
        self.canonical_name = canonical_name
        self._run: RunBlocking = asyncio.to_thread
        self._compares_in_threads = False

    def running_in(self, run: RunBlocking) -> ResultsService:
        """Return a copy that calls the store through `run`, which has its own threads.

        The copy also compares small runs in these threads: a process of the pool would take ten times as long.
        """
        service = copy(self)
        service._run = run
        service._compares_in_threads = True
        return service

    async def read(
        self, function: Statements[Arguments, Result], /, *args: Arguments.args, **kwargs: Arguments.kwargs
    ) -> Result:
        """Return what a function of the store reads in a transaction, for which it takes the connection."""
        return await self._run(self.store.read, function, *args, **kwargs)

    async def write(
        self, function: Statements[Arguments, Result], /, *args: Arguments.args, **kwargs: Arguments.kwargs
    ) -> Result:
        """Return what a function of the store returns that writes in a transaction."""
        return await self._run(self.store.write, function, *args, **kwargs)

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
        """Return the target with its repository's `canonical_name`."""
        return replace(target, repository=self.canonical_name(target.repository))

    async def publish(self, repository: str, results: Results, name: str, document: Mapping[str, Any]) -> bool:
        """Ensure the content of a JSON file beside the folders of a repository's labs; return whether it changed.

        Raises `TryAgain` while the bucket is unavailable, `UserError` where it may not be written.
        """
        store, key = self.source_for(results.store), f"{results.prefix}{self.canonical_name(repository)}/{name}"
        body = json.dumps(document, indent=2).encode() + b"\n"
        return await store.write_over(key, body, content_type="application/json")


RESULTS = PartKey[ResultsService]("results")
