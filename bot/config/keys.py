"""The base of every mapping of app.yaml, and access to its keys and their types."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any, get_args, get_origin, get_type_hints

from pydantic import BaseModel, ConfigDict


class Keys(BaseModel):
    """A mapping of app.yaml. Unknown keys are errors, values are not converted, and instances are immutable."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True, hide_input_in_errors=True)


def model_of(annotation: Any) -> type[BaseModel] | None:
    """Return the model in a type: itself, an item of a list, or a value of a mapping. None if there is none."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return annotation
    arguments = get_args(annotation)
    if get_origin(annotation) is Mapping:
        arguments = arguments[1:]
    return next((model for model in map(model_of, arguments) if model), None)


@cache
def key_types(model: type[BaseModel]) -> dict[str, Any]:
    """Return the types of a model's keys with their annotations, which pydantic splits off in `model_fields`."""
    types = get_type_hints(model, include_extras=True)
    return {name: types[name] for name in model.model_fields}
