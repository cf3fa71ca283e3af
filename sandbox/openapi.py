"""GitHub's own description of its API, used to check what clients send and what the sandbox answers.

The document is `@octokit/openapi` (see `data/LICENSE`). Loading takes a fraction of a second and happens once per
process; every schema is compiled when it is first needed.
"""

from __future__ import annotations

import json
import lzma
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any

from jsonschema_rs import Draft4Validator, ValidationError

from sandbox.errors import ApiError, invalid

Json = dict[str, Any]
_DOCUMENT = Path(__file__).with_name("data") / "openapi.json.xz"
_COMPONENT = "#/components/schemas/"
_UNUSED = {"description", "example", "examples", "default", "nullable"}
# GitHub silently reduces a larger page, but a client that requests one has misread the documentation.
MAX_PER_PAGE = 100


@cache
def document() -> Json:
    """Return GitHub's OpenAPI 3.0 document."""
    loaded: Json = json.loads(lzma.decompress(_DOCUMENT.read_bytes()))
    # Only here, Octokit writes out the schema of an installation, whose account must be a user *and* an enterprise.
    answer = loaded["paths"]["/app/installations"]["get"]["responses"]["200"]["content"]["application/json"]
    answer["schema"]["items"] = {"$ref": _COMPONENT + "installation"}
    # Octokit repeats the list of an App's events for each action; for this action it is older and lacks merge_group.
    schemas = loaded["components"]["schemas"]
    schemas["webhook-check-suite-rerequested"]["properties"]["check_suite"]["properties"]["app"]["properties"][
        "events"
    ] = schemas["webhook-check-suite-requested"]["properties"]["check_suite"]["properties"]["app"]["properties"][
        "events"
    ]
    return loaded


def operation(method: str, template: str) -> Json | None:
    """Return the operation at a path such as `/repos/{owner}/{repo}`, or None if GitHub has none there."""
    described: Json | None = document()["paths"].get(template, {}).get(method.lower())
    return described


def check_query(method: str, template: str, query: Mapping[str, str]) -> Json:
    """Return the query's values in the types that the operation declares.

    Raises a 422 `ApiError` for unknown names, values of the wrong type, and pages over 100.
    """
    declared = {p["name"]: p for p in _parameters(method, template) if p["in"] == "query"}
    values: Json = {}
    for name, text in query.items():
        if name not in declared:
            raise invalid(name, f"{name} is not a query parameter of {method} {template}")
        values[name] = _typed(name, text, declared[name]["schema"])
    if values.get("per_page", 0) > MAX_PER_PAGE:
        raise invalid("per_page", f"per_page is at most {MAX_PER_PAGE}")
    return values


def check_path(method: str, template: str, parts: Mapping[str, str]) -> Json:
    """Return the path's parts in their declared types; raises a 404 `ApiError` for an invalid number."""
    declared = {p["name"]: p for p in _parameters(method, template) if p["in"] == "path"}
    try:
        return {name: _typed(name, text, declared[name]["schema"]) for name, text in parts.items()}
    except ApiError as error:
        raise ApiError(404, "Not Found", errors=error.errors, mistake=True) from None


def check_body(method: str, template: str, body: Json | None) -> None:
    """Raise a 422 `ApiError` unless the body fits the operation's schema and uses only names it knows."""
    declared = (operation(method, template) or {}).get("requestBody")
    if declared is None or body is None:
        if body:
            raise invalid("body", f"{method} {template} takes no body")
        if declared is not None and declared.get("required"):
            raise invalid("body", f"{method} {template} needs a body")
        return
    schema = declared["content"]["application/json"]["schema"]
    _refuse(_errors(f"body {method} {template}", schema, body), body)
    known_names = set(_names(schema))
    for name in body:
        if known_names and name not in known_names:
            raise invalid(name, f"{name} is not a permitted key")


def response_problem(method: str, template: str, status: int, body: object) -> str | None:
    """Return the fault in one of our answers, or None if it conforms to the operation's schema."""
    declared = (operation(method, template) or {}).get("responses", {}).get(str(status))
    if declared is None:
        return f"GitHub never answers {status} here"
    declared = _resolved(declared)
    content = declared.get("content", {}).get("application/json")
    if content is None or "schema" not in content:
        return None
    return _first(_errors(f"response {method} {template} {status}", content["schema"], body))


def webhook_problem(event: str, action: str | None, payload: Json) -> str | None:
    """Return the fault in a webhook's body, or None if it conforms to GitHub's schema of the event."""
    operation_id = event.replace("_", "-") + (f"/{action.replace('_', '-')}" if action else "")
    declared = _webhooks().get(operation_id)
    if declared is None:
        return f"GitHub has no webhook {operation_id}"
    return _first(_errors(f"webhook {operation_id}", declared, payload))


@cache
def _webhooks() -> Json:
    hooks = (hook["post"] for hook in document()["x-webhooks"].values())
    return {hook["operationId"]: hook["requestBody"]["content"]["application/json"]["schema"] for hook in hooks}


@cache
def _parameters(method: str, template: str) -> list[Json]:
    return [_resolved(parameter) for parameter in (operation(method, template) or {}).get("parameters", [])]


def _resolved(node: Json) -> Json:
    """Follow a reference to another part of the document."""
    if "$ref" not in node:
        return node
    node_in_document: Any = document()
    for part in node["$ref"].removeprefix("#/").split("/"):
        node_in_document = node_in_document[part]
    return _resolved(node_in_document)


def _typed(name: str, text: str, schema: Json) -> object:
    """Return a path or query value as its schema's type; raises a 422 `ApiError` if it does not fit."""
    schema = _resolved(schema)
    value: object = text
    try:
        if schema.get("type") in {"integer", "number"}:
            value = int(text)
        elif schema.get("type") == "boolean":
            value = {"true": True, "false": False}[text]
        elif schema.get("type") == "array":
            value = text.split(",")
    except (ValueError, KeyError):
        raise invalid(name, f"{text!r} is not of type {schema['type']}") from None
    _refuse(_errors(f"parameter {name} {json.dumps(schema, sort_keys=True)}", schema, value), value)
    return value


_VALIDATORS: dict[str, Draft4Validator] = {}


def _errors(key: str, schema: Json, value: object) -> Iterator[ValidationError]:
    """Return the schema's complaints about a value, compiling the schema once per key."""
    if key not in _VALIDATORS:
        complete = _draft4(schema) | {"components": {"schemas": _closure(schema)}}
        _VALIDATORS[key] = Draft4Validator(complete, validate_formats=True)
    return iter(_VALIDATORS[key].iter_errors(value))


def _closure(schema: Json) -> Json:
    """Return every named schema that a schema refers to, directly or through others."""
    closure: Json = {}
    waiting = list(_references(schema))
    while waiting:
        name = waiting.pop()
        if name not in closure:
            named = document()["components"]["schemas"][name]
            closure[name] = _draft4(named)
            waiting.extend(_references(named))
    return closure


def _references(node: object) -> Iterator[str]:
    if isinstance(node, list):
        for item in node:
            yield from _references(item)
    elif isinstance(node, dict):
        reference = node.get("$ref")
        if isinstance(reference, str) and reference.startswith(_COMPONENT):
            yield reference.removeprefix(_COMPONENT)
        for value in node.values():
            yield from _references(value)


def _draft4(schema: Any) -> Any:
    """Return an OpenAPI 3.0 schema as JSON Schema draft 4, which has null as a type instead of `nullable`.

    https://spec.openapis.org/oas/v3.0.3#schema-object
    """
    if isinstance(schema, list):
        return [_draft4(item) for item in schema]
    if not isinstance(schema, dict):
        return schema
    plain: Json = {}
    for key, value in schema.items():
        if key == "properties":
            plain[key] = {name: _draft4(inner) for name, inner in value.items()}
        elif key not in _UNUSED:
            plain[key] = value if key == "enum" else _draft4(value)
    return {"anyOf": [{"type": "null"}, plain]} if schema.get("nullable") is True else plain


def _names(schema: Json) -> Iterator[str]:
    """Yield every property that a body may have, over all alternatives."""
    schema = _resolved(schema)
    yield from schema.get("properties", {})
    for kind in ("oneOf", "anyOf", "allOf"):
        for alternative in schema.get(kind, []):
            yield from _names(alternative)


def _refuse(errors: Iterator[ValidationError], value: object) -> None:
    error = next(errors, None)
    if error is not None:
        field = "/".join(str(part) for part in error.instance_path) or "body"
        raise invalid(field, f"{error.message[:300]} (given: {str(value)[:100]})")


def _first(errors: Iterator[ValidationError]) -> str | None:
    error = next(errors, None)
    return None if error is None else _explained(error)


def _explained(error: ValidationError) -> str:
    """Return the place and the text of an error; for alternatives, why each does not match."""
    location = "/".join(str(part) for part in error.instance_path)
    alternatives = error.kind.as_dict().get("context", [])
    if not alternatives:
        return f"at {location or 'the top'}: {error.message[-500:]}"
    reasons = [_explained(alternative[0]) for alternative in alternatives if alternative]
    return " | ".join(reason for reason in reasons if not reason.endswith('type "null"'))
