"""Say what is wrong with a value, and what is allowed, from the one description of every key."""

from __future__ import annotations

import json
import types
from collections.abc import Iterator, Mapping, Sequence
from typing import Annotated, Any, Literal, Union, get_args, get_origin

from pydantic import BaseModel, TypeAdapter, ValidationError
from pydantic.fields import FieldInfo
from pydantic_core import ErrorDetails
from rapidfuzz import fuzz, process

from bot.config.keys import key_types
from bot.config.model import Config, RepositoryConfig
from bot.config.shared import ORIGINS
from bot.config.source import Scalar, shown
from bot.config.types import LACKING, Says, Section

UNKNOWN = "unknown key{guess}; allowed: {known}"
NO_KEYS_HERE = "unknown key; there are none to be set here, write true or false"
ELSEWHERE = "unknown key here; write it below defaults, or below a repository"
ONLY_APP_YAML = "can only be set in app.yaml, by who runs the bot; remove it here"
MISSING = "the key {key} is missing; it must be {words}"
EMPTY = "is empty; it must be {words}"
TOO_LONG = "is longer than {limit} characters, the most that are allowed"
TOO_MANY = "has more than {limit} items, the most that are allowed"
WRONG_TYPE = "is {kind}; it must be {words}{remedy}"
WRONG = "must be {words}{guess}"
QUOTE_IT = "; put it in quotes"
LIKE_ENOUGH = 60
"""Per cent of a word that must be the same for another to be proposed for it."""

_SIMPLE = {str: "text", bool: "true or false", int: "a whole number"}

Location = Sequence[str | int]


def message(error: ErrorDetails, root: type[BaseModel]) -> str:
    """Return the text for one error that pydantic found in a `root`: a `Config`, or a repository's own file."""
    kind, location = error["type"], error["loc"]
    field, annotation = _described(location, root)
    context = error.get("ctx", {})
    match kind:
        case "extra_forbidden":
            return _unknown(location, root)
        case "missing":
            return MISSING.format(key=location[-1], words=words(annotation))
        case "value_error":
            return str(context["error"])
        case _ if kind == LACKING:
            return error["msg"]
        case "too_short" | "string_too_short":
            return EMPTY.format(words=words(annotation))
        case "string_too_long":
            return TOO_LONG.format(limit=context["max_length"])
        case "too_long":
            return TOO_MANY.format(limit=context["max_length"])
        case _ if kind.endswith("_type"):
            remedy = _remedy(error["input"], field, annotation)
            return WRONG_TYPE.format(kind=_kind(error["input"]), words=words(annotation), remedy=remedy)
        case _:
            return WRONG.format(words=words(annotation), guess=_guess(str(error["input"]), _choices(annotation)))


def words(annotation: Any) -> str:
    """Say what a type allows, to follow "must be"."""
    origin, arguments = get_origin(annotation), get_args(annotation)
    if origin is Annotated:
        said = [note.words for note in arguments[1:] if isinstance(note, Says | Section)]
        return said[0] if said else words(arguments[0])
    if origin is Literal:
        return "one of " + ", ".join(map(str, arguments))
    if origin is tuple:
        return f"a list, each item {words(arguments[0])}"
    if origin is Mapping:
        return f"a mapping, each key {words(arguments[0])}"
    if origin in (Union, types.UnionType):
        return words(next(option for option in arguments if option is not type(None)))
    return _SIMPLE.get(annotation, "a mapping of keys")


def _described(location: Location, root: type[BaseModel]) -> tuple[FieldInfo | None, Any]:
    """Return the key that a place is the value of (None: it is a part of that), and the type of what belongs there."""
    return list(_way(location, root))[-1]


def _way(location: Location, root: type[BaseModel]) -> Iterator[tuple[FieldInfo | None, Any]]:
    field: FieldInfo | None = None
    annotation: Any = root
    yield field, annotation
    for position, step in enumerate(location):
        inner = _unwrapped(annotation)
        if isinstance(inner, type) and issubclass(inner, BaseModel):
            if step not in inner.model_fields:
                return
            field, annotation = inner.model_fields[str(step)], key_types(inner)[str(step)]
        elif get_origin(inner) is Mapping:
            of_key = location[position + 1 :] == ("[key]",)
            field, annotation = None, get_args(inner)[0 if of_key else 1]
        elif get_origin(inner) is tuple:
            field, annotation = None, get_args(inner)[0]
        yield field, annotation


def _unwrapped(annotation: Any) -> Any:
    while get_origin(annotation) is Annotated:
        annotation = get_args(annotation)[0]
    if get_origin(annotation) in (Union, types.UnionType):
        return _unwrapped(next(option for option in get_args(annotation) if option is not type(None)))
    return annotation


def _unknown(location: Location, root: type[BaseModel]) -> str:
    key = str(location[-1])
    model = _unwrapped(_described(location[:-1], root)[1])
    origin = ORIGINS.get(model, model)
    if origin is not model and (key in origin.model_fields or (model is root and key in Config.model_fields)):
        return ONLY_APP_YAML
    if model is Config and key in RepositoryConfig.model_fields:
        return ELSEWHERE
    known = list(model.model_fields)
    if not known:
        return NO_KEYS_HERE
    return UNKNOWN.format(guess=_guess(key, known), known=", ".join(known))


def _remedy(written: object, field: FieldInfo | None, annotation: Any) -> str:
    if _unwrapped(annotation) is str:
        return QUOTE_IT if _would_do_quoted(written, annotation) else ""
    if field is None or not field.examples:
        return ""
    return f"; for example {json.dumps(field.examples[0])}"


def _would_do_quoted(written: object, annotation: Any) -> bool:
    if isinstance(written, tuple | dict | None):
        return False
    try:
        TypeAdapter(annotation).validate_python(str(written))
    except ValidationError:
        return False
    return True


def _choices(annotation: Any) -> list[str]:
    inner = _unwrapped(annotation)
    return list(get_args(inner)) if get_origin(inner) is Literal else []


def _guess(written: str, choices: Sequence[str]) -> str:
    close = process.extractOne(shown(written).lower(), choices, scorer=fuzz.ratio, score_cutoff=LIKE_ENOUGH)
    return f" (did you mean {close[0]}?)" if close else ""


def _kind(written: Scalar | tuple[Any, ...] | dict[str, Any]) -> str:
    match written:
        case None:
            return "empty"
        case bool():
            return str(written).lower()
        case int() | float():
            return "a number"
        case str():
            return "text"
        case tuple():
            return "a list"
        case _:
            return "a mapping"
