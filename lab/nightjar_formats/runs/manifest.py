"""Read the manifest of a run, in which the lab describes the run. It is uploaded last, and read first.

Its contents are claims. The key in the bucket (`RunKey`) decides to which lab, target and commit the run belongs.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from math import inf
from typing import Any
from urllib.parse import unquote

from nightjar_formats.items import first_of
from nightjar_formats.limits import MAX_ARTIFACT_BYTES, MAX_ARTIFACTS, MAX_FILES, MAX_MANIFEST_BYTES, MAX_RUN_BYTES
from nightjar_formats.model import (
    FILE_NAME,
    FULL_SHA,
    LAB_NAME,
    MANIFEST,
    REPOSITORY_NAME,
    RUN_NAME,
    SUITE_NAME,
    TARGET_NAME,
    Claims,
    RunKey,
    escaped_target,
)
from nightjar_formats.patterns import Pattern, without_half_pairs
from nightjar_formats.refused import Refused, TooMuch
from nightjar_formats.runs import texts
from nightjar_formats.runs.artifacts import TYPES, media_type
from nightjar_formats.strict_json import read_json

SCHEMA = 1

MOST_FAULTS = 5
MOST_ENVIRONMENT = 100
"""The most entries of `environment`."""

_TARGET = Pattern(TARGET_NAME)
_KEY = Pattern(
    rf"(?P<repository>{REPOSITORY_NAME})/(?P<lab>{LAB_NAME})"
    r"/(?P<target>[A-Za-z0-9][A-Za-z0-9._%-]{0,189})"
    rf"/(?P<sha>{FULL_SHA})/(?P<run_id>{RUN_NAME})/(?P<name>[^/]+)"
)

_Faults = Callable[[Any, str], Iterator[str]]
"""Yields the faults of a field's value; the text is the field's place in the manifest."""


@dataclass(frozen=True)
class RunFile:
    """A file of a run: its name in the run's folder, and its size and digest, which show that it is whole."""

    name: str
    bytes: int
    sha256: str


@dataclass(frozen=True)
class FileEntry(RunFile):
    """One report, with its format."""

    format: str | None = None


@dataclass(frozen=True)
class ArtifactEntry(RunFile):
    """A log or another file that people read beside the results."""

    @property
    def media_type(self) -> str:
        """Return its type, by its name."""
        return media_type(self.name) or "application/octet-stream"


@dataclass(frozen=True)
class Manifest:
    """A valid manifest: the lab's claims, the reports that it names, and the artifacts."""

    claims: Claims
    files: tuple[FileEntry, ...]
    artifacts: tuple[ArtifactEntry, ...] = ()

    @property
    def bytes(self) -> int:
        """Return the bytes of all files as they are stored in the bucket."""
        return sum(file.bytes for file in self.all_files)

    @property
    def all_files(self) -> tuple[RunFile, ...]:
        """Return the reports and the artifacts."""
        return (*self.files, *self.artifacts)


def run_key(key: str, prefix: str) -> tuple[RunKey, str] | None:
    """Return the run of an object in the bucket, and the object's name in the run's folder; None if it is not of a run.

    The target must be escaped exactly as `RunKey.folder` escapes it, or a run could have two folders.
    """
    match = _KEY.fullmatch(key.removeprefix(prefix)) if key.startswith(prefix) else None
    if match is None:
        return None
    repository, lab, escaped, sha, run_id, name = match.groups()
    target = unquote(escaped)
    if not _TARGET.fullmatch(target) or escaped_target(target) != escaped:
        return None
    return RunKey(repository, lab, target, sha, run_id), name


def read_manifest(raw: bytes, key: RunKey) -> Manifest:
    """Read the manifest of a run.

    Raises `Refused`, with a text for the lab that names up to MOST_FAULTS faults.
    """
    if len(raw) > MAX_MANIFEST_BYTES:
        raise TooMuch(texts.MANIFEST_TOO_LARGE)
    value = _parsed(raw)
    _check_fields(value)
    if value["sha"] != key.sha:
        raise Refused(texts.OTHER_SHA.format(claimed=value["sha"], sha=key.sha))
    files = tuple(FileEntry(file["name"], file["bytes"], file["sha256"], file.get("format")) for file in value["files"])
    artifacts = tuple(ArtifactEntry(file["name"], file["bytes"], file["sha256"]) for file in value.get("artifacts", ()))
    if not files:
        raise Refused(texts.NO_FILES)
    manifest = Manifest(_claims(value), files, artifacts)
    names = [file.name for file in manifest.all_files]
    if MANIFEST in names:
        raise Refused(texts.NAMES_ITSELF.format(manifest=MANIFEST))
    if twice := next((name for name, times in Counter(names).items() if times > 1), None):
        raise Refused(texts.NAMED_TWICE.format(name=twice))
    for file in value.get("artifacts", ()):
        if file["type"] != media_type(file["name"]):
            raise Refused(texts.ARTIFACT_TYPE.format(name=file["name"]))
        if file["bytes"] > MAX_ARTIFACT_BYTES:
            raise TooMuch(texts.ARTIFACT_TOO_LARGE.format(name=file["name"]))
    if manifest.bytes > MAX_RUN_BYTES:
        raise TooMuch(texts.RUN_TOO_LARGE)
    return manifest


def _parsed(raw: bytes) -> dict[str, Any]:
    try:
        value = read_json(raw)
    except ValueError as error:
        raise Refused(texts.NOT_JSON.format(reason=error)) from None
    if not isinstance(value, dict):
        raise Refused(texts.NOT_AN_OBJECT)
    # In Python `True == 1`, so that JSON's true would pass for the schema 1.
    if type(value.get("schema")) is not int or value["schema"] != SCHEMA:
        raise Refused(texts.OTHER_SCHEMA.format(schema=SCHEMA))
    return value


def _fields_of(
    value: Mapping[str, Any], fields: Mapping[str, _Faults], required: Iterable[str], place: str
) -> Iterator[str]:
    """Yield the faults of an object's fields, in order; unknown fields are ignored, because newer labs may send more.

    `place` is where the object is in the manifest, as in `files.0.`; it ends with a dot, or is empty.
    """
    for name, faults in fields.items():
        if name in value:
            yield from faults(value[name], place + name)
        elif name in required:
            yield texts.KEY_MISSING.format(key=place + name, words=texts.MANIFEST_FIELDS[name])


def _wrong(place: str) -> str:
    name = first_of(step for step in reversed(place.split(".")) if not step.isdecimal())
    return texts.KEY_WRONG.format(key=place, words=texts.MANIFEST_FIELDS[name])


def _unless(is_right: Callable[[Any], bool]) -> _Faults:
    return lambda value, place: iter(() if is_right(value) else (_wrong(place),))


def _or_null(is_right: Callable[[Any], bool]) -> _Faults:
    return _unless(lambda value: value is None or is_right(value))


def _is_text(value: Any) -> bool:
    """Say whether a value is a text that UTF-8 can hold: JSON can contain half of a surrogate pair."""
    return isinstance(value, str) and without_half_pairs(value) == value


def _matches(pattern: str) -> Callable[[Any], bool]:
    compiled = Pattern(pattern)
    return lambda value: _is_text(value) and compiled.fullmatch(value) is not None


def _is_at_most(characters: int) -> Callable[[Any], bool]:
    return lambda value: _is_text(value) and len(value) <= characters


def _is_whole(least: float, most: float) -> Callable[[Any], bool]:
    # In Python `True` is an int.
    return lambda value: type(value) is int and least <= value <= most


_is_count = _is_whole(1, 10_000)
_is_time = _matches(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d{1,9})?(?:Z|[+-]\d\d:\d\d)")

_FILE: Mapping[str, _Faults] = {
    "name": _unless(_matches(FILE_NAME)),
    "bytes": _unless(_is_whole(0, inf)),
    "sha256": _unless(_matches(r"[0-9a-f]{64}")),
    "format": _or_null(_is_at_most(50)),
}
_ARTIFACT: Mapping[str, _Faults] = {
    **{name: _FILE[name] for name in ("name", "bytes", "sha256")},
    "type": _unless(lambda value: value in TYPES.values()),
}
_SHARD: Mapping[str, _Faults] = {"index": _unless(_is_count), "total": _unless(_is_count)}


def _list_of(fields: Mapping[str, _Faults], required: Iterable[str], most: int) -> _Faults:
    """Return the check of a list of at most `most` objects."""

    def faults(value: Any, place: str) -> Iterator[str]:
        if not isinstance(value, list) or len(value) > most:
            yield _wrong(place)
            return
        for number, entry in enumerate(value):
            if isinstance(entry, dict):
                yield from _fields_of(entry, fields, required, f"{place}.{number}.")
            else:
                yield _wrong(f"{place}.{number}")

    return faults


def _shard(value: Any, place: str) -> Iterator[str]:
    if not isinstance(value, dict):
        yield _wrong(place)
        return
    faults = list(_fields_of(value, _SHARD, _SHARD, f"{place}."))
    yield from faults
    if not faults and value["index"] > value["total"]:
        yield _wrong(f"{place}.total")


def _is_environment(value: Any) -> bool:
    # Below it the keys are the lab's own.
    return (
        isinstance(value, dict)
        and len(value) <= MOST_ENVIRONMENT
        and all(entry is None or isinstance(entry, (str, int, float)) for entry in value.values())
    )


MANIFEST_KEYS: Mapping[str, _Faults] = {
    "sha": _unless(_matches(FULL_SHA)),
    "suite": _unless(_matches(SUITE_NAME)),
    "files": _list_of(_FILE, ("name", "bytes", "sha256"), MAX_FILES),
    "artifacts": _list_of(_ARTIFACT, tuple(_ARTIFACT), MAX_ARTIFACTS),
    "attempt": _unless(_is_count),
    "shard": _shard,
    "started_at": _or_null(_is_time),
    "finished_at": _or_null(_is_time),
    "exit_status": _or_null(_is_whole(-inf, inf)),
    "pull_request": _or_null(_is_whole(1, 2**31 - 1)),
    "environment": _unless(_is_environment),
    "log_url": _or_null(_is_at_most(2000)),
    "job": _or_null(_matches(r"[A-Za-z0-9_-]{1,64}")),
}
"""The fields of a manifest, each with its check."""


def _check_fields(value: Mapping[str, Any]) -> None:
    faults = list(dict.fromkeys(_fields_of(value, MANIFEST_KEYS, ("sha", "suite", "files"), "")))
    if faults:
        rest = f"; and {len(faults) - MOST_FAULTS} more" if len(faults) > MOST_FAULTS else ""
        raise Refused(texts.FAULTS.format(faults="; ".join(faults[:MOST_FAULTS]) + rest))


def _claims(value: Mapping[str, Any]) -> Claims:
    shard = value.get("shard", {"index": 1, "total": 1})
    return Claims(
        suite=value["suite"],
        attempt=value.get("attempt", 1),
        shard_index=shard["index"],
        shard_total=shard["total"],
        started_at=value.get("started_at") or "",
        finished_at=value.get("finished_at") or "",
        exit_status=value.get("exit_status"),
        pull_request=value.get("pull_request"),
        environment=value.get("environment", {}),
        log_url=value.get("log_url") or "",
        job=value.get("job") or "",
    )
