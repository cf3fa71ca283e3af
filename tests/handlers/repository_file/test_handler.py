"""When the file is read, which of GitHub's answers are believed, and what all of it costs."""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncIterator, Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from bot.app.features import full_router
from bot.app.prefilter import WebhookPrefilter
from bot.config.repository_file import MOST_BYTES
from bot.config.shared import PATH
from bot.core.errors import TryAgain
from bot.core.events import Delivery, Payload
from bot.engine.records import Records, StoredValue
from bot.github.commits.contents import FoundFile
from bot.github.commits.pushed_files import may_change
from bot.github.repositories.in_force import REPOSITORY_FILE, read_found, stored_file_of
from handlers.repository_file.handler import pushed_at
from sandbox.model.pulls import PullRequest
from tests.handlers.driver import FULL_NAME, World, a_world
from tests.settings import repository_config

FILE = ".github/nightjar.yaml"
OTHER = {"added": [], "modified": ["README.md"], "removed": []}
CONTENTS, COMPARE = "GET /repos/{owner}/{repo}/contents/{path}", "GET /repos/{owner}/{repo}/compare/{basehead}"
GIT_COMMIT = "GET /repos/{owner}/{repo}/git/commits/{commit_sha}"
SCAN, CREATE = "GET /repos/{owner}/{repo}/commits/{ref}/check-runs", "POST /repos/{owner}/{repo}/check-runs"


@pytest.mark.parametrize(
    ("payload", "expected"),
    [
        ({"commits": [OTHER]}, False),
        ({"commits": []}, False),
        ({"commits": [OTHER, {**OTHER, "added": [FILE]}]}, True),
        ({"commits": [{**OTHER, "modified": [FILE]}, OTHER]}, True),
        ({"commits": [{**OTHER, "removed": [FILE]}]}, True),
        ({"commits": [OTHER], "forced": True}, True),
        ({"commits": [OTHER], "created": True}, True),
        ({"commits": [OTHER] * 19}, False),
        ({"commits": [OTHER] * 20}, True),
        ({"commits": [{**OTHER, "added": [str(n) for n in range(2_999)]}]}, True),
        ({"commits": [{"id": "a"}]}, False),
        ({}, True),
    ],
)
def test_a_push_may_touch_the_file_if_it_says_so_or_may_be_incomplete(payload: Any, expected: bool) -> None:
    assert may_change(Payload(payload), PATH) is expected


@pytest.mark.parametrize(
    ("written", "expected"), [(1_795_152_400, 1_795_152_400), ("2026-11-20T05:00:00Z", 1_795_150_800), (None, 0)]
)
def test_the_time_of_a_push_is_read_in_both_of_githubs_formats(written: object, expected: int) -> None:
    assert pushed_at(Payload({"repository": {"pushed_at": written}})) == expected


@pytest.mark.parametrize(
    ("file", "expected"),
    [
        (FoundFile("dir", "dir"), "is a folder instead of a file; put a file there"),
        (
            FoundFile("symlink", "a"),
            "is a broken symbolic link instead of a file; put a file there",
        ),
        (
            FoundFile("submodule", "a"),
            "is a submodule instead of a file; put a file there",
        ),
        # GitHub sends no content for a file of more than 1 MB.
        (FoundFile("file", "a", 2_000_000), "the file is larger than 64 KiB, the maximum"),
        (FoundFile("file", "a", 3, b"\xff\xfe\x00"), "the file is not UTF-8 text; save it as UTF-8"),
        (FoundFile("file", "a", 4, b"- a\n"), "is a list; it must be a mapping of keys"),
    ],
)
async def test_an_invalid_file_is_one_fault(file: FoundFile, expected: str) -> None:
    text, faults = await read_found(file, repository_config())
    assert (text, [(fault.line, fault.column, fault.message) for fault in faults]) == ("", [(1, 1, expected)])


@pytest.mark.parametrize(
    ("file", "expected"),
    [
        (None, ""),
        (FoundFile("file", "a", 0, b""), ""),
        (FoundFile("file", "a", 12, b"help: false\n"), "help: false\n"),
        (FoundFile("file", "a", MOST_BYTES, b"#" * MOST_BYTES), "#" * MOST_BYTES),
    ],
)
async def test_a_valid_file_and_a_missing_file_have_no_faults(file: FoundFile | None, expected: str) -> None:
    assert await read_found(file, repository_config()) == (expected, ())


@pytest.fixture
async def world(tmp_path: Path) -> AsyncIterator[World]:
    async with a_world(tmp_path, features={"slow_tests": False, "cc_reviewers": False, "help": False}) as world:
        yield world


def push(world: World, text: str | None, **fields: str) -> str:
    """Push the file, or its removal, to the default branch; return the commit."""
    return world.repository.push("main", {FILE: text, **fields}, by="octocat").sha


async def in_force(world: World) -> tuple[str, str]:
    """Return the text that is in force, and the commit at which it was read."""
    good = (await stored_file_of(world.records, FULL_NAME)).good
    return good.text, good.commit


async def cost(world: World, step: Callable[[], object]) -> dict[str, int]:
    """Return the requests that a step causes."""
    await world.happen()
    world.github.requests.clear()
    step()
    await world.happen()
    requests = Counter(f"{r.method} {r.route}" for r in world.github.requests.of_installation)
    del requests["GET /users/{username}"]
    return dict(requests)


def checks(world: World, sha: str) -> list[str]:
    return [run.title or "" for run in world.repository.check_runs(sha, "nightjar/config")]


async def test_a_push_that_does_not_touch_the_file_costs_nothing_and_one_that_does_costs_a_request(
    world: World,
) -> None:
    assert await cost(world, lambda: world.repository.push("main", {"a.txt": "a"}, by="octocat")) == {}
    assert await cost(world, lambda: world.repository.push("dev", {FILE: "help: true"}, by="octocat")) == {}
    assert await cost(world, lambda: push(world, "help: true")) == {CONTENTS: 1}
    assert await cost(world, lambda: push(world, "help: 1")) == {CONTENTS: 1, SCAN: 1, CREATE: 1}
    # The bot believes that the file was removed only at a commit that GitHub shows.
    assert await cost(world, lambda: push(world, None)) == {CONTENTS: 1, GIT_COMMIT: 1}


async def test_a_pull_request_that_does_not_touch_the_file_costs_one_request(world: World) -> None:
    for text in (None, "help: true\n"):
        push(world, text, **{"a.txt": "a"})
        await world.happen()
        assert await cost(world, world.open) == {CONTENTS: 1}
    pull = world.open()
    assert await cost(world, pull.push) == {CONTENTS: 1}
    assert await cost(world, lambda: pull.edit("octocat", title="Better")) == {}
    pull.close("octocat")
    assert await cost(world, lambda: pull.reopen("octocat")) == {CONTENTS: 1}


async def test_a_pull_request_that_is_only_behind_touches_nothing_and_costs_three(world: World) -> None:
    push(world, "help: true\n")
    pull = world.open()
    push(world, "help: false\n")
    assert await cost(world, pull.push) == {CONTENTS: 2, COMPARE: 1}
    assert checks(world, pull.head_sha) == []
    edits = lambda: pull.push({FILE: "help: true # or not\n"})  # noqa: E731
    assert await cost(world, edits) == {CONTENTS: 2, COMPARE: 1, SCAN: 1, CREATE: 1}
    assert checks(world, pull.head_sha) == ["Valid; 1 setting changes"]


async def test_a_pull_request_without_changes_costs_no_request(world: World) -> None:
    def nothing() -> PullRequest:
        return world.open(files={})

    assert await cost(world, nothing) == {}


async def test_a_folder_in_place_of_the_file_is_reported(world: World) -> None:
    pull = world.open(files={f"{FILE}/a.txt": "a"})
    await world.happen()
    (run,) = world.repository.check_runs(pull.head_sha, "nightjar/config")
    assert "is a folder" in (run.summary or "")


@pytest.mark.parametrize("order", [(0, 1, 2), (0, 2, 1), (1, 0, 2), (1, 2, 0), (2, 0, 1), (2, 1, 0)])
async def test_pushes_whose_webhooks_arrive_in_any_order_have_the_same_result(
    world: World, order: tuple[int, ...]
) -> None:
    """The first two are in the same second: GitHub's times are no finer."""
    await world.happen()
    last = [push(world, f"help: true # {n}\n") for n in range(3)][-1]
    held = [delivery for delivery in world.github.webhooks.held if delivery.event == "push"]
    for number, delivery in enumerate(held):
        pushed_at = f"2026-11-20T05:00:{number // 2:02}Z"
        delivery.payload = delivery.payload.replace(
            delivery.body["repository"]["pushed_at"].encode(), pushed_at.encode()
        )
    world.github.webhooks.held[:] = [held[n] for n in order]
    await world.happen()
    assert await in_force(world) == ("help: true # 2\n", last)


async def test_a_file_that_github_does_not_show_yet_does_not_count_as_removed(world: World) -> None:
    sha = push(world, "help: true\n")
    await world.happen()
    push(world, "help: false\n")
    (delivery,) = [delivery for delivery in world.github.webhooks.held if delivery.event == "push"]
    for route in ("/repos/{owner}/{repo}/contents/{path}", "/repos/{owner}/{repo}/git/commits/{commit_sha}"):
        world.github.faults.add("GET", route, status=404)
    with pytest.raises(TryAgain, match="does not show the pushed commit yet"):
        await world.planned(delivery, "repository-file")
    assert await in_force(world) == ("help: true\n", sha)
    assert [effect.kind for effect in await world.planned(delivery, "repository-file")] == ["StoreRepositoryFile"]


@pytest.mark.no_cover
@pytest.mark.parametrize(
    "record",
    [
        {"seen": 5},
        {"seen": "a", "commit": "a", "before": "a", "pushed_at": 0, "faults": 0, "good": []},
        {
            "seen": "a", "commit": "a", "before": "a", "pushed_at": 0, "faults": 0,
            "good": {"sha": "a", "commit": "a", "text": "help: maybe"},
        },
    ],
)  # fmt: skip
async def test_an_unreadable_record_leaves_the_settings_of_app_yaml(world: World, record: dict[str, Any]) -> None:
    await world.records.write(REPOSITORY_FILE.of(FULL_NAME.lower()).name, StoredValue(record, 1, None))
    pull = world.open()
    assert "add `help` to `.github/nightjar.yaml` or `app.yaml`" in await world.say(pull, "@ci help")
    push(world, "help: true\n")
    assert "| `@ci help` |" in await world.say(pull, "@ci help")


async def test_a_feature_that_is_switched_off_after_routing_does_nothing(world: World) -> None:
    push(world, "slow_tests: true\n")
    await world.happen()
    pull = world.open()
    (delivery,) = [delivery for delivery in world.github.webhooks.held if delivery.event == "pull_request"]
    assert [effect.kind for effect in await world.planned(delivery, "slow-tests")] == ["SetStatus"]
    push(world, None)
    await world.happen(event="push")
    assert await world.planned(delivery, "slow-tests") == ()
    assert world.slow_status(pull.head_sha) == ""


class Counting(Records):
    """Records that count how often each is read."""

    def __init__(self, records: Records) -> None:
        super().__init__(records.connector)
        self.read: Counter[str] = Counter()

    async def get(self, key: Any) -> Any:
        self.read[str(key)] += 1
        return await super().get(key)

    async def fetch(self, *keys: Any) -> Any:
        self.read.update(map(str, keys))
        return await super().fetch(*keys)

    async def fetch_ahead(self, *keys: Any) -> Any:
        self.read.update(map(str, keys))
        return await super().fetch_ahead(*keys)

    async def fetch_first(self, *keys: Any) -> Any:
        self.read.update(map(str, keys))
        return await super().fetch_first(*keys)


async def test_a_delivery_reads_the_record_once_and_each_plan_and_effect_of_it_once(world: World) -> None:
    push(world, "slow_tests: true\n")
    await world.happen()
    counting = Counting(world.records)
    world.pipeline = replace(world.pipeline, records=counting, prefilter=WebhookPrefilter(full_router(), ()))
    world.open()
    await world.happen(event="pull_request")
    # Routing and the prefilter's memory; plans of slow-tests and repository-file-check (which also compares); one
    # status.
    assert counting.read[REPOSITORY_FILE.of(FULL_NAME.lower()).name] == 2 + 2 + 1 + 1
    counting.read.clear()
    payload = Payload({"repository": {"id": 1, "full_name": FULL_NAME}})
    assert not (await world.pipeline.handlers_for(Delivery("guid", "ping", payload, 0.0))).handlers
    assert counting.read == {}
