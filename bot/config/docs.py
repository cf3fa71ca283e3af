"""The sample app.yaml, and what docs/ says about it and the environment; `make docs` writes all of it."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, get_args, get_origin

from pydantic import BaseModel
from pydantic.fields import FieldInfo

from bot.config.assemble import repository_model
from bot.config.environment import Settings
from bot.config.explain import words
from bot.config.faults import ConfigError
from bot.config.keys import key_types, model_of
from bot.config.load import read_config_text
from bot.config.model import Config
from bot.config.sample import feature_sample, sample_text
from bot.config.schema import repository_file_schema_text, schema_text
from bot.config.shared import file_model
from bot.config.texts import FEATURE_PAGE, GUIDE_ERRORS, GUIDE_INVALID_FILE
from bot.core.docs import replace_block, table

SAMPLE = Path("app.yaml")
SCHEMA = Path("docs/app.schema.json")
REPOSITORY_FILE_SCHEMA = Path("docs/nightjar.schema.json")
GUIDE = Path("docs/configuration.md")
FEATURE_PAGES = Path("docs/configuration")
"""The folder with a page for each key of a repository that has keys of its own."""

REPOSITORY = "repositories.OWNER/NAME."

KEYS_HEADER = ("key", "meaning", "value", "default")
FEATURES_HEADER = ("feature", "what it does", "keys", "default")
REPOSITORY_FILE_HEADER = KEYS_HEADER[:3]
VARIABLES_HEADER = ("variable", "meaning", "default")


def documents(root: Path, model: type[Config]) -> dict[Path, str]:
    """Return the text of each generated file, by path; `model` is that of app.yaml with all features' keys."""
    guide = (root / GUIDE).read_text(encoding="utf-8")
    guide = replace_block(guide, "keys", keys_table(model))
    guide = replace_block(guide, "errors", errors_example(model))
    guide = replace_block(guide, "repository-file", repository_file_table(model))
    guide = replace_block(guide, "variables", variables_table())
    return {
        **feature_pages(model),
        SAMPLE: sample_text(model),
        SCHEMA: schema_text(model),
        REPOSITORY_FILE_SCHEMA: repository_file_schema_text(model),
        GUIDE: guide,
    }


def keys_table(model: type[Config]) -> str:
    """Return the table of the keys of app.yaml; a key of a repository that has a page links it."""
    pages = {f"{REPOSITORY}{name}": name for name in features_with_keys(repository_model(model))}
    rows = []
    for path, field, annotation in keys(model):
        if name := pages.get(path):
            rows.append(_row(f"[`{path}`]({FEATURE_PAGES.name}/{name}.md)", field, annotation))
        elif not path.startswith(tuple(f"{page}{separator}" for page in pages for separator in ".[")):
            rows.append(_row(f"`{path}`", field, annotation))
    return table(KEYS_HEADER, rows)


def features_with_keys(repository: type[BaseModel]) -> dict[str, type[BaseModel]]:
    """Return the keys of a repository that have keys of their own, with the models of these."""
    models = {name: model_of(annotation) for name, annotation in key_types(repository).items()}
    return {name: model for name, model in models.items() if model is not None and key_types(model)}


def feature_pages(model: type[Config]) -> dict[Path, str]:
    """Return the page of each feature with keys: what it does, its keys, and a sample."""
    pages, repository = {}, repository_model(model)
    for name, inner in features_with_keys(repository).items():
        field, annotation = repository.model_fields[name], key_types(repository)[name]
        prefix = f"{name}{_below(name, annotation)}."
        rows = [_row(f"`{path}`", *key) for path, *key in keys(inner, prefix)]
        pages[FEATURE_PAGES / f"{name}.md"] = FEATURE_PAGE.format(
            name=name,
            description=field.description or "",
            values=words(annotation),
            default=_left_out(field, annotation),
            keys=table(KEYS_HEADER, rows),
            sample=feature_sample(repository, name),
        )
    return pages


def errors_example(model: type[Config]) -> str:
    """Return a file with errors, and what `nightjar check-config` says about it."""
    try:
        read_config_text(GUIDE_INVALID_FILE.encode(), SAMPLE.name, model)
    except ConfigError as error:
        return GUIDE_ERRORS.format(file=GUIDE_INVALID_FILE, errors=error)
    raise AssertionError("the file has errors")


def features_table(model: type[Config]) -> str:
    """Return the table of features for docs/features.md, each with its keys."""
    rows, repository = [], repository_model(model)
    for name, annotation in key_types(repository).items():
        field, inner = repository.model_fields[name], model_of(annotation)
        named = ", ".join(f"`{key}`" for key in key_types(inner)) if inner is not None else ""
        shown = f"[`{name}`]({FEATURE_PAGES.name}/{name}.md)" if named else f"`{name}`"
        rows.append((shown, field.description or "", named, _left_out(field, annotation)))
    return table(FEATURES_HEADER, rows)


def repository_file_table(model: type[Config]) -> str:
    """Return the table of every key of a repository's own file; `model` is that of app.yaml."""
    return table(REPOSITORY_FILE_HEADER, _rows(file_model(repository_model(model))))


def variables_table() -> str:
    """Return the table of every environment variable."""
    fields = Settings.model_fields.values()
    return table(VARIABLES_HEADER, [(f"`{f.alias}`", f.description or "", _unset(f)) for f in fields])


def keys(model: type[BaseModel], prefix: str = "") -> Iterator[tuple[str, FieldInfo, Any]]:
    """Yield every key with its path, such as `repositories.OWNER/NAME.rerun.jenkins[].url`, description and type."""
    for name, annotation in key_types(model).items():
        path = f"{prefix}{name}"
        yield path, model.model_fields[name], annotation
        inner = model_of(annotation)
        if inner is not None and path != "defaults":
            yield from keys(inner, f"{path}{_below(name, annotation)}.")


def _below(name: str, annotation: Any) -> str:
    """Return the placeholder for a name that maintainers choose, or for an item of a list; else nothing."""
    if name == "repositories":
        return REPOSITORY.removeprefix(name).removesuffix(".")
    if Mapping in (get_origin(annotation), *map(get_origin, get_args(annotation)[:1])):
        return f".{name.removesuffix('s').upper()}"
    return "[]" if words(annotation).startswith("a list") else ""


def _rows(model: type[BaseModel]) -> Iterator[tuple[str, str, str]]:
    for path, field, annotation in keys(model):
        yield f"`{path}`", field.description or "", words(annotation)


def _row(name: str, field: FieldInfo, annotation: Any) -> tuple[str, str, str, str]:
    return name, field.description or "", words(annotation), _left_out(field, annotation)


def _left_out(field: FieldInfo, annotation: Any) -> str:
    if field.is_required():
        return "required"
    default = field.get_default()
    if words(annotation).startswith("true"):
        return "on" if default else "off"
    return (
        "none"
        if default in (None, ()) or isinstance(default, BaseModel)
        else f"`{json.dumps(default, ensure_ascii=False)}`"
    )


def _unset(field: FieldInfo) -> str:
    if field.is_required():
        return "required"
    default = field.get_default()
    text = default.get_secret_value() if hasattr(default, "get_secret_value") else default
    return f"`{text}`" if text else ""
