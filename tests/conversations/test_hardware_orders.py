"""Whatever the order, the number of pieces and the repetitions of labs' uploads, people see the same in the end.

One town plays the same story in many repositories, each of which receives it in another order.
"""

from __future__ import annotations

import hashlib
import json
import random
import re
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import pairwise, zip_longest
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from bot.core.events import Repository as Known
from bot.results.service import RESULTS, ResultsService
from bot.results.store.store import ResultsStore
from handlers.results.ingest import IngestService
from handlers.results.requested_tests import REQUESTED_TESTS
from handlers.results.watch import WATCH
from sandbox import Repository
from tests.bucket import World
from tests.conversations.lab import CHECK, FILES, LAB, TARGET, Moments, junit
from tests.conversations.town import PEOPLE, Town
from tests.conversations.town import town as start_town
from tests.results.snapshot import snapshot_of
from tests.waiting import until

FIRST_RUN, SECOND_RUN, THIRD_RUN, HEAD = "first nightly run", "second nightly run", "third nightly run", "a head"
COMMITS = (FIRST_RUN, SECOND_RUN, HEAD, THIRD_RUN)
OPERATORS, RELAX = "operators", "relax"
ROUNDS = 6
FOR_EVER = 7 * 86400.0
"""Seconds, far beyond the deadline for what is missing."""

LAB_CONFIG = {"targets": [TARGET, "adreno"], "reproduce": "pytest {test}"}
BREAKS = "AssertionError: 3 != 4"


@dataclass(frozen=True)
class Run:
    """One folder of the bucket; `late` files come after the manifest, `never` files don't come."""

    commit: str
    run_id: str
    files: Mapping[str, bytes]
    suite: str = OPERATORS
    target: str = TARGET
    late: tuple[str, ...] = ()
    never: tuple[str, ...] = ()
    claims: Mapping[str, Any] = field(default_factory=dict)

    @property
    def steps(self) -> list[Step]:
        """Return the uploads: everything together, or the late files in a separate step."""
        late = Step(self, self.late, manifest=False)
        return [Step(self, tuple(self.files.keys() - {*self.late, *self.never})), *([late] if self.late else [])]


@dataclass(frozen=True)
class Step:
    """Some files of a run, followed by its manifest unless that comes in another step."""

    run: Run
    names: tuple[str, ...]
    manifest: bool = True


def shard(index: int, total: int) -> dict[str, Any]:
    return {"shard": {"index": index, "total": total}}


def convolutions(prefix: str) -> bytes:
    return junit(test_div="skipped", **{f"{prefix}_conv2d_{n}": "passed" for n in range(12)})


STORY: Sequence[Run] = (
    Run(FIRST_RUN, "a", {"a.xml": junit(test_add="passed", test_mul="passed")}, claims=shard(1, 2)),
    Run(FIRST_RUN, "b", {"b.xml": convolutions("test")}, claims=shard(2, 2)),
    Run(FIRST_RUN, "c", {"r.xml": junit(test_build="passed", test_run=BREAKS)}, RELAX),
    Run(SECOND_RUN, "a", {"a.xml": junit(test_add="passed", test_mul=BREAKS)}, claims=shard(1, 2)),
    Run(SECOND_RUN, "b", {"b.xml": convolutions("test_nn")}, claims=shard(2, 2)),
    Run(SECOND_RUN, "c", {"r.xml": junit(test_build=BREAKS, test_run=BREAKS)}, RELAX),
    Run(SECOND_RUN, "d", {"r.xml": junit(test_build="passed", test_run=BREAKS)}, RELAX, claims={"attempt": 2}),
    Run(SECOND_RUN, "e", {"a.xml": junit(test_add="passed")}, target="adreno"),
    Run(SECOND_RUN, "f", {"a.xml": junit(test_add="passed")}, target="unheard-of"),
    Run(THIRD_RUN, "a", {"a.xml": junit(test_add="passed"), "b.xml": junit(test_mul=BREAKS)}, late=("b.xml",)),
    Run(THIRD_RUN, "b", {"r.xml": junit(test_run="passed")}, RELAX, claims={"log_url": "https://example.org/log"}),
    Run(THIRD_RUN, "c", {"r.xml": junit(test_lost="passed")}, "contrib", never=("r.xml",)),
    Run(HEAD, "a", {"a.xml": junit(test_add=BREAKS, test_mul=BREAKS)}, claims={"pull_request": 1}),
)  # fmt: skip


class ShownCheck(NamedTuple):
    """The contents of a check run, without what differs between repositories."""

    conclusion: str
    external_id: str
    title: str
    summary: str
    text: str
    notes: list[str]
    buttons: list[str]


Order = Sequence[Sequence[Step]]
"""What is uploaded, in rounds."""


@dataclass
class Lane:
    """One repository in which the lab uploads in rounds; after each round the bot scans the bucket."""

    repository: Repository
    rounds: Sequence[Sequence[Step]]
    bucket: World
    commits: dict[str, str] = field(default_factory=dict)

    def upload(self, step: Step) -> None:
        """Write a step's objects to the bucket."""
        run, sha = step.run, self.commits[step.run.commit]
        folder = f"results/{self.repository.full_name}/{LAB}/{run.target}/{sha}/{run.run_id}/"
        for name in step.names:
            self.bucket.put(folder + name, run.files[name])
        if step.manifest:
            entries = [
                {"name": name, "bytes": len(content), "sha256": hashlib.sha256(content).hexdigest()}
                for name, content in run.files.items()
            ]
            document = {"schema": 1, "sha": sha, "suite": run.suite, "files": entries, **run.claims}
            self.bucket.put(f"{folder}manifest.json", json.dumps(document).encode())

    def plain(self, text: str) -> str:
        """Return a text without what differs between repositories and between moments."""
        text = text.replace(self.repository.full_name, "REPOSITORY")
        for name, sha in self.commits.items():
            text = text.replace(sha, name).replace(sha[:10], name)
        return re.sub(r"\d{4}-\d\d-\d\d \d\d:\d\d UTC", "THEN", re.sub(r"127\.0\.0\.1:\d+", "HOST", text))

    def checks(self) -> dict[str, ShownCheck]:
        """Return the newest check run of each name on each commit, as people see them."""
        seen: dict[str, ShownCheck] = {}
        for name, sha in self.commits.items():
            for run in sorted(self.repository.check_runs(sha), key=lambda run: run.id):
                title, summary, text = (self.plain(text or "") for text in (run.title, run.summary, run.text))
                notes = sorted(self.plain(json.dumps(note, sort_keys=True)) for note in run.annotations)
                buttons = [action["identifier"] for action in run.actions]
                seen[f"{run.name} at {name}"] = ShownCheck(
                    str(run.conclusion), run.external_id, title, summary, text, notes, buttons
                )
        return seen

    def snapshot(self, store: ResultsStore) -> dict[str, Any]:
        """Return the contents of a store, without the hashes of manifests, which contain the SHA."""
        text = json.dumps(store.read(snapshot_of, self.repository.full_name), sort_keys=True, default=str)
        contents: dict[str, Any] = json.loads(self.plain(text))
        for run in contents["runs"].values():
            del run["version"]
        contents["checks"].sort()  # by name, because they were sorted by SHA
        return contents


def begin(lanes: Sequence[Lane], town: Town) -> None:
    """Create the same commits in every repository, each within the same second in all of them."""

    def everywhere(name: str, commit: Callable[[Repository], str]) -> None:
        town.github.clock.advance(seconds=20)
        with town.github.clock.stopped():
            for lane in lanes:
                lane.commits[name] = commit(lane.repository)

    everywhere("the beginning", lambda repository: repository.push("nightly", {**FILES}, by="octocat").sha)
    for name in (FIRST_RUN, SECOND_RUN):
        everywhere(name, partial(_nightly_run, name))
    for lane in lanes:
        lane.repository.push("main", onto=lane.commits[SECOND_RUN], by="octocat")
    everywhere(HEAD, lambda repository: repository.open_pull_request("octocat").head_sha)
    everywhere(THIRD_RUN, partial(_nightly_run, THIRD_RUN))


def _nightly_run(name: str, repository: Repository) -> str:
    return repository.push("nightly", {"nightly_run": name}, by="octocat").sha


async def report(lanes: Sequence[Lane], town: Town, moments: Moments, queue: str | None) -> None:
    """Upload every round of every lane, with a scan by the bot after each, and let each lane finish."""
    bucket = lanes[0].bucket

    async def scan(later: float = 61.0) -> None:
        if queue is not None:
            await until(lambda: bucket.waiting(queue) == 0)
        moments.ahead += later
        await town.bot.services.part(WATCH).tick()
        await until(idle)  # cheaper than reading every delivery again and again
        await town.quiet()

    async def idle() -> bool:
        return not any((await town.bot.engine.backlog()).waiting.values())

    for steps in zip_longest(*(lane.rounds for lane in lanes), fillvalue=()):
        for lane, uploaded in zip(lanes, steps, strict=True):
            for step in uploaded:
                lane.upload(step)
        await scan()
    for later in (61.0, FOR_EVER, 61.0, 61.0):
        await scan(later)


@asynccontextmanager
async def labs_with(
    orders: Sequence[Order], folder: Path, bucket: World, *, queue: str | None = None, poll: str = "30s"
) -> AsyncIterator[tuple[Town, list[Lane]]]:
    """Play the story in these orders, each in its own repository."""
    names = [f"octocat-{n}/compiler" for n in range(len(orders))]
    results = {"bucket": bucket.name, "poll": poll, "labs": {LAB: LAB_CONFIG}, **({"queue": queue} if queue else {})}
    config = json.dumps({"repositories": {name: {"results": results} for name in names}})
    moments = Moments()
    async with start_town(f"sqlite:///{folder}/nightjar.db", config=config, now=moments) as town:
        lanes = []
        for name, rounds in zip(names, orders, strict=True):
            repository = town.github.create_repository(name, people=PEOPLE)
            town.app.install(repository)
            lanes.append(Lane(repository, rounds, bucket))
        begin(lanes, town)
        await town.quiet()
        await report(lanes, town, moments, queue)
        assert await town.failures() == []
        yield town, lanes


def any_order(seed: int, story: Sequence[Run] = STORY) -> Order:
    """Return the steps of a story in a random order, some of them twice, in up to ROUNDS rounds."""
    chance = random.Random(seed)
    steps = [step for run in story for step in run.steps]
    steps += chance.sample(steps, len(steps) // 3)
    chance.shuffle(steps)
    cuts = sorted(chance.choices(range(len(steps) + 1), k=chance.randrange(ROUNDS)))
    return [steps[start:end] for start, end in pairwise([0, *cuts, len(steps)])]


def one_after_the_other(story: Sequence[Run] = STORY) -> Order:
    return [[step for run in story if run.commit == name for step in run.steps] for name in COMMITS]


def last_first(story: Sequence[Run] = STORY) -> Order:
    return [steps[::-1] for steps in one_after_the_other(story)[::-1]]


def differences(town: Town, lanes: Sequence[Lane]) -> dict[str, Any]:
    """Return what differs from the first lane, by lane."""
    first = lanes[0]
    unequal_values: dict[str, Any] = {}
    for lane in lanes[1:]:
        unequal_values |= unlike(lane.repository.owner.login, lane.checks(), first.checks())
        unequal_values |= unlike(
            lane.repository.owner.login,
            lane.snapshot(town.bot.services.part(RESULTS).store),
            first.snapshot(town.bot.services.part(RESULTS).store),
        )
    return unequal_values


def unlike(path: str, actual: Any, expected: Any) -> dict[str, Any]:
    """Return the innermost values that differ, by their path."""
    if isinstance(actual, dict) and isinstance(expected, dict):
        keys = sorted({*actual, *expected})
        return {k: v for key in keys for k, v in unlike(f"{path} {key}", actual.get(key), expected.get(key)).items()}
    if isinstance(actual, list | tuple) and isinstance(expected, list | tuple) and len(actual) == len(expected):
        pairs = enumerate(zip(actual, expected, strict=True))
        return {k: v for n, pair in pairs for k, v in unlike(f"{path} {n}", *pair).items()}
    return {} if actual == expected else {path: (actual, expected)}


TITLES = {
    f"{CHECK} at {FIRST_RUN}": "First run, nothing to compare with, 1 failing · 15 passed, 1 skipped",
    f"{CHECK} at {SECOND_RUN}": "1 new failure, 1 newly flaky, 12 renamed, 1 still failing · 14 passed, 1 skipped",
    f"hardware/{LAB}/adreno at {SECOND_RUN}": "First run, nothing to compare with · 1 passed",
    f"{CHECK} at {HEAD}": "1 new failure, 13 removed, 1 still failing · 0 passed",
    f"{CHECK} at {THIRD_RUN}": (
        "Incomplete: 1 unusable run of contrib · 1 failure confirmed, 1 fixed, 14 removed · 2 passed"
    ),
}


@pytest.mark.exhaustive("both")
@pytest.mark.parametrize("how", ["listing", "queue", "both"])
async def test_every_order_of_uploads_has_the_same_result(how: str, tmp_path: Path, aws_world: World) -> None:
    queue = None if how == "listing" else aws_world.queue()
    poll = "10d" if how == "queue" else "30s"
    orders = [one_after_the_other(), last_first(), *(any_order(seed) for seed in range(3 if how == "listing" else 1))]
    async with labs_with(orders, tmp_path, aws_world, queue=queue, poll=poll) as (town, lanes):
        assert {name: check.title for name, check in lanes[0].checks().items()} == TITLES
        points = lanes[0].snapshot(town.bot.services.part(RESULTS).store)["series"][OPERATORS][f"{LAB}/{TARGET}"]
        assert [len(point["renames"]) for point in points] == [0, 12, 0, 0]
        assert differences(town, lanes) == {}


def in_shards(story: Sequence[Run]) -> list[Run]:
    """Return the same runs; each with several files becomes as many shards."""
    return [
        replace(run, run_id=f"{run.run_id}-{n}", files={name: run.files[name]}, claims=shard(n, len(run.files)))
        for run in story
        for n, name in enumerate(run.files, 1)
    ]


@pytest.mark.exhaustive
async def test_splitting_a_run_into_shards_changes_only_the_list_of_runs(tmp_path: Path, aws_world: World) -> None:
    story = [
        Run(nightly_run, "a", {f"{n}.xml": junit(**{f"test_{n}": verdict}, test_flat=flat) for n in range(3)})
        for nightly_run, verdict, flat in (
            (FIRST_RUN, "passed", "skipped"),
            (SECOND_RUN, BREAKS, "passed"),
            (THIRD_RUN, "passed", BREAKS),
        )
    ]
    split = in_shards(story)
    orders = [one_after_the_other(story), one_after_the_other(split), any_order(5, split), any_order(6, split)]
    async with labs_with(orders, tmp_path, aws_world) as (town, lanes):
        shown_checks = [
            {name: (check.conclusion, check.title, check.summary, check.notes) for name, check in lane.checks().items()}
            for lane in lanes
        ]
        series = [lane.snapshot(town.bot.services.part(RESULTS).store)["series"] for lane in lanes]
        for n in range(1, len(lanes)):
            assert unlike(f"lane {n}", shown_checks[n], shown_checks[0]) == {}
            assert unlike(f"lane {n}", series[n], series[0]) == {}
        assert len(shown_checks[0]) == len(story)


async def test_reading_the_bucket_again_restores_the_same_records(tmp_path: Path, aws_world: World) -> None:
    async with labs_with([any_order(99)], tmp_path, aws_world) as (town, (lane,)):
        original = lane.snapshot(town.bot.services.part(RESULTS).store)
        services, name = town.bot.services, lane.repository.full_name
        results, watch = services.part(RESULTS), services.part(WATCH)
        github = await town.bot.github.reader(name)
        repository = Known(lane.repository.id, name, None)
        config, config_of_all = town.bot.config.repositories[name], town.bot.config
        rebuilt = ResultsStore(f"sqlite:///{tmp_path}/rebuilt.db")
        rebuilt.open()
        for store, times in ((results.store, 1), (rebuilt, 2)):
            later = Moments(2 * FOR_EVER)
            read = ResultsService(
                config_of_all.configured.canonical_name, store, results.file_lists, results.pool, results.source_for
            )
            service = IngestService(read, services.records, watch, lambda: services.part(REQUESTED_TESTS), later)
            for _ in range(times):
                pages = [page async for page in results.source_for(aws_world.name).manifests("results/")]
                arrivals = [arrival for page in pages for arrival in page]
                random.Random(times).shuffle(arrivals)
                for arrival in arrivals:
                    await service.ingest(arrival, github, repository, config, reread=True)
                later.ahead += FOR_EVER  # without a record of the first wait, a missing file is waited for again
            assert unlike("", lane.snapshot(store), original) == {}
        rebuilt.close()
