"""An operator ingests runs by hand while the bot is running."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from bot.core.errors import UserError
from bot.results.service import RESULTS
from bot.results.store.lists.run_lists import list_runs
from handlers.results.admin import FoundRun, IngestOutcome, ResultsAdmin, in_bucket, in_folder
from tests.bucket import World
from tests.conversations.lab import CHECK, LAB, TARGET, LabTown, junit, lab_town
from tests.results.snapshot import snapshot_of

GOOD = {"test_add": "passed", "test_mul": "passed"}


@pytest.fixture
async def place(tmp_path: Path, aws_world: World) -> AsyncIterator[LabTown]:
    async with lab_town(f"sqlite:///{tmp_path}/nightjar.db", aws_world) as place:
        yield place


def results_admin(place: LabTown) -> ResultsAdmin:
    return ResultsAdmin(place.town.bot.services)


def from_bucket(place: LabTown, prefix: str = "results/") -> AsyncIterator[FoundRun]:
    source = place.town.bot.services.part(RESULTS).source_for(place.bucket.name)
    return in_bucket(source, prefix, place.town.bot.config)


async def ingested(place: LabTown, runs: AsyncIterator[FoundRun]) -> list[IngestOutcome]:
    return [await results_admin(place).ingest(run) async for run in runs]


def copied(place: LabTown, folder: Path, *, without: str = "") -> Path:
    """Copy the bucket into a folder, without the prefix of its keys."""
    for stored_object in place.bucket.s3.list_objects_v2(Bucket=place.bucket.name)["Contents"]:
        path = folder / stored_object["Key"].removeprefix(without)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(place.bucket.s3.get_object(Bucket=place.bucket.name, Key=stored_object["Key"])["Body"].read())
    return folder


async def test_runs_of_a_bucket_are_stored_once(place: LabTown) -> None:
    nightly_runs = [place.nightly_run(), place.nightly_run()]
    for sha in nightly_runs:
        place.upload(sha, {"ops.xml": junit(**GOOD)})
    assert [outcome.state for outcome in await ingested(place, from_bucket(place))] == ["stored", "stored"]
    assert [outcome.state for outcome in await ingested(place, from_bucket(place))] == ["known", "known"]


@pytest.mark.parametrize("without", ["", "results/", "results/octocat/"])
async def test_a_folder_with_the_layout_of_the_bucket_is_read_from_any_level(
    place: LabTown, tmp_path: Path, without: str
) -> None:
    place.upload(place.nightly_run(), {"ops.xml": junit(**GOOD)})
    root = tmp_path / "octocat" if without.endswith("octocat/") else tmp_path / "copy"
    folder = copied(place, root, without=without)
    [outcome] = await ingested(place, in_folder(folder, place.town.bot.config))
    assert (outcome.state, outcome.reason) == ("stored", "")
    assert outcome.key is not None
    assert (outcome.key.lab, outcome.key.run_id) == (LAB, "run-1")


async def test_a_single_run_folder_or_manifest_is_read_alone(place: LabTown, tmp_path: Path) -> None:
    first = place.upload(place.nightly_run(), {"ops.xml": junit(**GOOD)})
    second = place.upload(place.nightly_run(), {"ops.xml": junit(**GOOD)})
    copied(place, tmp_path / "copy")
    for path in (tmp_path / "copy" / first, tmp_path / "copy" / second / "manifest.json"):
        outcomes = await ingested(place, in_folder(path, place.town.bot.config))
        assert [outcome.state for outcome in outcomes] == ["stored"]


async def test_runs_that_are_not_ingested_are_reported_with_the_reason(place: LabTown) -> None:
    sha = place.nightly_run()
    place.upload(sha, {"ops.xml": junit(**GOOD)}, target="unknown")
    place.upload("f" * 40, {"ops.xml": junit(**GOOD)})
    place.upload(sha, {"ops.xml": junit(**GOOD)}, without=("ops.xml",))
    place.upload(sha, {"ops.xml": b"<testsuite>"})
    place.bucket.put("results/elsewhere/manifest.json")
    place.bucket.put(f"results/octocat/other/{LAB}/{TARGET}/{sha}/1/manifest.json")
    outcomes = await ingested(place, from_bucket(place))
    states = sorted((outcome.state, outcome.reason[:26]) for outcome in outcomes)
    assert states == [
        ("incomplete", "ops.xml: the file ends in "),
        ("refused", "app.yaml has no results fo"),
        ("refused", "app.yaml has no target unk"),
        ("refused", "there is no commit fffffff"),
        ("refused", "this is not the layout of "),
        ("waiting", "ops.xml has not arrived"),
    ]
    assert not any(outcome.good for outcome in outcomes)


async def test_a_refused_run_is_read_again(place: LabTown) -> None:
    sha = place.town.repo.push("feature", {"a.py": "1\n"}, by="octocat").sha
    place.upload(sha, {"ops.xml": junit(**GOOD)})
    assert [outcome.state for outcome in await ingested(place, from_bucket(place))] == ["refused"]
    place.town.repo.move("refs/heads/nightly", sha, by="octocat")
    assert [outcome.state for outcome in await ingested(place, from_bucket(place))] == ["stored"]


async def test_check_runs_are_written_without_waiting_for_more_results(place: LabTown) -> None:
    sha = place.nightly_run()
    place.upload(sha, {"ops.xml": junit(**GOOD)})
    admin = results_admin(place)
    outcomes = await ingested(place, from_bucket(place))
    keys = [outcome.key for outcome in outcomes if outcome.key]
    await admin.announce(keys)
    assert await admin.published(keys, 60)
    assert [check.conclusion for check in place.checks(sha, CHECK)] == ["success"]


async def test_a_rebuild_changes_nothing(place: LabTown) -> None:
    nightly_runs = [place.nightly_run() for _ in range(3)]
    for number, sha in enumerate(nightly_runs):
        mul = "AssertionError: 3 != 4" if number == 1 else "passed"
        place.upload(sha, {"ops.xml": junit(test_add="passed", test_mul=mul)})
    place.upload(nightly_runs[0], {"ops.xml": junit(**GOOD)}, target="unknown")
    await ingested(place, from_bucket(place))
    store = place.town.bot.services.part(RESULTS).store
    snapshot = json.dumps(store.read(snapshot_of, "octocat/compiler"), default=str, sort_keys=True)
    admin = results_admin(place)
    states = [(await admin.rebuild(run)).state async for run in from_bucket(place)]
    assert sorted(states) == ["refused", "stored", "stored", "stored"]
    assert json.dumps(store.read(snapshot_of, "octocat/compiler"), default=str, sort_keys=True) == snapshot


async def test_results_that_were_removed_from_the_bucket_stay_stored(place: LabTown) -> None:
    sha = place.nightly_run()
    folder = place.upload(sha, {"ops.xml": junit(**GOOD)})
    broken = place.upload(sha, {"more.xml": junit(**GOOD)}, suite="more")
    await ingested(place, from_bucket(place))
    place.bucket.s3.delete_object(Bucket=place.bucket.name, Key=f"{folder}manifest.json")
    place.bucket.s3.delete_object(Bucket=place.bucket.name, Key=f"{broken}more.xml")
    admin = results_admin(place)
    [outcome] = [await admin.rebuild(run) async for run in from_bucket(place)]
    assert (outcome.state, outcome.good) == ("known", False)
    assert "more.xml has not arrived" in outcome.reason
    assert outcome.key is not None
    assert [key.folder for key in await admin.missing("octocat/compiler", {outcome.key})] == [
        folder.removeprefix("results/")
    ]
    assert len(place.town.bot.services.part(RESULTS).store.read(list_runs, "octocat/compiler")) == 2


async def test_a_folder_that_does_not_exist_is_reported(place: LabTown, tmp_path: Path) -> None:
    with pytest.raises(UserError, match="is not a folder"):
        await ingested(place, in_folder(tmp_path / "missing", place.town.bot.config))
    (tmp_path / "empty").mkdir()
    assert await ingested(place, in_folder(tmp_path / "empty", place.town.bot.config)) == []
