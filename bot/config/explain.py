"""Error texts for values of a configuration file, derived from the description of each key."""

from __future__ import annotations

import json
import types
from collections.abc import Iterator, Mapping, Sequence
from typing import Annotated, Any, Literal, Union, get_args, get_origin

from nightjar_formats.items import first_of
from pydantic import BaseModel, TypeAdapter, ValidationError  # noqa: TID251  # an annotation may have no hash
from pydantic.fields import FieldInfo
from pydantic_core import ErrorDetails

from bot.config.assemble import repository_model
from bot.config.keys import key_types, model_of
from bot.config.model import Config
from bot.config.shared import ORIGINS
from bot.config.source import Scalar, shown
from bot.config.texts import (
    DID_YOU_MEAN,
    EMPTY_VALUE,
    FOR_EXAMPLE,
    INDENT_FEATURE,
    KEY_OF_REPOSITORY,
    KIND_EMPTY,
    KIND_LIST,
    KIND_MAPPING,
    KIND_NUMBER,
    KIND_TEXT,
    LIST_TOO_LONG,
    MISSING_KEY,
    NO_KEYS,
    ONLY_IN_APP_YAML,
    OR_EMPTY,
    QUOTE_IT,
    UNKNOWN_KEY,
    VALUE_TOO_LONG,
    WRITE_SWITCH,
    WRONG_TYPE,
    WRONG_VALUE,
)
from bot.config.types import LACKING, Says, Section
from bot.core.nearest import most_similar

LIKE_ENOUGH = 60
"""Percent of similarity from which an error proposes a known word for an unknown one."""

_SIMPLE = {str: "text", bool: "true or false", int: "a whole number"}

Location = Sequence[str | int]


def message(error: ErrorDetails, root: type[BaseModel]) -> str:
    """Return the text for one error that pydantic found in a `root`: a `Config`, or a repository's own file."""
    kind, location = error["type"], error["loc"]
    if is_misplaced_feature(error, root):
        return INDENT_FEATURE
    field, annotation = _described(location, root)
    context = error.get("ctx", {})
    match kind:
        case "extra_forbidden":
            return _unknown(location, root)
        case "missing":
            return MISSING_KEY.format(key=location[-1], words=words(annotation))
        case "value_error":
            return str(context["error"])
        case _ if kind == LACKING:
            return error["msg"]
        case "too_short" | "string_too_short":
            return EMPTY_VALUE.format(words=words(annotation))
        case "string_too_long":
            return VALUE_TOO_LONG.format(limit=context["max_length"])
        case "too_long":
            return LIST_TOO_LONG.format(limit=context["max_length"])
        case _ if kind.endswith("_type"):
            if switch := _switch_meant(error["input"], annotation):
                return WRITE_SWITCH.format(written=error["input"], switch=switch)
            remedy = _remedy(error["input"], field, annotation)
            return WRONG_TYPE.format(kind=_kind(error["input"]), words=words(annotation), remedy=remedy)
        case _:
            return WRONG_VALUE.format(words=words(annotation), guess=_guess(str(error["input"]), _choices(annotation)))


def is_misplaced_feature(error: ErrorDetails, root: type[BaseModel]) -> bool:
    """Return whether an error is about a key of a repository that stands where a repository's name should be."""
    location = error["loc"]
    return (
        issubclass(root, Config)
        and len(location) == 3
        and location[::2] == ("repositories", "[key]")
        and location[1] in repository_model(root).model_fields
    )


def words(annotation: Any) -> str:
    """Describe what a type allows, as words after "must be"."""
    origin, arguments = get_origin(annotation), get_args(annotation)
    if origin is Annotated:
        descriptions = [note.words for note in arguments[1:] if isinstance(note, Says | Section)]
        return descriptions[0] if descriptions else words(arguments[0])
    if origin is Literal:
        return "one of " + ", ".join(map(str, arguments))
    if origin is tuple:
        return f"a list, each item {words(arguments[0])}"
    if origin is Mapping:
        return f"a mapping, each key {words(arguments[0])}"
    if origin in (Union, types.UnionType):
        return words(first_of(option for option in arguments if option is not type(None)))
    return _SIMPLE.get(annotation, "a mapping of keys")


def _described(location: Location, root: type[BaseModel]) -> tuple[FieldInfo | None, Any]:
    """Return the field and the type of a location. The field is None for an item of a list or a mapping."""
    return list(_path_to(location, root))[-1]


def _path_to(location: Location, root: type[BaseModel]) -> Iterator[tuple[FieldInfo | None, Any]]:
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
            # pydantic adds this last step if the error is about a mapping's key and not about the value below it.
            of_key = location[position + 1 :] == ("[key]",)
            field, annotation = None, get_args(inner)[0 if of_key else 1]
        elif get_origin(inner) is tuple:
            field, annotation = None, get_args(inner)[0]
        yield field, annotation


def _unwrapped(annotation: Any) -> Any:
    while get_origin(annotation) is Annotated:
        annotation = get_args(annotation)[0]
    if get_origin(annotation) in (Union, types.UnionType):
        return _unwrapped(first_of(option for option in get_args(annotation) if option is not type(None)))
    return annotation


def _unknown(location: Location, root: type[BaseModel]) -> str:
    key = str(location[-1])
    model = _unwrapped(_described(location[:-1], root)[1])
    origin = ORIGINS.get(model, model)
    if origin is not model and (key in origin.model_fields or (model is root and key in Config.model_fields)):
        return ONLY_IN_APP_YAML
    if issubclass(model, Config) and key in repository_model(model).model_fields:
        return KEY_OF_REPOSITORY
    known = list(model.model_fields)
    if not known:
        return NO_KEYS.format(feature=location[-2])
    return UNKNOWN_KEY.format(guess=_guess(key, known), known=", ".join(known))


def _remedy(written: object, field: FieldInfo | None, annotation: Any) -> str:
    if _unwrapped(annotation) is str:
        return QUOTE_IT if _would_do_quoted(written, annotation) else ""
    if field is None and _may_be_empty(annotation):
        return OR_EMPTY
    if field is None or not field.examples:
        return ""
    return FOR_EXAMPLE.format(example=json.dumps(field.examples[0]))


def _may_be_empty(annotation: Any) -> bool:
    model = model_of(annotation)
    is_section = any(isinstance(note, Section) for note in get_args(annotation)[1:])
    return is_section and model is not None and not any(field.is_required() for field in model.model_fields.values())


def _switch_meant(written: object, annotation: Any) -> str:
    """Return "true" or "false" where somebody wrote a switch in another way; YAML 1.2 reads `on` and `yes` as text."""
    if not isinstance(written, str) or "true" not in words(annotation):
        return ""
    return {"on": "true", "yes": "true", "off": "false", "no": "false"}.get(written.lower(), "")


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
    similar = most_similar(shown(written).lower(), choices, least=LIKE_ENOUGH)
    return DID_YOU_MEAN.format(guess=choices[similar[0]]) if similar else ""


def _kind(written: Scalar | tuple[Any, ...] | dict[str, Any]) -> str:
    match written:
        case None:
            return KIND_EMPTY
        case bool():
            return str(written).lower()
        case int() | float():
            return KIND_NUMBER
        case str():
            return KIND_TEXT
        case tuple():
            return KIND_LIST
        case _:
            return KIND_MAPPING
