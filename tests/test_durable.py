"""This version reads the data of all earlier ones: no durable name was lost, and no shape has changed."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

import pytest
from pydantic import TypeAdapter

from bot.app.features import CODEC, EVENTS, RECORDS, full_router
from bot.core.events import Repository
from bot.core.payload import Payload
from bot.engine.records import UnreadableRecord
from tests.durable import GROUPS, example, stored

MISSING = "there is no fixture of {names}; run: make fixtures"


def lacks(fixture: Any, read: Any) -> list[str]:
    """Return the fields of a fixture that are lost or changed after it was read and written again."""
    if isinstance(fixture, dict) and isinstance(read, dict):
        lost = [name for name in fixture if name not in read]
        below = [(name, lacks(value, read[name])) for name, value in fixture.items() if name in read]
        return [*lost, *(f"{name}.{one}" for name, found in below for one in found)]
    if isinstance(fixture, list) and isinstance(read, list) and len(fixture) == len(read):
        return [one for old, new in zip(fixture, read, strict=True) for one in lacks(old, new)]
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
    (stage,) = [one.conclude for one in full_router().handlers if one.name == handler]
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


def test_handlers_keep_their_names() -> None:
    assert stored("handlers").keys() - GROUPS["handlers"]().keys() == set()


@dataclass(frozen=True)
class Renamed:
    """A record after a change in which a field was renamed."""

    oid: str = ""


def test_a_renamed_field_is_detected() -> None:
    fixture = stored("records")["called-private 1"]
    assert lacks(fixture, example(Renamed)) == ["delivery"]
    with pytest.raises(UnreadableRecord):
        RECORDS.kinds["head"].load("head:1:1", fixture, 1)
