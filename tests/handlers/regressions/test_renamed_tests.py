"""A renamed test keeps its history and its messages if app.yaml names the rename; otherwise it is new."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import pytest
from nightjar_formats.columns.collect import collect
from nightjar_formats.model import Case, Claims, RunKey, Status

from bot.app.features import CODEC
from bot.app.load import parse_config
from bot.core.events import Delivery, Payload, Repository
from bot.results.deliveries import CHECK_EVENT, CheckEvent
from bot.results.state import Admission, Run, RunState
from bot.results.store.failures.failures import Failure, FailureEnd, failure_ends, reported_failures
from handlers.regressions import target_news
from handlers.regressions.texts import NO_NEWS
from tests.handlers.driver import FULL_NAME
from tests.handlers.labs import Labs, a_lab
from tests.results.reported import ABOUT, AT

OLD, NEW, OTHER = "kernel.poll.wait", "fs.notify.await", "kernel.sched.yield"


@pytest.fixture
async def lab(tmp_path: Path) -> AsyncIterator[Labs]:
    async with a_lab(tmp_path) as labs:
        yield labs


def configure(lab: Labs, *renames: dict[str, str]) -> None:
    results = {"bucket": "device-results", "labs": {ABOUT.lab: {"targets": [ABOUT.target]}}}
    repository = {"results": results, "renames": renames, "regressions": {"to": ["issue"]}}
    config = parse_config(json.dumps({"repositories": {FULL_NAME: repository}}).encode(), "app.yaml")
    lab.world.configure(config)


def upload(lab: Labs, sha: str, test: str, status: Status = Status.FAILED) -> None:
    moment = lab.world.repository.git.commits[sha].date.timestamp()
    key = RunKey(FULL_NAME, ABOUT.lab, ABOUT.target, sha, "run-1")
    run = Run(key, "v1", RunState.STORED, "", AT, 0, Claims("kernel"), Admission(moment, mainline=True))
    cases = [Case(test, status, message="wrong" if status is Status.FAILED else ""), Case(OTHER, Status.PASSED)]
    assert lab.store.put(run, collect(cases, lambda case: (case.name, "")))


async def evaluated(lab: Labs, sha: str) -> str:
    """Evaluate a nightly run for regressions, store the outcome, and return the reason of the plan."""
    body = CHECK_EVENT.body(
        Repository(lab.world.repository.id, FULL_NAME, None),
        CheckEvent(ABOUT.lab, ABOUT.target, sha, revision=1, over=True),
    )
    delivery = Delivery("check:1", CHECK_EVENT.name, Payload(body), AT)
    planned = await replace(lab.world.pipeline, router=target_news.router).plan(delivery, target_news.NAME, "check:1")
    for effect in planned.effects:
        await lab.world.apply_alone(CODEC.decode(effect.effect))
    return planned.why


async def test_a_failure_keeps_its_history_while_app_yaml_names_the_rename(lab: Labs) -> None:
    first, second = lab.commit(), lab.commit()
    upload(lab, first, OLD)
    upload(lab, second, NEW)
    configure(lab)
    await lab.pending(second)
    assert lab.check(second).title == "1 new failure, 1 removed · 1 passed"
    configure(lab, {"from": OLD, "to": NEW})
    check = await lab.press(lab.check(second), "octocat")
    assert check.title == "1 renamed, 1 still failing · 1 passed"
    assert f"1 test was renamed and keeps its history: `{OLD}` is now `{NEW}`." in (check.text or "")
    configure(lab)
    check = await lab.press(lab.check(second), "octocat")
    assert check.title == "1 new failure, 1 removed · 1 passed"


async def test_a_known_regression_stays_known_while_app_yaml_names_the_rename(lab: Labs) -> None:
    configure(lab)
    shas = [lab.commit() for _ in range(5)]
    for sha in shas[:3]:
        upload(lab, sha, OLD, Status.PASSED if sha == shas[0] else Status.FAILED)
        why = await evaluated(lab, sha)
    assert why == f"1 test began to fail on example-lab/hexagon-v73 at nightly commit {shas[2][:7]}"
    configure(lab, {"from": OLD, "to": NEW})
    upload(lab, shas[3], NEW)
    assert await evaluated(lab, shas[3]) == NO_NEWS
    reported = Failure("kernel", OLD, shas[1], shas[0])
    assert lab.store.read(failure_ends, ABOUT, [reported]) == {reported: FailureEnd("", "")}
    upload(lab, shas[4], NEW, Status.PASSED)
    assert (
        await evaluated(lab, shas[4]) == f"1 test recovered on example-lab/hexagon-v73 at nightly commit {shas[4][:7]}"
    )
    assert lab.store.read(reported_failures, ABOUT) == []
    assert lab.store.read(failure_ends, ABOUT, [reported]) == {reported: FailureEnd("recovered", shas[4])}
