"""`GET /api`: the API for people, made from the OpenAPI document that programs read."""

from __future__ import annotations

import functools
import shlex
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from itertools import chain
from typing import Any
from urllib.parse import urlencode

from aiohttp import web
from nightjar_formats.items import first_of

from bot.core.patterns import Pattern
from bot.web.openapi import LAB_TOKEN, SCHEMAS, Operation, ResponseSchema
from bot.web.page_cache import RenderedPage, answer_key
from bot.web.pages import HTML, PAGES
from bot.web.texts import API_GROUPS

PATH = "/api"
EXAMPLES = {
    "owner": "octocat",
    "repo": "compiler",
    "lab": "example-lab",
    "target": "hexagon-v73",
    "sha": "6dcb09b5b57875f334f61aebed695e2e4193db5e",
    "run_id": "run-1",
    "n": "42",
    "id": "tests/test_math.py::test_softmax",
}
"""What examples have for a parameter; others have its name in capitals."""
VALUE = "value"
_PART = Pattern(r"\{(\w+)\}")

Json = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class DocumentedMember:
    """A parameter, or a member of a JSON object. `form` says what it may be; it is required, or always there."""

    name: str
    form: str
    description: str
    place: str = ""
    required: bool = True


@dataclass(frozen=True, slots=True)
class DocumentedRoute:
    """A route. `token` is the security scheme that it takes, `example` a shell command, `body` what it reads.

    `answers` have a status, its meaning, and the name of the schema of a JSON object, empty for other answers.
    """

    method: str
    path: str
    anchor: str
    summary: str
    parameters: list[DocumentedMember]
    token: str
    example: str
    answers: list[tuple[str, str, str]]
    body: list[DocumentedMember]


@dataclass(frozen=True, slots=True)
class ApiReference:
    """All routes by the heading of their group, and the members of each JSON object by its name."""

    groups: Mapping[str, list[DocumentedRoute]]
    schemas: Mapping[str, list[DocumentedMember]]


def api_reference(document: Callable[[], Json]) -> Operation:
    """Return the route of the page about what `document` describes, which is asked for at the first request."""

    @functools.cache
    def reference() -> ApiReference:
        return reference_of(document())

    async def answer(request: web.Request) -> web.StreamResponse:
        pages = request.app[PAGES]
        pages.admit(request)

        async def make() -> RenderedPage:
            return await pages.render(request, "api.html", {"reference": await pages.run(reference)})

        key = answer_key(PATH, HTML, None) if await pages.is_anonymous(request) else None
        return await pages.cached(request, key, make, HTML)

    return Operation("GET", PATH, "The API for people", answer, {200: ResponseSchema("The page", media_type=HTML)})


def reference_of(document: Json) -> ApiReference:
    """Return what the page says about an OpenAPI document: routes that answer pages for people are left out."""
    groups: dict[str, list[DocumentedRoute]] = {heading: [] for heading in API_GROUPS.values()}
    for path, item in document["paths"].items():
        heading = first_of(heading for beginning, heading in API_GROUPS.items() if path.startswith(beginning))
        groups[heading] += [
            _route(method.upper(), path, operation) for method, operation in item.items() if not _is_page(operation)
        ]
    schemas = document["components"]["schemas"]
    return ApiReference(
        {heading: routes for heading, routes in groups.items() if routes},
        {name: list(_members(schema)) for name, schema in sorted(schemas.items())},
    )


def _is_page(operation: Json) -> bool:
    kinds = {
        kind for status, answer in operation["responses"].items() if status < "4" for kind in answer.get("content", ())
    }
    return not kinds or not kinds.isdisjoint((HTML, "text/css"))


def _route(method: str, path: str, operation: Json) -> DocumentedRoute:
    parameters = [
        DocumentedMember(part["name"], form_of(part["schema"]), part["description"], part["in"], part["required"])
        for part in operation.get("parameters", ())
    ]
    token = next(iter(chain.from_iterable(operation.get("security", ()))), "")
    schema: Json = next(
        (content["schema"] for content in operation.get("requestBody", {}).get("content", {}).values()), {}
    )
    return DocumentedRoute(
        method,
        path,
        operation["operationId"],
        operation["summary"],
        parameters,
        token,
        _example(method, path, parameters, token, has_body="requestBody" in operation),
        [(status, answer["description"], _schema_name(answer)) for status, answer in operation["responses"].items()],
        list(_members(schema)),
    )


def _schema_name(answer: Json) -> str:
    schema = answer.get("content", {}).get("application/json", {}).get("schema", {})
    return str(schema.get("$ref", "")).removeprefix(SCHEMAS)


def _members(schema: Json) -> Iterator[DocumentedMember]:
    """Yield the members of an object, or the values of an enumeration."""
    for value in schema.get("enum", ()):
        yield DocumentedMember(str(value), VALUE, "")
    required = schema.get("required", ())
    for name, member in schema.get("properties", {}).items():
        yield DocumentedMember(name, form_of(member), member.get("description", ""), required=name in required)


def form_of(schema: Json) -> str:
    """Say in a few words what a JSON schema allows: `integer or null`, `list of LabRun`, `csv or json`."""
    if "$ref" in schema:
        return str(schema["$ref"]).rpartition("/")[2]
    if "enum" in schema:
        return " or ".join(map(str, schema["enum"]))
    if "const" in schema:
        return str(schema["const"])
    if alternatives := schema.get("anyOf") or schema.get("oneOf"):
        return " or ".join(dict.fromkeys(form_of(alternative) for alternative in alternatives))
    kind = schema.get("type", "anything")
    if kind == "array":
        return f"list of {form_of(schema.get('items', {}))}"
    return str(schema.get("format", kind)) if kind == "string" else str(kind)


def _example(method: str, path: str, parameters: list[DocumentedMember], token: str, *, has_body: bool) -> str:
    """Return a shell command that calls a route; `$NIGHTJAR_URL` has the address of the bot."""
    filled = _PART.sub(lambda part: EXAMPLES.get(part[1], part[1].upper()), path)
    query = {
        parameter.name: EXAMPLES.get(parameter.name, parameter.name.upper())
        for parameter in parameters
        if parameter.required and parameter.place == "query"
    }
    words = ["curl"]
    if method != "GET" and not (method == "POST" and has_body):
        words.append(f"-X {method}")
    if token == LAB_TOKEN:
        words.append('-H "Authorization: Bearer $LAB_TOKEN"')
    words += [
        f"-H {shlex.quote(f'{parameter.name}: …')}"
        for parameter in parameters
        if parameter.place == "header" and parameter.required
    ]
    if has_body:
        words.append("--data-binary @FILE")
    question = "?" + urlencode(query, safe="/:") if query else ""
    return " ".join([*words, f'"$NIGHTJAR_URL{filled}{question}"'])
