"""This version reads the data of all earlier ones: no durable name was lost, and no shape has changed."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

import pytest
from nightjar_formats.runs.manifest import read_manifest
from nightjar_lab.nightly import NightlyCommit, NightlySource
from pydantic import TypeAdapter

from bot.app.features import CODEC, EVENTS, RECORDS, full_router
from bot.core.events import Payload, Repository
from bot.engine.jobs.notes import Note
from bot.engine.records import UnreadableRecord
from bot.engine.writes import Writes
from tests.durable import CLAIMS, GROUPS, RUN, example, jobs, migrations, stored

MISSING = "there is no fixture of {names}; run: make fixtures"


def lacks(fixture: Any, read: Any) -> list[str]:
    """Return the fields of a fixture that are lost or changed after it was read and written again."""
    if isinstance(fixture, dict) and isinstance(read, dict):
        lost = [name for name in fixture if name not in read]
        below = [(name, lacks(value, read[name])) for name, value in fixture.items() if name in read]
        return [*lost, *(f"{name}.{path}" for name, lacking in below for path in lacking)]
    if isinstance(fixture, list) and isinstance(read, list) and len(fixture) == len(read):
        return [path for old, new in zip(fixture, read, strict=True) for path in lacks(old, new)]
    return [] if fixture == read else ["value"]


@pytest.mark.parametrize("group", GROUPS)
def test_every_kind_has_a_fixture(group: str) -> None:
    missing = sorted(GROUPS[group]().keys() - stored(group).keys())
    assert missing == [], MISSING.format(names=", ".join(missing))


@pytest.mark.parametrize("name", stored("records"))
def test_records_are_read_as_they_were_written(name: str) -> None:
    prefix, version = name.split()
    record = RECORDS.kinds.get(prefix)
    assert record is not None, f"no record has the prefix {prefix} now: databases hold such records"
    value = record.load(f"{prefix}:1", stored("records")[name], int(version))
    if int(version) == record.version:
        assert lacks(stored("records")[name], json.loads(json.dumps(record.dump(value)))) == []


@pytest.mark.parametrize("kind", stored("effects"))
def test_effects_are_read_as_they_were_written(kind: str) -> None:
    effect = CODEC.decode({"kind": kind, **stored("effects")[kind]})
    assert lacks(stored("effects")[kind], json.loads(json.dumps(CODEC.encode(effect)))) == []


@pytest.mark.parametrize("handler", stored("conclusions"))
def test_a_conclude_stage_reads_what_its_plan_stored(handler: str) -> None:
    (stage,) = [known_handler.conclude for known_handler in full_router().handlers if known_handler.name == handler]
    assert stage is not None
    adapter = TypeAdapter(stage.basis)
    fixture = stored("conclusions")[handler]
    assert lacks(fixture, adapter.dump_python(adapter.validate_python(fixture), mode="json")) == []


@pytest.mark.parametrize("name", stored("events"))
def test_internal_events_are_read_as_they_were_announced(name: str) -> None:
    event = EVENTS.get(name)
    assert event is not None, f"no internal event is named {name} now: databases hold such deliveries"
    payload = Payload(stored("events")[name])
    body = event.body(Repository.of(payload), event.read(payload))
    assert lacks(stored("events")[name], json.loads(json.dumps(body))) == []


@pytest.mark.parametrize("group", GROUPS)
def test_no_stored_name_disappears(group: str) -> None:
    # A record has its version in its name, and a newer one replaces it.
    current = {name.partition(" ")[0] if group == "records" else name for name in GROUPS[group]()}
    names = {name.partition(" ")[0] if group == "records" else name for name in stored(group)}
    assert names - current == set()


@pytest.mark.parametrize("job", stored("jobs"))
def test_jobs_keep_their_keys_and_arguments(job: str) -> None:
    """A key that changes lets a delivery be handled twice; an argument that changes cannot be read."""
    assert lacks(stored("jobs")[job], jobs()[job]) == []


@pytest.mark.parametrize("outcome", stored("notes"))
def test_notes_are_read_as_they_were_written(outcome: str) -> None:
    fixture = stored("notes")[outcome]
    note = Note.read(outcome, json.dumps(fixture))
    assert lacks(fixture, json.loads(note.written())) == []
    assert lacks(fixture["writes"], Writes(note.writes).state) == []


def test_migrations_that_landed_are_unchanged() -> None:
    """A database that has run a migration never runs it again: add a new one instead."""
    current = migrations()
    assert {name: current.get(name) for name in stored("migrations")} == stored("migrations")


def test_a_manifest_is_read_as_it_was_uploaded() -> None:
    manifest = read_manifest(json.dumps(stored("bucket")["manifest.json"]).encode(), RUN)
    assert manifest.claims == CLAIMS
    assert [asdict(file) for file in manifest.files] == stored("bucket")["manifest.json"]["files"]


class NightlyOfFixture(NightlySource):
    """The file that a bot wrote."""

    place = "tests/data/durable/bucket.json"

    def _fetch(self, tag: str) -> tuple[Mapping[str, Any] | None, str]:
        return stored("bucket")["nightly.json"], tag


def test_a_lab_reads_the_nightly_file_as_it_was_written() -> None:
    fixture = stored("bucket")["nightly.json"]
    commit = NightlyOfFixture(fixture.pop("repository")).commit()
    assert commit == NightlyCommit(RUN.sha, fixture)


@dataclass(frozen=True)
class Renamed:
    """A record after a change in which a field was renamed."""

    oid: str = ""


def test_a_renamed_field_is_detected() -> None:
    fixture = stored("records")["called-private 1"]
    assert lacks(fixture, example(Renamed)) == ["delivery"]
    with pytest.raises(UnreadableRecord):
        RECORDS.kinds["head"].load("head:1:1", fixture, 1)
