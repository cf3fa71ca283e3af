"""Read app.yaml into a `Config`, or report all of its errors at once."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import reduce
from pathlib import Path
from typing import cast

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from bot.config import explain
from bot.config.faults import ConfigError, ConfigFault
from bot.config.model import Config
from bot.config.repositories import is_pattern, matches_entry, owner_of
from bot.config.source import MAX_BYTES, Entry, Value, read
from bot.config.texts import (
    FILE_EMPTY,
    FILE_MISSING,
    FILE_UNREADABLE,
    NOT_A_MAPPING,
    REPOSITORY_TWICE,
    TOO_MANY_VALUES,
    WRITTEN_IN_TWO_FILES,
)
from bot.config.types import LACKING

MAX_MERGED_VALUES = 200_000
"""Values after `defaults` and patterns are merged into every repository. More are a mistake, and take long to check."""
FOLDER_SUFFIX = ".d"
"""What the name of the folder with further files has in place of `.yaml`: `app.d` beside `app.yaml`."""
FILE_SUFFIXES = (".yaml", ".yml")
REPOSITORIES = "repositories"


def read_config(path: str | Path, model: type[Config]) -> Config:
    """Read a configuration file and its folder; `model` has the keys of all features (`bot.config.assemble`).

    Raises `ConfigError` with every error in it, also if the file does not exist.
    """
    return _validated(read_merged(path), str(path), model)


def read_merged(path: str | Path) -> tuple[Value, list[ConfigFault]]:
    """Return the values of a configuration file and its folder, with what each repository gets from other entries.

    Each value has the place where it was written. Raises `ConfigError` for errors that leave no values; the others are
    returned.
    """
    return _merged_files([(str(file), read_file(file)) for file in [Path(path), *files_beside(path)]])


def merged_text(raw: bytes, file: str) -> Value:
    """Return the values of a configuration file's text, as `read_merged` does. Raises `ConfigError`."""
    return _merged_files([(file, raw)])[0]


def files_beside(path: str | Path) -> list[Path]:
    """Return the files in the folder of a configuration file, in the order of their names; hidden files don't count."""
    folder = Path(path).with_suffix(FOLDER_SUFFIX)
    try:
        files = sorted(folder.iterdir())
    except (FileNotFoundError, NotADirectoryError):
        return []
    except OSError as error:
        raise ConfigError([ConfigFault(str(folder), 1, 1, "", _unreadable(error))]) from None
    return [file for file in files if file.suffix in FILE_SUFFIXES and not file.name.startswith(".")]


def read_file(path: str | Path, most: int = MAX_BYTES) -> bytes:
    """Return the content of a file; of a larger one the first `most` + 1 bytes. Raises `ConfigError`."""
    try:
        with Path(path).open("rb") as file:
            return file.read(most + 1)
    except FileNotFoundError:
        raise ConfigError([ConfigFault(str(path), 1, 1, "", FILE_MISSING)]) from None
    except OSError as error:
        raise ConfigError([ConfigFault(str(path), 1, 1, "", _unreadable(error))]) from None


def _unreadable(error: OSError) -> str:
    return FILE_UNREADABLE.format(reason=(error.strerror or type(error).__name__).lower())


def read_config_text(raw: bytes, file: str, model: type[Config]) -> Config:
    """Read configuration from memory; `file` is its name in errors, `model` is as for `read_config`.

    Raises `ConfigError` with every error in it.
    """
    return _validated(_merged_files([(file, raw)]), file, model)


def _validated(read_values: tuple[Value, list[ConfigFault]], file: str, model: type[Config]) -> Config:
    merged, faults = read_values
    try:
        config = model.model_validate(merged.plain())
    except ValidationError as error:
        if mistakes := faults_of(error, merged, model):
            raise ConfigError([*faults, *mistakes]) from None
        # `defaults` alone is incomplete; merged into the repositories, it is complete.
        config = model.model_validate({key: value for key, value in merged.plain().items() if key != "defaults"})
    if faults:
        raise ConfigError(faults)
    return config


def _merged_files(files: Sequence[tuple[str, bytes]]) -> tuple[Value, list[ConfigFault]]:
    """Return the merged values of files, the first of which is the configuration file; each has a name and a text."""
    roots: list[Value] = []
    faults: list[ConfigFault] = []
    size = 0
    for name, raw in files:
        root, file_faults = read(raw, name)
        faults += file_faults
        if root is not None and root.content is not None:
            roots.append(root)
            size += root.size()
        if size > MAX_MERGED_VALUES:
            break  # before the next file is read, which takes up to a second
    first_file = files[0][0]
    if not roots:
        raise ConfigError([*faults, ConfigFault(first_file, 1, 1, "", FILE_EMPTY)])
    root = roots[0]
    for next_root in roots[1:]:
        root = _joined(root, next_root, faults)
    inherited = _inherited(root)
    distinct = {id(value): value for values in inherited.values() for value in values}  # thousands of times the same
    sizes = {number: value.size() for number, value in distinct.items()}
    size += sum(sizes[id(value)] for values in inherited.values() for value in values)
    if size > MAX_MERGED_VALUES:
        fault = ConfigFault(root.file, root.line, root.column, "", TOO_MANY_VALUES.format(most=MAX_MERGED_VALUES))
        raise ConfigError([*faults, *_named_twice(roots), fault])
    return _with_inherited(root, inherited), [*faults, *_named_twice(roots)]


def _joined(root: Value, next_root: Value, faults: list[ConfigFault]) -> Value:
    """Return the keys of two files. Only `repositories` may be in both; anything else is added to `faults`."""
    if not isinstance(root.content, dict) or not isinstance(next_root.content, dict):
        faults.append(ConfigFault(next_root.file, next_root.line, next_root.column, "", NOT_A_MAPPING))
        return root
    keys = dict(root.content)
    for key, entry in next_root.content.items():
        first_entry = keys.setdefault(key, entry)
        if first_entry is entry:
            continue
        repositories, added = first_entry.value.content, entry.value.content
        if key != REPOSITORIES:
            message = WRITTEN_IN_TWO_FILES.format(place=f"{first_entry.file}:{first_entry.line}")
            faults.append(ConfigFault(entry.file, entry.line, entry.column, entry.path, message))
        elif repositories is None:
            keys[key] = entry
        elif isinstance(repositories, dict) and isinstance(added, dict):
            # A name in both keeps its first value; `_named_twice` reports it.
            joined = {**repositories, **added, **repositories}
            keys[key] = replace(first_entry, value=replace(first_entry.value, content=joined))
        elif added is not None:
            faults.append(ConfigFault(entry.file, entry.value.line, entry.value.column, entry.path, NOT_A_MAPPING))
    return replace(root, content=keys)


def check(path: str | Path, load: Callable[[str | Path], object]) -> list[ConfigFault]:
    """Return the errors that a function raises when it reads a configuration file, in the order of the lines."""
    try:
        load(path)
    except ConfigError as error:
        return list(error.faults)
    return []


def faults_of(error: ValidationError, merged: Value, root: type[BaseModel]) -> list[ConfigFault]:
    """Return pydantic's errors of a `root` at their places; an error in `defaults` is reported once."""
    # pydantic reports a list of invalid items as empty as well.
    details = [d for d in error.errors(include_url=False) if d["type"] != "too_short" or not d["input"]]
    # A repository may add what `defaults` leaves out; the check of the repository reports what is missing.
    details = [d for d in details if d["type"] not in ("missing", LACKING) or d["loc"][0] != "defaults"]
    # Missing keys all have the place of their mapping.
    misplaced = {d["loc"][:2] for d in details if explain.is_misplaced_feature(d, root)}
    details = [d for d in details if d["loc"][:2] not in misplaced or explain.is_misplaced_feature(d, root)]
    unique = {(_place(d, merged), d["type"], d["loc"][-1] if d["type"] == "missing" else ""): d for d in details}
    return [ConfigFault(*place, explain.message(detail, root)) for (place, *_), detail in unique.items()]


def _place(detail: ErrorDetails, merged: Value) -> tuple[str, int, int, str]:
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
    return place.file, place.line, place.column, place.path


def _named_twice(roots: Iterable[Value]) -> Iterator[ConfigFault]:
    """Yield an error for each repository, and each pattern, that stands in the files under two keys."""
    first_entries: dict[str, Entry] = {}
    for root in roots:
        for name, entry in _entries(root, REPOSITORIES).items():
            first_entry = first_entries.setdefault(name.lower(), entry)
            if first_entry is not entry:
                is_same_file = first_entry.file == entry.file
                place = f"line {first_entry.line}" if is_same_file else f"{first_entry.file}:{first_entry.line}"
                message = REPOSITORY_TWICE.format(place=place)
                yield ConfigFault(entry.file, entry.line, entry.column, entry.path, message)


def _with_inherited(root: Value, inherited: Mapping[str, Sequence[Value]]) -> Value:
    """Merge into every repository what it inherits; each value has the place where it was written."""
    repositories = root.content.get(REPOSITORIES) if isinstance(root.content, dict) else None
    if repositories is None or not any(inherited.values()):
        return root
    merged = {}
    for name, entry in _entries(root, REPOSITORIES).items():
        # The last value wins, so the nearest one is merged into first.
        value = reduce(lambda own, default: _merged(default, own, switch=False), reversed(inherited[name]), entry.value)
        merged[name] = replace(entry, value=value)
    with_inherited = replace(repositories, value=replace(repositories.value, content=merged))
    return replace(root, content={**cast("dict[str, Entry]", root.content), REPOSITORIES: with_inherited})


def _inherited(root: Value) -> dict[str, list[Value]]:
    """Return what each entry of `repositories` inherits: `defaults`, then the patterns that match, shortest first."""
    entries = _entries(root, REPOSITORIES)
    patterns: dict[str, list[str]] = {}
    for pattern in sorted(filter(is_pattern, entries), key=len):
        patterns.setdefault(owner_of(pattern), []).append(pattern)
    default = root.content.get("defaults") if isinstance(root.content, dict) else None
    defaults = [default.value] if default is not None else []
    return {
        name: defaults
        + [
            entries[pattern].value
            for pattern in patterns.get(owner_of(name), ())
            if pattern != name and matches_entry(pattern, name)
        ]
        for name in entries
    }


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
    return replace(own, content=entries)
