"""The listing of runs, from the store and app.yaml."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from bot.app.load import parse_config
from bot.effects.checks import CHECK_RUN, WrittenCheckRun
from bot.engine.database import Database
from bot.engine.records import Records
from bot.github.pull_heads import note_id
from bot.results.state import RunState
from bot.results.store.store import ResultsStore
from handlers.results.listing import RunListing, RunQuery
from tests.results.uploads import LAB, REPOSITORY, TARGET, Upload

CONFIG = """
repositories:
  octocat/compiler:
    results: {bucket: device-results, labs: {example-lab: {targets: [adreno]}}}
  octocat/other:
"""


@pytest.fixture
async def records(url_with_tables: str) -> AsyncIterator[Records]:
    database = Database(url_with_tables)
    await database.open()
    yield Records(database.connector)
    await database.close()


@pytest.fixture
def listing(store: ResultsStore, records: Records) -> RunListing:
    for number in range(3):
        upload = Upload(number, {"a.py::test": "passed"})
        store.put(upload.run, upload.columns)
    store.put_state(Upload(9, {}).without_results(RunState.REFUSED, "no such commit"))
    return RunListing(parse_config(CONFIG.encode(), "app.yaml"), store, records, "https://github.com")


async def test_runs_are_found_whatever_the_letter_case_of_the_repository(listing: RunListing) -> None:
    assert len(await listing(RunQuery("Octocat/Compiler"))) == 4
    [refused] = await listing(RunQuery(REPOSITORY, LAB, TARGET, state=RunState.REFUSED))
    assert refused.run.reason == "no such commit"
    assert await listing(RunQuery(REPOSITORY, "another-lab")) == []


async def test_the_next_page_starts_after_the_last_run_of_the_previous_one(listing: RunListing) -> None:
    first = await listing(RunQuery("Octocat/compiler", limit=2))
    rest = await listing(RunQuery("Octocat/compiler", before=first[-1].run.key, limit=9))
    assert len({listed.run.key for listed in (*first, *rest)}) == 4


async def test_a_repository_without_results_is_not_listed(listing: RunListing) -> None:
    for name in ("octocat/other", "octocat/unknown"):
        with pytest.raises(LookupError):
            await listing(RunQuery(name))


async def test_an_unknown_run_is_refused_as_the_start_of_a_page(listing: RunListing) -> None:
    with pytest.raises(ValueError, match="RunKey"):
        await listing(RunQuery(REPOSITORY, before=Upload(5, {}).run.key))


async def test_runs_name_the_check_run_of_their_commit_and_target(listing: RunListing, records: Records) -> None:
    runs = [listed.run.key for listed in await listing(RunQuery(REPOSITORY))]
    assert {listed.check_run for listed in await listing(RunQuery(REPOSITORY))} == {""}, (
        "GitHub has not named the repository yet"
    )
    await note_id(records, REPOSITORY, 1)
    for number, key in enumerate(runs[:2]):
        await records.put(CHECK_RUN.of(1, key.sha, f"hardware/{LAB}/{TARGET}"), WrittenCheckRun(1.0, number))
    addresses = {listed.run.key: listed.check_run for listed in await listing(RunQuery("Octocat/Compiler"))}
    address = "https://github.com/octocat/compiler/runs/1"
    assert addresses == {**dict.fromkeys(runs, ""), runs[1]: address}, "a check run without a number is not written yet"
