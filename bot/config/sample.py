"""The sample app.yaml, made from the descriptions, defaults and examples of all keys; `make docs` writes it."""

from __future__ import annotations

import json
import textwrap
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from pydantic import BaseModel, ValidationError
from pydantic.fields import FieldInfo

from bot.config.assemble import repository_model
from bot.config.keys import key_types, model_of
from bot.config.model import Config, RepositoryConfig
from bot.config.repository_keys import ConfigKey
from bot.config.texts import SAMPLE_ANY_CASE, SAMPLE_EMPTY_ENTRY, SAMPLE_HEAD, SAMPLE_OFF
from bot.core.patterns import Pattern

BARE_REPOSITORY, REPOSITORY = "octocat/hello-world", "octocat/compiler"
WIDTH = 120
INDENT = "  "

_UNQUOTED = Pattern(r"(?:https://)?[A-Za-z][A-Za-z0-9_ ./-]*|[0-9]+(?:[a-z]|/day)")
_READ_AS_OTHERS = frozenset({"true", "false", "null", "yes", "no", "on", "off"})


def sample_text(model: type[Config]) -> str:
    """Return the sample; `model` is that of app.yaml with all features' keys.

    Above each key is the first sentence of its description, below it its default, or an example if it has none. A key
    that contradicts an earlier one, such as the second of two sources, is commented out.
    """
    lines = [SAMPLE_HEAD]
    for name, annotation in key_types(model).items():
        field = model.model_fields[name]
        if name == "repositories":
            lines += [*_comment(field, ""), "repositories:", *_repositories(repository_model(model))]
        elif name == "defaults":
            repository = repository_model(model)
            lines += [*_comment(field, ""), "defaults:"]
            (example,) = field.examples or [{}]
            for key in example:
                lines += [*_key(key, None, repository.model_fields[key], key_types(repository)[key], INDENT), ""]
        else:
            lines += [*_key(name, _value(field), field, annotation, ""), ""]
    return "\n".join(lines).rstrip() + "\n"


def feature_sample(repository: type[RepositoryConfig], name: str) -> str:
    """Return a file with one feature of a repository and all its keys."""
    field, annotation = repository.model_fields[name], key_types(repository)[name]
    lines = _key(name, _value(field), field, annotation, INDENT * 2)
    return "\n".join(["repositories:", f"{INDENT}{REPOSITORY}:", *lines])


def _repositories(repository: type[RepositoryConfig]) -> Iterator[str]:
    """Yield an empty entry and one with every key: first those of the features that are on by default."""
    on = [key.name for key in repository.KEYS if isinstance(key, ConfigKey) and key.on_by_default]
    features = f"{', '.join(on[:-1])} and {on[-1]}" if on[1:] else "".join(on)
    yield from (f"{INDENT}# {SAMPLE_EMPTY_ENTRY.format(features=features)}", f"{INDENT}{BARE_REPOSITORY}:", "")
    yield from (f"{INDENT}# {SAMPLE_ANY_CASE}", f"{INDENT}{REPOSITORY}:")
    names = [*on, *(name for name in key_types(repository) if name not in on)]
    for number, name in enumerate(names):
        if number == len(on):
            yield from (f"{INDENT * 2}# {SAMPLE_OFF}", "")
        field = repository.model_fields[name]
        yield from _key(name, _value(field), field, key_types(repository)[name], INDENT * 2)
        yield ""


def _key(name: str, value: Any, field: FieldInfo, annotation: Any, indent: str) -> Iterator[str]:
    """Yield the comment of a key, the key, and what is below it."""
    yield from _comment(field, indent)
    model = model_of(annotation)
    if model is None:
        yield f"{indent}{name}: {_flow(value)}"
    elif not key_types(model):
        yield f"{indent}{name}: true"
    elif isinstance(value, list):
        yield f"{indent}{name}:"
        yield from _item(_keys_below(model, _mapping(value[0]), indent + INDENT * 2), indent + INDENT)
    elif isinstance(value, Mapping) and not value.keys() <= key_types(model).keys():
        # The names that a maintainer chooses, such as those of labs, each with its own keys.
        yield f"{indent}{name}:"
        for chosen, below in value.items():
            if isinstance(below, Mapping):
                yield f"{indent}{INDENT}{chosen}:"
                yield from _keys_below(model, below, indent + INDENT * 2, uses_example=True)
            else:
                yield f"{indent}{INDENT}{chosen}: {_flow(below)}"
    else:
        yield f"{indent}{name}:"
        yield from _keys_below(model, _mapping(value), indent + INDENT)


def _keys_below(
    model: type[BaseModel], example: Mapping[str, Any], indent: str, *, uses_example: bool = False
) -> Iterator[str]:
    """Yield all keys of a mapping; `example` has valid ones, which no other may contradict.

    With `uses_example`, its texts and numbers are the values.
    """
    valid = dict(example)
    for name, annotation in key_types(model).items():
        field = model.model_fields[name]
        key = field.alias or name
        value = example[key] if uses_example and isinstance(example.get(key), str | int) else _value(field)
        lines = list(_key(key, value, field, annotation, indent))
        if _is_valid(model, changed := {key: value} | valid):
            valid = changed
        else:
            lines = list(map(_commented_out, lines))
        yield from lines


def _commented_out(line: str) -> str:
    text = line.lstrip()
    return line if text.startswith("#") else f"{line.removesuffix(text)}# {text}"


def _is_valid(model: type[BaseModel], keys: Mapping[str, Any]) -> bool:
    try:
        model.model_validate_json(json.dumps(keys))
    except ValidationError:
        return False
    return True


def _value(field: FieldInfo) -> Any:
    """Return the default of a key, or its example: a mapping if one of them is, which shows more."""
    default = None if field.is_required() else field.get_default()
    if default is not None and default != () and not isinstance(default, BaseModel | Mapping):
        return list(default) if isinstance(default, tuple) else default
    examples = field.examples or [None]
    return next((example for example in examples if isinstance(example, Mapping)), examples[0])


def _mapping(example: Any) -> Mapping[str, Any]:
    return example if isinstance(example, Mapping) else {}


def _item(lines: Iterable[str], indent: str) -> Iterator[str]:
    """Yield the keys of the first item of a list, whose dash takes the place of two spaces before its first key."""
    dashed = False
    for line in lines:
        is_key = not line.lstrip().startswith("#")
        if dashed:
            yield line
        else:
            yield f"{indent}- {line.lstrip()}" if is_key else f"{indent}{line.lstrip()}"
            dashed = is_key


def _comment(field: FieldInfo, indent: str) -> list[str]:
    """Return the first sentence of a description as a comment."""
    sentence = (field.description or "").partition(". ")[0].removesuffix(".") + "."
    return textwrap.wrap(
        sentence,
        WIDTH,
        initial_indent=f"{indent}# ",
        subsequent_indent=f"{indent}# ",
        break_on_hyphens=False,
        break_long_words=False,
    )


def _flow(value: Any) -> str:
    """Return a value in one line of YAML."""
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{_flow(key)}: {_flow(below)}" for key, below in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(_flow, value)) + "]"
    if isinstance(value, str) and _UNQUOTED.fullmatch(value) and value.lower() not in _READ_AS_OTHERS:
        return value
    return json.dumps(value, ensure_ascii=False)
