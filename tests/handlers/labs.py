"""A lab in a world: results in the real store, a GitHub over HTTP, and the handler between them."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, closing
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from nightjar_formats.columns.collect import collect
from nightjar_formats.model import Case, Claims, RunKey, Status

from bot.app.features import CODEC
from bot.app.load import parse_config
from bot.config import Config
from bot.core.events import Delivery, Payload, Repository
from bot.results.deliveries import CHECK_EVENT, CheckEvent
from bot.results.state import Admission, Run, RunState
from bot.results.store.store import ResultsStore
from handlers.results import check_runs as hardware_results
from handlers.results.check_runs import NAME
from sandbox.model.checks import CheckRun
from tests.handlers.driver import FULL_NAME, World, a_world
from tests.results.reported import ABOUT, AT
from tests.tables import with_tables

TILE, MATMUL = "tests/test_tile.py::test_tile", "tests/test_matmul.py::test_matmul"
CHECK = "hardware/example-lab/hexagon-v73"


@dataclass
class Labs:
    """A world in which a test stores a lab's results and runs the scheduled checks."""

    world: World
    store: ResultsStore
    commits: int = 0
    uploads: int = 0
    why: str = ""

    def commit(self, number: int = 1, *, onto: str | None = None) -> str:
        """Push commits to the main branch, or to a new branch that starts at `onto`; return the last one's SHA."""
        repository, branch = self.world.repository, "feature" if onto else "main"
        author = self.world.github.user("octocat")
        sha = onto or repository.branch(branch)
        files = {**repository.git.commits[sha].files, "tests/test_tile.py": "pass\n" * 20}
        for _ in range(number):
            self.commits += 1
            # Their times match those of their results.
            moment = datetime.fromtimestamp(AT + self.commits, UTC)
            sha = repository.git.commit((sha,), files | {"count": str(self.commits)}, "Improve it", author, moment).sha
        repository.move(f"refs/heads/{branch}", sha, author)
        return sha

    def upload(
        self,
        sha: str,
        *failed: str,
        pull: int | None = None,
        suite: str = "operators",
        total: int = 1,
        target: str = ABOUT.target,
    ) -> None:
        """Store a run of three tests, some of which failed."""
        commit = self.world.repository.git.commits.get(sha)
        moment = commit.date.timestamp() if commit else AT + self.commits
        admission = Admission(moment, mainline=pull is None, pull_request=pull)
        self.uploads += 1
        key = RunKey(FULL_NAME, ABOUT.lab, target, sha, f"run-{suite}")
        run = Run(key, "v1", RunState.STORED, "", AT + self.uploads, 0, Claims(suite, shard_total=total), admission)
        tests = (TILE, MATMUL, "tests/test_ok.py::test_ok")
        cases = [Case(t, Status.FAILED if t in failed else Status.PASSED, line=3, message="wrong") for t in tests]
        self.store.put(run, collect(cases, lambda case: (case.name, case.name.partition("::")[0])))

    async def pending(self, sha: str) -> None:
        """Run the scheduled check of a commit."""
        pending = CheckEvent(ABOUT.lab, ABOUT.target, sha, revision=1, over=True)
        body = CHECK_EVENT.body(Repository(self.world.repository.id, FULL_NAME, None), pending)
        delivery = Delivery("check:1", CHECK_EVENT.name, Payload(body), AT)
        assert (await self.world.pipeline.handlers_for(delivery)).handlers == (NAME,)
        planned = await self.world.pipeline.plan(delivery, NAME, "check:1")
        self.why = planned.why
        for effect in planned.effects:
            await self.world.apply_alone(CODEC.decode(effect.effect))

    async def checked(self, sha: str, *failed: str, **values: Any) -> CheckRun:
        """Store a run, run its scheduled check, and return the check run."""
        self.upload(sha, *failed, **values)
        await self.pending(sha)
        return self.check(sha)

    def check(self, sha: str) -> CheckRun:
        """Return the newest check run on a commit."""
        (run,) = self.world.repository.check_runs(sha, CHECK)
        return run

    async def press(self, run: CheckRun, by: str, button: str = "") -> CheckRun:
        """Let somebody press a button, by default GitHub's *Re-run*; return the resulting check run."""
        if button:
            run.press(by, button)
        else:
            run.rerequest(by)
        await self.world.happen(event="check_run")
        return self.check(run.head_sha)


def configured(labs: dict[str, Any]) -> Config:
    results = {"bucket": "device-results", "labs": labs}
    return parse_config(json.dumps({"repositories": {FULL_NAME: {"results": results}}}).encode(), "app.yaml")


@asynccontextmanager
async def a_lab(tmp_path: Path) -> AsyncIterator[Labs]:
    """Start a world that has a lab."""
    lab = {"targets": [ABOUT.target], "contacts": ["@example-lab-ci"], "reproduce": "pytest {test}"}
    config = configured({ABOUT.lab: lab})
    async with a_world(tmp_path) as world:
        world.configure(config, hardware_results.router)
        with closing(ResultsStore(with_tables(f"sqlite:///{tmp_path / 'nightjar.db'}"))) as store:
            store.open()
            yield Labs(world, store)
