"""`.github/nightjar.yaml`: the keys of app.yaml that a repository's own maintainers may set.

The model of that file is generated from the keys that are `Shared` in the assembled `RepositoryConfig`, so that no key
is described twice. A `Shared` section may be switched on and off there; a section with only `Shared` keys must be on in
app.yaml.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import cache
from typing import Annotated, Any, cast, get_args

from pydantic import BaseModel, Field, create_model
from pydantic.fields import FieldInfo
from pydantic_core import to_jsonable_python

from bot.config.keys import Keys, key_types, model_of
from bot.config.model import RepositoryConfig
from bot.config.own_file import REPOSITORY_FILE
from bot.config.types import JOINED, SHARED, Section

PATH = ".github/nightjar.yaml"
"""Where the file is in a repository."""

APP_YAML = "`app.yaml`"

ORIGINS: dict[type[BaseModel], type[BaseModel]] = {}
"""The mapping of app.yaml from which each mapping of the file was generated."""


def _narrowed(model: type[BaseModel]) -> type[Keys]:
    """Return a mapping of app.yaml with only its shared keys, all optional."""
    fields: dict[str, Any] = {}
    for name, annotation in key_types(model).items():
        field, notes = model.model_fields[name], get_args(annotation)[1:]
        if any(isinstance(note, Section) for note in notes):
            section = _narrowed(cast("type[BaseModel]", model_of(annotation)))
            if SHARED in notes:
                fields[name] = _definition(Annotated[section | None, Section(switch=True)], field, section)
            elif section.model_fields:
                fields[name] = _definition(Annotated[section, Section(switch=False)], field, section)
        elif SHARED in notes:
            # pydantic adds constraints of the field, such as a length, to the metadata.
            constraints = [note for note in field.metadata if note not in notes]
            fields[name] = _definition(Annotated[(annotation, *constraints)] if constraints else annotation, field)
    made = create_model(model.__name__, __base__=Keys, __doc__=model.__doc__, **fields)
    ORIGINS[made] = model
    return made


def _definition(annotation: Any, field: FieldInfo, section: type[Keys] | None = None) -> tuple[Any, Any]:
    """Return type and field of a key of app.yaml, for the file; a key that is left out is None."""
    examples = [_example(example, section) for example in field.examples or ()]
    # With a factory, the JSON schema names no default: for a key that is left out, app.yaml decides.
    return annotation, Field(default_factory=lambda: None, description=field.description, examples=examples)


def _example(example: Any, section: type[Keys] | None) -> Any:
    """Return the part of a section's example that the file may set, or one of its keys."""
    if section is None or not isinstance(example, dict):
        return example
    narrowed = {key: value for key, value in example.items() if key in section.model_fields}
    return narrowed or {key: (field.examples or [None])[0] for key, field in list(section.model_fields.items())[:1]}


@cache
def file_model(model: type[RepositoryConfig]) -> type[Keys]:
    """Return the model of the file for an assembled model of a repository's keys in app.yaml.

    Its `model_fields_set` are the keys in the file; they have the same names as in app.yaml.
    """
    return _narrowed(model)


@cache
def switches(model: type[RepositoryConfig]) -> frozenset[str]:
    """Return the keys of the features that the file may switch on and off."""
    notes_of = {name: get_args(annotation)[1:] for name, annotation in key_types(model).items()}
    return frozenset(
        name for name, notes in notes_of.items() if SHARED in notes and any(isinstance(note, Section) for note in notes)
    )


def files_for(config: RepositoryConfig, *keys: str) -> str:
    """Return the files that accept a key of a repository, as Markdown for people.

    `keys` lead to the key; a single one is a feature that is off and should be switched on.
    """
    model = type(config)
    accepted = keys[0] in switches(model) if len(keys) == 1 else _has(file_model(model), keys)
    return f"`{PATH}` or {APP_YAML}" if accepted and config.of(REPOSITORY_FILE) else APP_YAML


def _has(model: type[BaseModel], keys: tuple[str, ...]) -> bool:
    annotation = key_types(model).get(keys[0])
    section = model_of(annotation) if annotation is not None else None
    return annotation is not None and (len(keys) == 1 or (section is not None and _has(section, keys[1:])))


def overlaid(config: RepositoryConfig, file_keys: Keys) -> RepositoryConfig:
    """Return the settings of a repository: its own file over app.yaml, key by key; lists of joined keys are added.

    A feature that is off in app.yaml stays off, unless the file may enable it.
    """
    return cast(
        "RepositoryConfig", _with(config, {name: _over(config, file_keys, name) for name in file_keys.model_fields_set})
    )


def _over(config: RepositoryConfig, file_keys: Keys, name: str) -> Any:
    section, written = getattr(config, name), getattr(file_keys, name)
    if JOINED in get_args(key_types(type(config))[name]):
        return (*section, *written)
    if not isinstance(written, Keys):
        return written
    if section is None:
        model = type(config)
        if name not in switches(model):
            return None
        section = cast("type[BaseModel]", model_of(key_types(model)[name]))()
    return _with(section, {key: getattr(written, key) for key in written.model_fields_set})


def _with(model: BaseModel, changes: Mapping[str, Any]) -> BaseModel:
    # Not `model_copy`: it copies the values of cached properties, which depend on the keys.
    values = {name: getattr(model, name) for name in type(model).model_fields}
    return type(model).model_construct(**{**values, **changes})


def settings(config: RepositoryConfig) -> dict[str, str]:
    """Return the value of each key that the file can have, as JSON: `{"rerun.allow": '["author"]', "help": "true"}`."""
    values: dict[str, str] = {}
    model = type(config)
    for name, annotation in key_types(file_model(model)).items():
        value, section = getattr(config, name), model_of(annotation)
        if section is None or isinstance(value, tuple):  # a list of mappings is one value
            values[name] = _as_json(value)
            continue
        if name in switches(model):
            values[name] = _as_json(value is not None)
        if value is not None:
            values |= {f"{name}.{key}": _as_json(getattr(value, key)) for key in section.model_fields}
    return values


def _as_json(value: Any) -> str:
    return json.dumps(to_jsonable_python(value), ensure_ascii=False)
