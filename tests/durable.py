"""Fixtures of everything durable, as this version writes it: records, effects, internal events, and handler names.

`make fixtures` adds fixtures of new kinds. It changes no existing one, because databases contain such data.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter

from bot.app.features import ALL_FEATURES, EVENTS, RECORDS, full_router
from bot.core.events import Repository

FOLDER = Path(__file__).parent / "data" / "durable"
Fixtures = dict[str, Any]
SCALARS: Mapping[str, Any] = {"string": "text", "integer": 7, "number": 1.5, "boolean": True, "null": None}
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


GROUPS = {"records": records, "effects": effects, "handlers": handlers, "conclusions": conclusions, "events": events}


def stored(group: str) -> Fixtures:
    """Return the fixtures of a group."""
    found: Fixtures = json.loads((FOLDER / f"{group}.json").read_text(encoding="utf-8"))
    return found


def main() -> None:
    """Add the fixtures of new kinds."""
    for group, now in GROUPS.items():
        path = FOLDER / f"{group}.json"
        known = stored(group) if path.exists() else {}
        path.write_text(json.dumps({**now(), **known}, indent=2, sort_keys=True) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
