"""Changes to records and the announcement of events are stored together, or not at all."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, cast

import pytest

from bot.core.events import Repository
from bot.engine.changes import Changes, Outdated
from bot.engine.internal import InternalEvent
from bot.engine.records import EXCHANGE, INSERT, JOB_RECORDS, JobRecords, Record
from bot.engine.service import Engine
from bot.engine.sql.transactions import Steps


@dataclass(frozen=True)
class Count:
    """A number that several jobs change."""

    number: int


COUNT = Record("test-count", 1, Count, "a number", days=None).of(1)
OTHER = Record("test-other", 1, Count, "another number", days=None).of(1)
EVENT = InternalEvent(
    "nightjar.test", Count, guid=lambda _, count: f"count:{count.number}", lock=lambda _, __: "counts"
)
REPOSITORY = Repository(1, "octocat/compiler", None)


def more(count: Count | None) -> Count:
    return Count(count.number + 1 if count else 1)


@pytest.fixture
async def engine(url_with_tables: str) -> AsyncIterator[Engine]:
    async with Engine(url_with_tables) as engine:
        yield engine


async def events(engine: Engine) -> set[str]:
    return await engine.journal.known_guids([f"count:{number}" for number in range(10)])


async def collected(engine: Engine) -> Changes:
    """Return changes to two records, with an event; nothing is stored yet."""
    changes = engine.new_changes()
    await changes.change(COUNT, more)
    changes.put(OTHER, Count(7))
    assert await changes.announce(EVENT, REPOSITORY, Count(1))
    return changes


async def test_all_changes_are_stored_together(engine: Engine) -> None:
    changes = await collected(engine)
    assert (await engine.records.get(COUNT), await events(engine)) == (None, set())
    await changes.store()
    assert await engine.records.get_some([COUNT, OTHER]) == {COUNT.name: Count(1), OTHER.name: Count(7)}
    assert await events(engine) == {"count:1"}


@pytest.mark.parametrize("stored_before", [True, False])
async def test_nothing_is_stored_if_another_job_changed_a_record_that_was_read(
    engine: Engine, stored_before: bool
) -> None:
    if stored_before:
        await engine.records.put(COUNT, Count(4))
    changes = await collected(engine)
    await engine.records.put(COUNT, Count(5))
    with pytest.raises(Outdated, match="test-count:1"):
        await changes.store()
    assert await engine.records.get_some([COUNT, OTHER]) == {COUNT.name: Count(5)}
    assert await events(engine) == set()


async def test_later_reads_see_the_changes_made_so_far(engine: Engine) -> None:
    await engine.records.put(COUNT, Count(4))
    changes = engine.new_changes()
    await changes.change(COUNT, more)
    await changes.change(COUNT, more)
    assert await changes.get(COUNT) == Count(6)
    changes.write(OTHER.name, None)
    assert await changes.get(OTHER) is None
    await changes.store()
    assert await engine.records.get(COUNT) == Count(6)


async def test_a_change_to_nothing_new_writes_nothing_and_guards_nothing(engine: Engine) -> None:
    changes = engine.new_changes()
    await changes.change(COUNT, lambda _: None)
    await engine.records.put(COUNT, Count(5))
    await changes.store()
    assert await engine.records.get(COUNT) == Count(5)


async def test_an_update_reads_the_record_when_the_changes_are_stored(engine: Engine) -> None:
    await engine.records.put(COUNT, Count(4))
    changes = engine.new_changes()
    for key in (COUNT, COUNT, OTHER):
        changes.update(key, more)
    changes.update(OTHER, lambda _: None)
    await engine.records.put(COUNT, Count(5))
    assert await changes.get(COUNT) == Count(5)
    await changes.store()
    assert await engine.records.get_some([COUNT, OTHER]) == {COUNT.name: Count(7), OTHER.name: Count(1)}


@pytest.fixture
def statements(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Return the statements of the transactions that the engine runs."""
    texts, transact = list[str](), engine.database.connector.transact

    def noted(begin: Callable[[], Steps[Any]]) -> Steps[Any]:
        steps, rows = begin(), cast("Any", None)
        try:
            while True:
                statement = steps.send(rows)
                texts.append(statement[0])
                rows = yield statement
        except StopIteration as end:
            return end.value

    monkeypatch.setattr(engine.database.connector, "transact", lambda begin: transact(partial(noted, begin)))
    return texts


async def test_an_update_reads_no_record_that_its_job_has_fetched(engine: Engine, statements: list[str]) -> None:
    JOB_RECORDS.set(JobRecords())
    await engine.records.put(COUNT, Count(4))
    await engine.records.fetch(COUNT, OTHER)
    changes = engine.new_changes()
    for key in (COUNT, OTHER):
        changes.update(key, more)
    await changes.store()
    assert statements == [EXCHANGE, INSERT]
    assert await engine.records.get_some([COUNT, OTHER]) == {COUNT.name: Count(5), OTHER.name: Count(1)}


async def test_an_update_loses_no_change_since_its_job_has_fetched_the_record(engine: Engine) -> None:
    JOB_RECORDS.set(JobRecords())
    await engine.records.put(COUNT, Count(4))
    await engine.records.fetch(COUNT, OTHER)
    changes = engine.new_changes()
    for key in (COUNT, OTHER):
        changes.update(key, more)
    await engine.records.put(COUNT, Count(7))
    with pytest.raises(Outdated) as outdated:
        await changes.store()
    assert await engine.records.get_some([COUNT, OTHER]) == {COUNT.name: Count(7)}
    assert changes.read_again(outdated.value.key)
    await changes.store()
    assert await engine.records.get_some([COUNT, OTHER]) == {COUNT.name: Count(8), OTHER.name: Count(1)}
    assert not changes.read_again(outdated.value.key)


async def test_an_update_that_changes_nothing_decides_by_what_is_stored_then(engine: Engine) -> None:
    JOB_RECORDS.set(JobRecords())
    await engine.records.put(COUNT, Count(4))
    await engine.records.fetch(COUNT)
    changes = engine.new_changes()
    changes.update(COUNT, lambda count: more(count) if count == Count(7) else None)
    await engine.records.put(COUNT, Count(7))
    await changes.store()
    assert await engine.records.get(COUNT) == Count(8)


@pytest.mark.parametrize("has_fetched", [False, True])
async def test_an_update_changes_what_the_same_changes_write(engine: Engine, has_fetched: bool) -> None:
    JOB_RECORDS.set(JobRecords())
    if has_fetched:
        await engine.records.fetch(COUNT)
    for write, expected in (("put", 5), ("change", 7), ("remove", 1)):
        changes = engine.new_changes()
        if write == "put":
            changes.put(COUNT, Count(4))
        elif write == "change":
            await changes.change(COUNT, more)
        else:
            changes.write(COUNT.name, None)
        changes.update(COUNT, more)
        await changes.store()
        assert await engine.records.get(COUNT) == Count(expected)


async def test_updates_of_one_record_at_one_moment_lose_nothing(engine: Engine) -> None:
    async def count_once() -> bool:
        changes = engine.new_changes()
        changes.update(COUNT, more)
        try:
            await changes.store()
        except Outdated:
            return False
        return True

    stored = await asyncio.gather(*(count_once() for _ in range(9)))
    assert await engine.records.get(COUNT) == Count(sum(stored))


async def test_an_event_is_new_once(engine: Engine) -> None:
    changes = await collected(engine)
    assert not await changes.announce(EVENT, REPOSITORY, Count(1))
    await changes.store()
    assert not await engine.new_changes().announce(EVENT, REPOSITORY, Count(1))


async def test_what_must_know_that_the_changes_are_stored_is_called_then_and_not_after_a_failure(
    engine: Engine,
) -> None:
    called: list[str] = []
    for name in ("first", "outdated"):
        changes = engine.new_changes()
        await changes.change(COUNT, more)
        changes.after_commit.append(lambda name=name: called.append(name))  # type: ignore[misc]
        if name == "outdated":
            await engine.records.put(COUNT, Count(9))
            with pytest.raises(Outdated):
                await changes.store()
        else:
            await changes.store()
    assert called == ["first"]
