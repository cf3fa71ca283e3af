"""A test with another name keeps failing under it if app.yaml says that it is the same, and is new if not."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import pytest

from bot.config import parse_config
from bot.results.model import Case, RunKey, Status
from bot.results.state import Admission, Claims, Run, RunState
from bot.results.store.collect import collect
from tests.handlers.driver import FULL_NAME
from tests.handlers.labs import Labs, a_lab
from tests.results.reported import ABOUT, AT

OLD, NEW, OTHER = "kernel.poll.wait", "fs.notify.await", "kernel.sched.yield"


@pytest.fixture
async def lab(tmp_path: Path) -> AsyncIterator[Labs]:
    async with a_lab(tmp_path) as made:
        yield made


def configure(lab: Labs, *renames: dict[str, str]) -> None:
    results = {"bucket": "device-results", "labs": {ABOUT.lab: {"targets": [ABOUT.target]}}}
    repository = {"results": results, "renames": renames}
    config = parse_config(json.dumps({"repositories": {FULL_NAME: repository}}).encode(), "app.yaml")
    lab.world.pipeline = replace(lab.world.pipeline, config=config)


def upload(lab: Labs, sha: str, failed: str) -> None:
    moment = lab.world.repository.git.commits[sha].date.timestamp()
    key = RunKey(FULL_NAME, ABOUT.lab, ABOUT.target, sha, "run-1")
    run = Run(key, "v1", RunState.STORED, "", AT, 0, Claims("kernel"), Admission(moment, mainline=True))
    cases = [Case(failed, Status.FAILED, message="wrong"), Case(OTHER, Status.PASSED)]
    assert lab.store.put(run, collect(cases, lambda case: (case.name, "")))


async def test_a_failure_has_its_history_while_app_yaml_names_the_rename(lab: Labs) -> None:
    first, second = lab.commit(), lab.commit()
    upload(lab, first, OLD)
    upload(lab, second, NEW)
    configure(lab)
    await lab.pending(second)
    assert lab.check(second).title == "1 new failure, 1 removed · 1 passed"
    configure(lab, {"from": OLD, "to": NEW})
    shown = await lab.press(lab.check(second), "octocat")
    assert shown.title == "1 renamed, 1 still failing · 1 passed"
    assert f"1 test was renamed and keeps its history: `{OLD}` is now `{NEW}`." in (shown.text or "")
    configure(lab)
    shown = await lab.press(lab.check(second), "octocat")
    assert shown.title == "1 new failure, 1 removed · 1 passed"
