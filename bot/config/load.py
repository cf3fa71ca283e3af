"""Read app.yaml into a `Config`, or report all of its errors at once."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from bot.config import explain
from bot.config.faults import ConfigError, ConfigFault
from bot.config.model import Config
from bot.config.source import MAX_BYTES, Entry, Value, read
from bot.config.texts import FILE_EMPTY, FILE_MISSING, FILE_UNREADABLE, REPOSITORY_TWICE, TOO_MANY_VALUES
from bot.config.types import LACKING

MAX_MERGED_VALUES = 200_000
"""Values after `defaults` is merged into every repository. More are a mistake, and take long to check."""


def read_config(path: str | Path, model: type[Config]) -> Config:
    """Read a configuration file; `model` has the keys of all features (`bot.config.assemble`).

    Raises `ConfigError` with every error in it, also if the file does not exist.
    """
    return read_config_text(read_file(path), str(path), model)


def read_file(path: str | Path, most: int = MAX_BYTES) -> bytes:
    """Return the content of a file; of a larger one the first `most` + 1 bytes. Raises `ConfigError`."""
    try:
        with Path(path).open("rb") as file:
            return file.read(most + 1)
    except FileNotFoundError:
        raise ConfigError([ConfigFault(str(path), 1, 1, "", FILE_MISSING)]) from None
    except OSError as error:
        reason = (error.strerror or type(error).__name__).lower()
        raise ConfigError([ConfigFault(str(path), 1, 1, "", FILE_UNREADABLE.format(reason=reason))]) from None


def read_config_text(raw: bytes, file: str, model: type[Config]) -> Config:
    """Read configuration from memory; `file` is its name in errors, `model` is as for `read_config`.

    Raises `ConfigError` with every error in it.
    """
    root, faults = read(raw, file)
    if root is None or root.content is None:
        raise ConfigError([*faults, ConfigFault(file, 1, 1, "", FILE_EMPTY)])
    faults += _named_twice(root, file)
    if _merged_size(root) > MAX_MERGED_VALUES:
        raise ConfigError(
            [*faults, ConfigFault(file, root.line, root.column, "", TOO_MANY_VALUES.format(most=MAX_MERGED_VALUES))]
        )
    merged = _with_defaults(root)
    try:
        config = model.model_validate(merged.plain())
    except ValidationError as error:
        if mistakes := faults_of(error, merged, file, model):
            raise ConfigError([*faults, *mistakes]) from None
        # `defaults` alone is incomplete; merged into the repositories, it is complete.
        config = model.model_validate({key: value for key, value in merged.plain().items() if key != "defaults"})
    if faults:
        raise ConfigError(faults)
    return config


def check(path: str | Path, load: Callable[[str | Path], object]) -> list[ConfigFault]:
    """Return the errors that a function raises when it reads a configuration file, in the order of the lines."""
    try:
        load(path)
    except ConfigError as error:
        return list(error.faults)
    return []


def faults_of(error: ValidationError, merged: Value, file: str, root: type[BaseModel]) -> list[ConfigFault]:
    """Return pydantic's errors of a `root` at the places in the file; an error in `defaults` is reported once."""
    # pydantic reports a list of invalid items as empty as well.
    details = [d for d in error.errors(include_url=False) if d["type"] != "too_short" or not d["input"]]
    # A repository may add what `defaults` leaves out; the check of the repository reports what is missing.
    details = [d for d in details if d["type"] not in ("missing", LACKING) or d["loc"][0] != "defaults"]
    # Missing keys all have the place of their mapping.
    misplaced = {d["loc"][:2] for d in details if explain.is_misplaced_feature(d, root)}
    details = [d for d in details if d["loc"][:2] not in misplaced or explain.is_misplaced_feature(d, root)]
    unique = {(_place(d, merged), d["type"], d["loc"][-1] if d["type"] == "missing" else ""): d for d in details}
    return [ConfigFault(file, *place, explain.message(detail, root)) for (place, *_), detail in unique.items()]


def _place(detail: ErrorDetails, merged: Value) -> tuple[int, int, str]:
    value: Value = merged
    entry: Entry | None = None
    for step in detail["loc"]:
        content = value.content
        if isinstance(content, dict) and step in content:
            entry = content[str(step)]
            value = entry.value
        elif isinstance(content, tuple) and isinstance(step, int):
            value, entry = content[step], None
        else:
            break
    about_the_key = detail["type"] == "extra_forbidden" or detail["loc"][-1:] == ("[key]",)
    place = entry if entry and about_the_key else value
    return place.line, place.column, place.path


def _named_twice(root: Value, file: str) -> list[ConfigFault]:
    first: dict[str, Entry] = {}
    faults: list[ConfigFault] = []
    for name, entry in _entries(root, "repositories").items():
        first_entry = first.setdefault(name.lower(), entry)
        if first_entry is not entry:
            message = REPOSITORY_TWICE.format(line=first_entry.line)
            faults.append(ConfigFault(file, entry.line, entry.column, entry.path, message))
    return faults


def _merged_size(root: Value) -> int:
    if not isinstance(root.content, dict) or "defaults" not in root.content:
        return root.size()
    return root.size() + root.content["defaults"].value.size() * len(_entries(root, "repositories"))


def _with_defaults(root: Value) -> Value:
    """Merge `defaults` into every repository; each value has the place where it was written."""
    content = root.content
    if not isinstance(content, dict) or "defaults" not in content or not _entries(root, "repositories"):
        return root
    default, repositories = content["defaults"].value, content["repositories"]
    merged = {
        name: replace(entry, value=_merged(default, entry.value, switch=False))
        for name, entry in _entries(root, "repositories").items()
    }
    with_defaults = replace(repositories, value=replace(repositories.value, content=merged))
    return replace(root, content={**content, "repositories": with_defaults})


def _entries(root: Value, key: str) -> dict[str, Entry]:
    """Return the mapping below a key of the file, an empty one if it is missing or not a mapping."""
    entry = root.content.get(key) if isinstance(root.content, dict) else None
    return entry.value.content if entry is not None and isinstance(entry.value.content, dict) else {}


def _merged(default: Value, own: Value, *, switch: bool = True) -> Value:
    """Merge `default` into `own`, mappings key by key; any other value of `own` replaces the default.

    An empty value, and `true` for a feature, mean the default mapping.
    """
    if not isinstance(default.content, dict):
        return own
    if own.content is None or (switch and own.content is True):
        return default
    if not isinstance(own.content, dict):
        return own
    entries = dict(default.content)
    for key, entry in own.content.items():
        under = default.content.get(key)
        value = _merged(under.value, entry.value) if under else entry.value
        entries[key] = replace(entry, value=value)
    return Value(own.line, own.column, own.path, entries)
