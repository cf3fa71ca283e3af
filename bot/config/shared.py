"""`.github/nightjar.yaml`: the keys of app.yaml that a repository's own maintainers may set.

Nothing is described twice: the model of that file is made out of those keys of `RepositoryConfig` that are `Shared`. A
section that is itself `Shared` may be switched on and off there; one that only has `Shared` keys has to be on in
app.yaml.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Annotated, Any, cast, get_args

from pydantic import BaseModel, Field, create_model
from pydantic.fields import FieldInfo

from bot.config.keys import Keys, key_types, model_of
from bot.config.model import RepositoryConfig
from bot.config.types import SHARED, Section

PATH = ".github/nightjar.yaml"
"""Where the file is in a repository."""

ORIGINS: dict[type[BaseModel], type[BaseModel]] = {}
"""What each mapping of the file is a part of."""


def _narrowed(model: type[BaseModel]) -> type[Keys]:
    """Return a mapping of app.yaml with its shared keys alone, none of which has to be there."""
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
            # What the description itself demands, such as a length, pydantic has added to the notes.
            more = [note for note in field.metadata if note not in notes]
            fields[name] = _definition(Annotated[(annotation, *more)] if more else annotation, field)
    made = create_model(model.__name__, __base__=Keys, __doc__=model.__doc__, **fields)
    ORIGINS[made] = model
    return made


def _definition(annotation: Any, field: FieldInfo, section: type[Keys] | None = None) -> tuple[Any, Any]:
    """Return type and description of a key that app.yaml has; one that is left out has no value of its own."""
    examples = [_example(example, section) for example in field.examples or ()]
    return annotation, Field(default_factory=lambda: None, description=field.description, examples=examples)


def _example(example: Any, section: type[Keys] | None) -> Any:
    """Return as much of a section's example as may stand in the file, or one of its keys."""
    if section is None or not isinstance(example, dict):
        return example
    narrowed = {key: value for key, value in example.items() if key in section.model_fields}
    return narrowed or {key: (field.examples or [None])[0] for key, field in list(section.model_fields.items())[:1]}


RepositoryFile = _narrowed(RepositoryConfig)
"""The model of the file. What it says are its `model_fields_set`; what they are called is what app.yaml calls them."""

SWITCHES = frozenset(name for name, kind in key_types(RepositoryConfig).items() if SHARED in get_args(kind))
"""The features that the file may switch on and off."""


def overlaid(config: RepositoryConfig, said: Keys) -> RepositoryConfig:
    """Return what holds for a repository: what its own file says wins, key by key.

    What app.yaml does not switch on stays off, unless the file may switch it.
    """
    return cast("RepositoryConfig", _with(config, {name: _over(config, said, name) for name in said.model_fields_set}))


def _over(config: RepositoryConfig, said: Keys, name: str) -> Any:
    given, written = getattr(config, name), getattr(said, name)
    if not isinstance(written, Keys):
        return written
    if given is None:
        if name not in SWITCHES:
            return None
        given = cast("type[BaseModel]", model_of(key_types(RepositoryConfig)[name]))()
    return _with(given, {key: getattr(written, key) for key in written.model_fields_set})


def _with(model: BaseModel, changes: Mapping[str, Any]) -> BaseModel:
    # Not `model_copy`: it would take along what the model has computed of its keys and kept.
    values = {name: getattr(model, name) for name in type(model).model_fields}
    return type(model).model_construct(**{**values, **changes})


def settings(config: RepositoryConfig) -> dict[str, str]:
    """Return the value of each key that the file can have, as JSON: `{"rerun.allow": '["author"]', "help": "true"}`."""
    found: dict[str, str] = {}
    for name, annotation in key_types(RepositoryFile).items():
        value, section = getattr(config, name), model_of(annotation)
        if section is None:
            found[name] = _as_json(value)
            continue
        if name in SWITCHES:
            found[name] = _as_json(value is not None)
        if value is not None:
            found |= {f"{name}.{key}": _as_json(getattr(value, key)) for key in section.model_fields}
    return found


def _as_json(value: Any) -> str:
    plain = value.model_dump(mode="json") if isinstance(value, BaseModel) else value
    return json.dumps(plain, ensure_ascii=False)
