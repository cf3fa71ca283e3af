"""How often the bot lists buckets, and what it finds between two listings of everything."""

from __future__ import annotations

import asyncio
import itertools
import json
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

from bot.app.doctor.places import check_buckets
from bot.app.load import parse_config
from bot.aws.bucket import Bucket
from bot.aws.client import Aws
from bot.config import Config
from bot.engine.service import Engine
from bot.github.client import GitHub
from bot.github.pull_heads import REPOSITORY_ID, RepositoryId
from bot.results.store.store import ResultsStore
from handlers.results.watch import LISTINGS, Watch, pause_after
from tests.bucket import Script, World
from tests.counted import counted
from tests.results.plans import plans_seen
from tests.results.uploads import LAB, REPOSITORY, TARGET, Upload, sha
from tests.tables import with_tables

NOW, DAY, HOUR = 1_790_000_000.0, 86_400.0, 3_600.0
OLD, RECENT, NEW = 1, 2, 3
EMPTY = '<?xml version="1.0"?><ListBucketResult><IsTruncated>false</IsTruncated></ListBucketResult>'


def config_of(bucket: str, *repositories: str, **keys: Any) -> Config:
    results = {"bucket": bucket, "prefix": "results/", "poll": "5s", "labs": {LAB: {"targets": [TARGET]}}, **keys}
    settings = {name: {"results": results} for name in repositories or (REPOSITORY,)}
    return parse_config(json.dumps({"repositories": settings}).encode(), "app.yaml")


async def nobody(repository: str) -> GitHub:
    raise AssertionError(f"GitHub was asked for {repository}")


class Place:
    """A watch of buckets, with a clock that the test sets."""

    def __init__(self, config: Config, engine: Engine, store: ResultsStore, aws: Aws) -> None:
        self.now = NOW
        self.store = store
        self.engine = engine
        self.watch = Watch(
            config,
            store,
            engine.records,
            engine.journal,
            accept=engine.accept,
            github_for=nobody,
            source_for=lambda name: Bucket(aws, name),
            clock=lambda: self.now,
        )

    async def tick(self, seconds: float) -> str:
        """Let the bot look for runs so many seconds after the start."""
        self.now = NOW + seconds
        return await self.watch.tick()

    async def run_timer(self, seconds: float) -> str:
        """Let the timer of the watch tick so many seconds after the start; return what it did, if it has work."""
        self.now = NOW + seconds
        return await self.watch.tick() if await self.watch.has_work() else ""


@asynccontextmanager
async def watching(folder: Path, config: Config, aws: Aws) -> AsyncIterator[Place]:
    url = with_tables(f"sqlite:///{folder / 'nightjar.db'}")
    with closing(ResultsStore(url)) as store:
        store.open()
        async with Engine(url) as engine:
            ids = {REPOSITORY_ID.of(name.lower()): RepositoryId(n) for n, name in enumerate(config.repositories, 1)}
            await engine.records.put_all(ids)
            yield Place(config, engine, store, aws)


def key_of(commit: int, run: str, name: str = "manifest.json", target: str = TARGET) -> str:
    return f"results/{REPOSITORY}/{LAB}/{target}/{sha(commit)}/{run}/{name}"


@pytest.fixture
def listings(aws_world: World) -> Iterator[list[str]]:
    """Return the prefixes of the listings that our client has requested from S3."""
    prefixes: list[str] = []

    def note(params: dict[str, Any], **_: Any) -> None:
        prefixes.append(params["query_string"].get("prefix", ""))

    events = aws_world.aws.s3().meta.events
    events.register("before-call.s3.ListObjectsV2", note)
    yield prefixes
    events.unregister("before-call.s3.ListObjectsV2", note)


@pytest.fixture
async def place(tmp_path: Path, aws_world: World) -> AsyncIterator[Place]:
    """Return a bot whose bucket has two pages, nearly all of a commit of which a run was stored two days ago."""
    async with watching(tmp_path, config_of(aws_world.name), aws_world.aws) as place:
        for commit, received_at in ((OLD, NOW - 2 * DAY), (RECENT, NOW - HOUR)):
            upload = Upload(commit, {"a.py::test_one": "passed"})
            place.store.put(replace(upload.run, received_at=received_at), upload.columns)
        for number in range(1_001):
            aws_world.put(key_of(OLD, "run-0", f"{number}.log"))
        assert await place.tick(0) == "announced 0"
        yield place


async def test_runs_of_new_commits_and_of_those_of_the_last_day_are_found_between_listings_of_everything(
    place: Place, aws_world: World, listings: list[str]
) -> None:
    aws_world.put(key_of(NEW, "run-1"))
    aws_world.put(key_of(RECENT, "run-late"))
    assert await place.tick(5) == "announced 2"
    target = f"results/{REPOSITORY}/{LAB}/{TARGET}/"
    # One request for the commits of the target, and one for each commit that may have new runs.
    assert sorted(listings) == sorted([target, f"{target}{sha(NEW)}/", f"{target}{sha(RECENT)}/"])


@pytest.mark.exhaustive
async def test_a_run_of_an_old_commit_or_an_unknown_target_is_found_by_the_next_listing_of_everything(
    place: Place, aws_world: World, listings: list[str]
) -> None:
    aws_world.put(key_of(OLD, "run-late"))
    aws_world.put(key_of(NEW, "run-odd", target="unlisted"))
    assert await place.tick(5) == "announced 0"
    assert f"results/{REPOSITORY}/" not in listings
    assert await place.tick(6) == "announced 2"
    assert listings.count(f"results/{REPOSITORY}/") == 2


@pytest.mark.exhaustive
async def test_neither_listing_is_repeated_before_its_time(place: Place, listings: list[str]) -> None:
    await place.tick(5)
    requests = len(listings)
    assert await place.tick(5.9) == "announced 0"
    assert len(listings) == requests


async def test_a_small_bucket_is_listed_with_one_request(tmp_path: Path, aws_world: World, listings: list[str]) -> None:
    async with watching(tmp_path, config_of(aws_world.name), aws_world.aws) as place:
        await place.tick(0)
        listings.clear()
        aws_world.put(key_of(NEW, "run-1"))
        assert await place.tick(5) == "announced 1"
        assert listings == [f"results/{REPOSITORY}/"]


@pytest.fixture
def quiet_config(aws_world: World) -> Config:
    """Return an app.yaml that leaves it to the bot how often it lists the bucket."""
    return config_of(aws_world.name, poll=None)


async def listing_times(place: Place, listings: list[str], since: int, until: int) -> list[int]:
    """Return the seconds at which the bot lists the bucket, of a timer that ticks every 15 seconds."""
    times = []
    for second in range(since, until, 15):
        listings.clear()
        await place.run_timer(second)
        if listings:
            times.append(second)
    return times


async def test_a_bucket_in_which_nothing_arrives_is_listed_less_and_less_often(
    tmp_path: Path, aws_world: World, listings: list[str], quiet_config: Config
) -> None:
    """It was listed 120 times an hour, and each time two rows were stored, and a job."""
    async with watching(tmp_path, quiet_config, aws_world.aws) as place:
        assert len(await listing_times(place, listings, 0, 300)) == 10
        quiet = await listing_times(place, listings, 3600, 7200)
        assert {later - earlier for earlier, later in itertools.pairwise(quiet)} == {300}
        aws_world.put(key_of(NEW, "run-1"))
        assert "announced 1" in [await place.run_timer(7200 + 15 * tick) for tick in range(20)]
        # The lab uploads more: the bucket is listed often again.
        assert len(await listing_times(place, listings, 7500, 7800)) >= 9


async def test_a_poll_in_app_yaml_is_kept_although_nothing_arrives(
    tmp_path: Path, aws_world: World, listings: list[str]
) -> None:
    async with watching(tmp_path, config_of(aws_world.name, poll="30s"), aws_world.aws) as place:
        await listing_times(place, listings, 0, 60)
        assert len(await listing_times(place, listings, 7200, 7500)) == 10


async def test_a_bucket_is_listed_often_while_somebody_waits_for_a_requested_test(
    tmp_path: Path, aws_world: World, listings: list[str], quiet_config: Config
) -> None:
    async with watching(tmp_path, quiet_config, aws_world.aws) as place:
        requested: set[str] = set()

        async def testing() -> set[str]:
            return requested

        place.watch.expect(testing)
        await place.run_timer(0)
        await place.run_timer(7200)
        requested.add(REPOSITORY)
        assert len(await listing_times(place, listings, 7260, 7560)) >= 9


async def test_a_tick_that_finds_nothing_new_stores_nothing(
    tmp_path: Path, aws_world: World, quiet_config: Config
) -> None:
    async with watching(tmp_path, quiet_config, aws_world.aws) as place:
        ran = [bool(await place.run_timer(second)) for second in range(0, 7200, 15)]
        # The times of listings are stored every half hour, for the alarm about them.
        assert sum(ran) <= 5
        assert (await place.watch.health()).listed[REPOSITORY] <= 300


@pytest.mark.exhaustive
async def test_a_run_that_is_not_ingested_needs_a_job_every_five_minutes_at_most(
    tmp_path: Path, aws_world: World
) -> None:
    async with watching(tmp_path, config_of(aws_world.name, poll="15s"), aws_world.aws) as place:
        aws_world.put(key_of(NEW, "run-1"))
        ran = [await place.run_timer(second) for second in range(0, 3600, 15)]
        assert ran[0] == "announced 1"
        assert 10 <= sum(map(bool, ran)) <= 15


async def statements_of_idle_tick(folder: Path, aws: Aws, count: int) -> int:
    """Return how many statements a tick runs, on both stores, for this many repositories without anything to do."""
    async with watching(folder, config_of("device-results", *(f"octocat/r{n}" for n in range(count))), aws) as place:
        await place.tick(0)
        with counted(place.engine.database.connector) as work, plans_seen() as plans:
            assert await place.tick(1) == "announced 0"
    # An index has the open checks and nothing else.
    assert [scan for scan in plans.scans if "nightjar_checks_open" not in scan] == []
    return work.statements + plans.statements


async def test_a_tick_without_work_takes_as_many_statements_for_many_repositories_as_for_one(
    tmp_path_factory: pytest.TempPathFactory, script: Script, aws: Aws
) -> None:
    script.answers = [web.Response(text=EMPTY, content_type="application/xml")]
    one = await statements_of_idle_tick(tmp_path_factory.mktemp("one"), aws, 1)
    assert await statements_of_idle_tick(tmp_path_factory.mktemp("many"), aws, 20) == one


async def test_several_buckets_are_listed_at_a_time_but_not_all(tmp_path: Path, script: Script, aws: Aws) -> None:
    in_flight, most, crowded = 0, 0, asyncio.Event()

    async def answer(_: web.Request) -> web.StreamResponse:
        nonlocal in_flight, most
        in_flight += 1
        most = max(most, in_flight)
        if in_flight == LISTINGS:
            crowded.set()
        # One listing after the other would wait here for ever.
        await crowded.wait()
        in_flight -= 1
        return web.Response(text=EMPTY, content_type="application/xml")

    script.answers = [answer]
    names = [f"octocat/r{number}" for number in range(3 * LISTINGS)]
    async with watching(tmp_path, config_of("device-results", *names), aws) as place:
        assert await place.tick(0) == "announced 0"
    assert most == LISTINGS


async def test_a_bucket_that_cannot_be_listed_is_tried_less_and_less_often(
    tmp_path: Path, script: Script, aws: Aws
) -> None:
    """It was tried every 15 seconds, and each time an error was logged."""
    script.answers = [web.Response(status=403)]
    async with watching(tmp_path, config_of("device-results"), aws) as place:
        times, seen = [], 0
        for second in range(0, 3600, 15):
            await place.run_timer(second)
            if len(script.requests) > seen:
                times.append(second)
            seen = len(script.requests)
        assert times[:4] == [0, 15, 45, 90]
        assert {later - earlier for earlier, later in itertools.pairwise(times)} <= {15, 30, 45, 90, 165, 300}
        # It answers again: the usual pauses begin.
        script.answers = [web.Response(text=EMPTY, content_type="application/xml")]
        seen = len(script.requests)
        for second in range(3600, 4200, 15):
            await place.run_timer(second)
        assert len(script.requests) - seen > 20


@pytest.mark.parametrize("is_large", [True, False])
async def test_a_queue_is_advised_for_a_bucket_of_ten_thousand_objects(
    script: Script, aws: Aws, is_large: bool
) -> None:
    contents = "".join(f"<Contents><Key>results/{n}</Key></Contents>" for n in range(1_000))
    more = "<IsTruncated>true</IsTruncated><NextContinuationToken>more</NextContinuationToken>"
    page = f'<?xml version="1.0"?><ListBucketResult>{more}{contents}</ListBucketResult>'
    script.answers = [web.Response(text=page if is_large else EMPTY, content_type="application/xml")]
    (finding,) = await check_buckets(config_of("device-results"), aws, "sqlite:///nightjar.db")
    assert finding.ok
    assert ("set results.queue to an SQS queue" in finding.text) == is_large
    # One checks whether the bucket may be listed, and ten have ten thousand objects.
    assert len(script.requests) == (11 if is_large else 2)


async def test_the_doctor_checks_the_folder_where_app_yaml_names_no_bucket(tmp_path: Path) -> None:
    config = parse_config(b"repositories: {octocat/compiler: {results: {labs: {a: {targets: [b]}}}}}", "app.yaml")
    aws = Aws()
    (finding,) = await check_buckets(config, aws, f"sqlite:///{tmp_path}/nightjar.db")
    assert (finding.ok, "folder beside the database" in finding.text) == (True, True)
    (tmp_path / "full-results").touch()
    (finding,) = await check_buckets(config, aws, f"sqlite:///{tmp_path}/full.db")
    assert (finding.ok, "cannot be written" in finding.text) == (False, True)


def test_a_large_bucket_is_listed_less_often_so_that_it_costs_no_more() -> None:
    assert pause_after(1, 30.0) == 30.0
    assert pause_after(10, 30.0) == 30.0
    assert pause_after(200, 30.0) == 600.0
    assert pause_after(200, 3600.0) == 3600.0
