"""A lab's files arrive late, broken, under a wrong name, or never, and people can read why."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable, Mapping
from pathlib import Path

import pytest

from bot.aws.bucket import Arrival
from bot.results.service import RESULTS
from bot.results.store.lists.run_lists import list_runs
from handlers.results.watch import WATCH
from tests.bucket import World
from tests.conversations.lab import LabTown, junit, lab_town

FIRST = "First run, nothing to compare with"
GIVEN_UP = "The deadline has passed"
GOOD = {"test_add": "passed", "test_mul": "passed"}
BAD = {"test_add": "passed", "test_mul": "AssertionError: 3 != 4"}


@pytest.fixture
async def place(tmp_path: Path, aws_world: World) -> AsyncIterator[LabTown]:
    async with lab_town(f"sqlite:///{tmp_path}/nightjar.db", aws_world) as place:
        yield place


async def test_a_run_without_a_manifest_is_not_read(place: LabTown) -> None:
    sha = place.nightly_run()
    place.upload(sha, {"ops.xml": junit(**GOOD)}, manifest=False)
    await place.settle()
    assert place.checks(sha) == []


async def test_missing_shards_are_reported_and_never_green(place: LabTown) -> None:
    sha = place.nightly_run()
    place.upload(sha, {"a.xml": junit(test_add="passed")}, shard={"index": 1, "total": 2})
    await place.settle()
    waiting = place.check(sha)
    assert waiting.conclusion == "neutral"
    assert str(waiting.title).startswith("Incomplete: 1 of 2 shards of operators")
    assert GIVEN_UP not in str(waiting.summary)
    await place.scan(later=7 * 3600)
    assert GIVEN_UP in str(place.check(sha).summary)
    place.upload(sha, {"b.xml": junit(test_mul="passed")}, shard={"index": 2, "total": 2})
    await place.settle()
    complete = place.checks(sha)[-1]
    assert (complete.conclusion, complete.title) == ("success", f"{FIRST} · 2 passed")


async def test_the_run_waits_for_a_late_file(place: LabTown) -> None:
    sha, ops = place.nightly_run(), junit(**GOOD)
    folder = place.upload(sha, {"ops.xml": ops}, without=("ops.xml",))
    await place.settle()
    assert "ops.xml has not arrived" in str(place.check(sha).summary)
    assert place.check(sha).conclusion == "neutral"
    place.bucket.put(f"{folder}ops.xml", ops)
    await place.settle()
    assert place.checks(sha)[-1].conclusion == "success"


async def test_a_waiting_run_ends_even_if_its_manifest_is_removed(place: LabTown) -> None:
    sha = place.nightly_run()
    folder = place.upload(sha, {"ops.xml": junit(**GOOD)}, without=("ops.xml",))
    await place.settle()
    place.bucket.s3.delete_object(Bucket=place.bucket.name, Key=f"{folder}manifest.json")
    await place.scan(later=7 * 3600)
    await place.settle()
    assert "manifest.json was removed; the deadline has passed" in str(place.check(sha).summary)
    assert await place.town.failures() == []


async def test_a_waiting_run_ends_although_the_bucket_was_down_at_its_deadline(place: LabTown) -> None:
    sha = place.nightly_run()
    folder = place.upload(sha, {"ops.xml": junit(**GOOD)}, without=("ops.xml",))
    await place.settle()
    manifest_object = {"Bucket": place.bucket.name, "Key": f"{folder}manifest.json"}
    manifest = place.bucket.s3.get_object(**manifest_object)["Body"].read()
    place.bucket.s3.delete_object(**manifest_object)
    place.bucket.s3.delete_bucket(Bucket=place.bucket.name)
    await place.scan(later=7 * 3600)
    place.bucket.create()
    place.bucket.put(f"{folder}manifest.json", manifest)
    await place.scan(later=3600)
    await place.settle()
    assert "the deadline has passed" in str(place.check(sha).summary)


async def test_a_file_that_does_not_match_the_manifest_is_never_green(place: LabTown) -> None:
    sha = place.nightly_run()
    folder = place.upload(sha, {"ops.xml": junit(**GOOD)})
    place.bucket.put(f"{folder}ops.xml", junit(**BAD))
    await place.settle()
    await place.scan(later=7 * 3600)
    run = place.checks(sha)[-1]
    assert run.conclusion == "neutral"
    assert "ops.xml has" in str(run.summary)


@pytest.mark.parametrize("verdict", ["passed", "AssertionError"])
async def test_a_lab_missing_in_app_yaml_gets_no_check(place: LabTown, verdict: str) -> None:
    sha = place.nightly_run()
    place.upload(sha, {"a.xml": junit(test_add=verdict)}, target="unheard-of")
    await place.settle()
    assert place.town.repo.check_runs(sha) == []
    (run,) = place.town.bot.services.part(RESULTS).store.read(list_runs, "octocat/compiler")
    assert (run.state, run.reason) == (
        "refused",
        "app.yaml has no target unheard-of for the lab example-lab; available: hexagon-v73, adreno; after app.yaml has "
        "it, ask a maintainer to run `nightjar results ingest`, or upload the run under another run ID",
    )


async def test_a_folder_with_the_repository_in_other_letter_case_is_refused_with_the_reason(place: LabTown) -> None:
    sha = place.nightly_run()
    folder = place.upload(sha, {"a.xml": junit(**GOOD)})
    odd = folder.replace("octocat/compiler", "OctoCat/Compiler")
    for name in ("a.xml", "manifest.json"):
        place.bucket.s3.copy({"Bucket": place.bucket.name, "Key": folder + name}, place.bucket.name, odd + name)
        place.bucket.s3.delete_object(Bucket=place.bucket.name, Key=folder + name)
    await place.scan(later=3700)
    await place.settle()
    assert place.town.repo.check_runs(sha) == []
    (run,) = place.town.bot.services.part(RESULTS).store.read(list_runs, "octocat/compiler")
    assert run.state == "refused"
    assert run.reason == (
        "the folder is for OctoCat/Compiler, but app.yaml names the repository octocat/compiler; "
        "upload the run to the folder results/octocat/compiler/"
    )
    assert place.town.bot.services.part(RESULTS).store.read(list_runs, "octocat/compiler", last_listed=run.key) == []
    place.time.ahead += 3700
    assert await place.town.bot.services.part(WATCH).tick() == "announced 0"


async def test_a_run_of_a_repository_missing_in_app_yaml_is_in_the_journal(place: LabTown) -> None:
    key = f"results/octocat/other/example-lab/adreno/{place.nightly_run()}/run-1/manifest.json"
    for _ in range(2):
        await place.town.bot.services.part(WATCH).announce_arrival(Arrival(place.bucket.name, key, "etag"))
    await place.town.quiet()
    records = [
        record for record in await place.town.bot.engine.journal.recent(50) if record.repository == "octocat/other"
    ]
    assert [record.job.text for record in records] == ["octocat/other is not in app.yaml"]


async def test_a_corrected_manifest_is_read_again(place: LabTown) -> None:
    sha = place.nightly_run()
    folder = place.upload(sha, {"a.xml": junit(**GOOD)}, attempt=0)
    await place.settle()
    (run,) = place.town.bot.services.part(RESULTS).store.read(list_runs, "octocat/compiler")
    assert run.state == "refused"
    assert "fix this and upload the run under another run ID" in run.reason
    place.runs -= 1
    assert place.upload(sha, {"a.xml": junit(**GOOD)}) == folder
    await place.scan(later=3600)
    await place.settle()
    assert place.check(sha).conclusion == "success"


async def test_all_missing_files_are_reported_together(place: LabTown) -> None:
    sha = place.nightly_run()
    files = {f"{name}.xml": junit(**{f"test_{name}": "passed"}) for name in "abcdefgh"}
    folder = place.upload(sha, files, without=tuple(files)[1:])
    place.bucket.put(f"{folder}b.xml", b"too small")
    await place.settle()
    (run,) = place.town.bot.services.part(RESULTS).store.read(list_runs, "octocat/compiler")
    assert run.state == "waiting"
    assert run.reason.startswith("b.xml has 9 bytes, but manifest.json says ")
    assert run.reason.endswith(
        "; c.xml has not arrived; d.xml has not arrived; e.xml has not arrived; f.xml has not arrived; and 2 more files"
    )


async def test_the_server_searches_for_renamed_tests_in_another_process(place: LabTown) -> None:
    """A lab's test names decide how long the search takes, and it would delay everybody else."""

    def refuse(removed: Iterable[str], new: Iterable[str]) -> Mapping[str, str]:
        raise AssertionError("the search ran in this process")

    store = place.town.bot.services.part(RESULTS).store
    store._renames = refuse
    for prefix in ("old", "new"):
        place.upload(place.nightly_run(), {"ops.xml": junit(**{f"test_{prefix}_{n}": "passed" for n in range(60)})})
        await place.settle()
    assert [run.state.value for run in store.read(list_runs, place.repository)] == ["stored", "stored"]
    assert await place.town.failures() == []
