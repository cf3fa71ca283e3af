"""The description of the HTTP surface, made from the same table that its routes are made from (OpenAPI 3.1)."""

from __future__ import annotations

import functools
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass

from aiohttp import web
from pydantic import BaseModel, ConfigDict, Field
from pydantic.json_schema import models_json_schema

from bot.core.patterns import Pattern
from bot.web.problems import PROBLEM_TYPE

SCHEMAS = "#/components/schemas/"
TITLE = "Nightjar"
_WORD = Pattern(r"\w+")
TOKEN = "token"  # noqa: S105 (a name)
TOKEN_SCHEME = {
    "type": "http",
    "scheme": "bearer",
    "description": "A token of the repository, created with `nightjar token create`. Public repositories need none.",
}

LAB_TOKEN = "labToken"  # noqa: S105 (a name)
LAB_TOKEN_SCHEME = {
    "type": "http",
    "scheme": "bearer",
    "description": (
        "A token of the lab, created with `nightjar lab token create`, or an OIDC token of a workflow that app.yaml "
        "names."
    ),
}

Schema = Mapping[str, object]


class ProblemDetails(BaseModel):
    """What went wrong (RFC 9457)."""

    model_config = ConfigDict(extra="forbid")

    type: str
    title: str
    status: int
    detail: str = Field(description="What is wrong and, if known, how to fix it.")


@dataclass(frozen=True, slots=True)
class ResponseSchema:
    """One answer of an operation: a JSON `model`, or text of a media type. An empty media type means no content."""

    description: str
    model: type[BaseModel] | None = None
    media_type: str = "application/json"


@dataclass(frozen=True, slots=True)
class Parameter:
    """A part of the path, of the query, or a header."""

    name: str
    description: str
    schema: Schema
    place: str = "path"
    required: bool = True


@dataclass(frozen=True, slots=True)
class Operation:
    """A route: its request, its answers, and the function that answers."""

    method: str
    path: str
    summary: str
    handler: Callable[[web.Request], Awaitable[web.StreamResponse]]
    answers: Mapping[int, ResponseSchema]
    parameters: Sequence[Parameter] = ()
    query: type[BaseModel] | None = None
    """A model whose fields are further parameters of the query."""
    request_body: type[BaseModel] | Schema | None = None
    public: bool = False
    """Whether a route below /api/ belongs to no repository, and so is open to everybody."""
    takes_token: bool = False
    """Whether a token is checked; `bot.web.access` sets it."""
    for_labs: bool = False
    """Whether a lab must authenticate; the route itself checks that."""


def problem(description: str) -> ResponseSchema:
    """Return an answer that is a problem document."""
    return ResponseSchema(description, ProblemDetails, PROBLEM_TYPE)


def document(operations: Sequence[Operation], version: str) -> dict[str, object]:
    """Return the OpenAPI document of the operations (https://spec.openapis.org/oas/v3.1.1)."""
    models = frozenset(
        answer.model for operation in operations for answer in operation.answers.values() if answer.model
    )
    paths: dict[str, dict[str, object]] = {}
    for operation in operations:
        paths.setdefault(operation.path, {})[operation.method.lower()] = _operation(operation)
    return {
        "openapi": "3.1.0",
        "info": {"title": TITLE, "version": version},
        "paths": paths,
        "components": {
            "schemas": _schemas(models),
            "securitySchemes": {TOKEN: TOKEN_SCHEME, LAB_TOKEN: LAB_TOKEN_SCHEME},
        },
    }


@functools.cache  # slow to make, and the models never change
def _schemas(models: frozenset[type[BaseModel]]) -> dict[str, object]:
    ordered = sorted(models, key=lambda model: model.__name__)
    _, schemas = models_json_schema([(model, "serialization") for model in ordered], ref_template=SCHEMAS + "{model}")
    definitions: dict[str, object] = schemas.get("$defs", {})
    return definitions


def _operation(operation: Operation) -> dict[str, object]:
    responses = {str(status): _answer(answer) for status, answer in sorted(operation.answers.items())}
    described: dict[str, object] = {
        "operationId": "_".join(_WORD.findall(f"{operation.method.lower()} {operation.path}")),
        "summary": operation.summary,
        "responses": {**responses, "default": _answer(problem("Any other error"))},
    }
    if parameters := [*operation.parameters, *(_in_query(operation.query) if operation.query else ())]:
        described["parameters"] = [
            {"name": p.name, "in": p.place, "required": p.required, "description": p.description, "schema": p.schema}
            for p in parameters
        ]
    if operation.takes_token:
        # The empty requirement makes the token optional: https://spec.openapis.org/oas/v3.1.1#operation-object
        described["security"] = [{}, {TOKEN: []}]
    if operation.for_labs:
        described["security"] = [{LAB_TOKEN: []}]
    if (body := operation.request_body) is not None:
        schema = body if isinstance(body, Mapping) else body.model_json_schema()
        media_type = "application/octet-stream" if schema.get("format") == "binary" else "application/json"
        content = {media_type: {"schema": schema}}
        described["requestBody"] = {"required": True, "content": content}
    return described


def _in_query(query: type[BaseModel]) -> list[Parameter]:
    """Return the parameters that a model of filters has."""
    model = query.model_json_schema()
    properties: Mapping[str, dict[str, object]] = model.get("properties", {})
    parameters = []
    for name, schema in properties.items():
        bare_schema = {key: value for key, value in schema.items() if key not in ("description", "title")}
        required = name in model.get("required", [])
        parameters.append(Parameter(name, str(schema.get("description", "")), bare_schema, "query", required))
    return parameters


def _answer(answer: ResponseSchema) -> dict[str, object]:
    if not answer.media_type:
        return {"description": answer.description}
    schema: Schema = {"$ref": SCHEMAS + answer.model.__name__} if answer.model else {"type": "string"}
    return {"description": answer.description, "content": {answer.media_type: {"schema": schema}}}
