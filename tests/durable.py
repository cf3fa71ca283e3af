"""Fixtures of everything durable, as this version writes it: names, records, effects, jobs, notes, files of labs.

`make fixtures` adds fixtures of new kinds. It changes no existing one, because databases contain such data.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from nightjar_formats.model import Claims, RunKey
from nightjar_formats.runs.upload import pack, pieces
from pydantic import TypeAdapter

from bot.app.features import ALL_FEATURES, EVENTS, RECORDS, full_router
from bot.core.events import Repository
from bot.engine.jobs.definitions import (
    Origin,
    conclusion_jobs,
    delivery_job,
    effect_jobs,
    plan_job,
    replay_job,
    resume_job,
    timer_job,
)
from bot.engine.jobs.notes import (
    APPLIED,
    AWAY,
    CONCLUDED,
    FAILED,
    IGNORED,
    PLANNED,
    REFUSED,
    REPLAYED,
    RETRYING,
    ROUTED,
    UNCHANGED,
    WRITING,
    Note,
)
from bot.engine.jobs.once import ONCE
from bot.engine.postgres import schema as postgres_schema
from bot.engine.processor import PlannedEffect, PlannedEffects
from bot.engine.retry import Tries
from bot.engine.sqlite import schema as sqlite_schema
from bot.engine.writes import SentWrite, Writes
from bot.results.store.tables.database import MIGRATIONS
from handlers.nightly.effects import FOR_LABS
from handlers.tracking_branches.records import TrackingState

FOLDER = Path(__file__).parent / "data" / "durable"
Fixtures = dict[str, Any]
SCALARS: Mapping[str, Any] = {"string": "text", "integer": 7, "number": 1.5, "boolean": True, "null": None}
RUN = RunKey("octocat/compiler", "example-lab", "hexagon-v73", "0123456789" * 4, "run-1")
CLAIMS = Claims(
    suite="unit",
    attempt=2,
    shard_index=1,
    shard_total=3,
    started_at="2026-01-02T03:04:05Z",
    finished_at="2026-01-02T03:14:05Z",
    exit_status=1,
    pull_request=7,
    environment={"device": "Pixel 9"},
    log_url="https://ci.example.org/7",
    job="job-1",
)
EFFECTS_ALONE = PlannedEffects((PlannedEffect("target", {"kind": "SetStatus"}),))
OUTCOMES = (
    *(ROUTED, IGNORED, PLANNED, CONCLUDED, APPLIED, UNCHANGED),
    *(RETRYING, FAILED, REFUSED, REPLAYED, AWAY, WRITING),
)
CHECKED = {"conclusion": "neutral"}
"""Values of fields that a type checks beyond its schema."""


def example(kind: Any) -> Any:
    """Return JSON of a type, with a value in each field; of several types, use the first that is not null."""
    schema = TypeAdapter(kind).json_schema(mode="serialization")
    return _example(schema, schema.get("$defs", {}))


def _example(schema: Mapping[str, Any], definitions: Mapping[str, Any]) -> Any:
    if "$ref" in schema:
        return _example(definitions[schema["$ref"].rpartition("/")[2]], definitions)
    if "const" in schema or "enum" in schema:
        return schema["const"] if "const" in schema else schema["enum"][0]
    for choice in schema.get("anyOf", ()):
        if choice.get("type") != "null":
            return _example(choice, definitions)
    match schema.get("type"):
        case "object":
            properties = schema.get("properties", {}).items()
            fields = {name: CHECKED.get(name) or _example(field, definitions) for name, field in properties}
            more = schema.get("additionalProperties")
            return fields if fields or not isinstance(more, dict) else {"key": _example(more, definitions)}
        case "array":
            items = schema.get("prefixItems") or [schema["items"]] if "items" in schema else schema["prefixItems"]
            return [_example(item, definitions) for item in items]
        case None:
            return {"key": "text"}
        case name:
            return SCALARS[name]


def records() -> Fixtures:
    """Return an example of each kind of record, by prefix and version."""
    return {f"{one.prefix} {one.version}": example(one.codec) for one in RECORDS.kinds.values()}


def effects() -> Fixtures:
    """Return an example of each kind of effect."""
    return {kind.__name__: example(kind) for feature in ALL_FEATURES for kind in feature.effects}


def handlers() -> Fixtures:
    """Return the names of all handlers, each with its events."""
    return {one.name: sorted({event for event, _ in one.wants}) for one in full_router().handlers}


def conclusions() -> Fixtures:
    """Return an example of the basis of each handler with a conclude stage."""
    return {one.name: example(one.conclude.basis) for one in full_router().handlers if one.conclude is not None}


def events() -> Fixtures:
    """Return the body of each internal event, with an example of its content."""
    about = Repository(7, "octocat/compiler", 42)
    return {event.name: event.body(about, event.load(example(event.codec))) for event in EVENTS.values()}


def jobs() -> Fixtures:
    """Return the key and the arguments of a job of each task."""
    origin = Origin("guid", "handler", "guid:guid", 7, 1.5, 0, "pr:7#7")
    planned = PlannedEffects((PlannedEffect("target", {"kind": "SetStatus"}),), "why", {"rank": 3, "basis": {}})
    effect, conclude = effect_jobs(origin, 7, Repository(7, "octocat/compiler", 42), planned)
    made = {
        "deliver": delivery_job("guid", "push", 1.5, "pr:7#7"),
        "replay": replay_job("guid", 1, 7, 1.5, "pr:7#7"),
        "handle": plan_job(origin),
        "handle of a failure": plan_job(origin.answer("message", interim=False)),
        "handle of an interim failure": plan_job(origin.answer("message", interim=True)),
        "effect": effect,
        "conclude": conclude,
        "effect of a conclusion": conclusion_jobs(origin, 7, 1, Repository(7, "octocat/compiler", 42), EFFECTS_ALONE)[
            0
        ],
        "timer": timer_job("retention", 1_800_000_000),
        "resume": resume_job("guid", 6, 7, 5, 1.5, 3600.0),
    }
    return {name: {"task": job.task, "key": ONCE + job.key, "args": job.args} for name, job in made.items()}


def notes() -> Fixtures:
    """Return a note with each outcome, with a value in each field."""
    tries = Tries(**{name: number + 1 for number, name in enumerate(Tries.__slots__)})
    writes = Writes(
        {"sent": [asdict(SentWrite("POST /x", 1.5, 1, again=True))], "checks_left": 1, "outcome": {"text": ""}}
    )
    about = {"action": "created", "repository": "octocat/compiler", "number": 7, "page": "/pull/7"}
    whole = Note("", "text", "message", tries, about, writes.state, {"key": "text"}, is_user_error=True)
    return {outcome: json.loads(whole.written()) for outcome in OUTCOMES}


def migrations() -> Fixtures:
    """Return a hash of each step of the schema, by database or, for the tables of results, by revision."""
    engine = {"sqlite": sqlite_schema.VERSIONS, "postgresql": postgres_schema.VERSIONS}
    steps = {f"{kind} {n}": step for kind, scripts in engine.items() for n, step in enumerate(scripts, 1)}
    files = sorted((MIGRATIONS / "versions").glob("v*.py"))
    steps |= {f"results {path.stem}": path.read_text(encoding="utf-8") for path in files}
    return {name: hashlib.sha256(step.encode()).hexdigest() for name, step in steps.items()}


def bucket() -> Fixtures:
    """Return what labs and the bot write into the bucket for each other."""
    with TemporaryDirectory() as place:
        report = Path(place) / "te.xml"
        report.write_text("<testsuite/>", encoding="utf-8")
        packed_run = pack(RUN, "", list(pieces([report], "junit", None, Path(place))), CLAIMS)
    nightly = {**example(TrackingState), "sha": RUN.sha, "previous_sha": RUN.sha}
    return {
        "manifest.json": json.loads(packed_run.manifest),
        "nightly.json": {"repository": RUN.repository, **{name: nightly[name] for name in FOR_LABS}},
    }


GROUPS = {
    "records": records,
    "effects": effects,
    "handlers": handlers,
    "conclusions": conclusions,
    "events": events,
    "jobs": jobs,
    "notes": notes,
    "migrations": migrations,
    "bucket": bucket,
}


def stored(group: str) -> Fixtures:
    """Return the fixtures of a group."""
    found: Fixtures = json.loads((FOLDER / f"{group}.json").read_text(encoding="utf-8"))
    return found


def main() -> None:
    """Add the fixtures of new kinds, and databases if a migration is new."""
    from tests.stored_databases import add  # imported here, because it imports this module

    add()
    for group, now in GROUPS.items():
        path = FOLDER / f"{group}.json"
        known = stored(group) if path.exists() else {}
        path.write_text(json.dumps({**now(), **known}, indent=2, sort_keys=True) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
