"""The manifest of a run: what its lab says that the run holds. It is uploaded last, and read before anything else.

What it says of itself are claims; whose run it is and for which commit, the key in the bucket says (`RunKey`).
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any
from urllib.parse import unquote

from nightjar_formats.limits import MAX_FILES, MAX_MANIFEST_BYTES, MAX_RUN_BYTES
from nightjar_formats.model import RunKey, escaped_target
from nightjar_formats.refused import Refused, TooMuch
from pydantic import BaseModel, ConfigDict, Field, StringConstraints, ValidationError, ValidationInfo, field_validator
from pydantic_core import ErrorDetails

from bot.config.targets import TARGET_NAME
from bot.core.patterns import Pattern
from bot.results.ingest import texts
from bot.results.state import Claims

MANIFEST = "manifest.json"
SCHEMA = 1

MOST_FAULTS = 5

_SEGMENT = r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}"
_TARGET = Pattern(TARGET_NAME)
_KEY = Pattern(
    rf"(?P<repository>[A-Za-z0-9_-]{{1,100}}/[A-Za-z0-9._-]{{1,100}})/(?P<lab>{_SEGMENT})"
    r"/(?P<target>[A-Za-z0-9][A-Za-z0-9._%-]{0,189})"
    r"/(?P<sha>[0-9a-f]{40})/(?P<run_id>[A-Za-z0-9][A-Za-z0-9._-]{0,99})/(?P<name>[^/]+)"
)

_Word = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9][A-Za-z0-9._+ /-]{0,99}$")]
_Time = Annotated[str, StringConstraints(pattern=r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d{1,9})?(?:Z|[+-]\d\d:\d\d)$")]
_Count = Annotated[int, Field(ge=1, le=10_000)]


class _Strict(BaseModel):
    model_config = ConfigDict(strict=True, frozen=True, hide_input_in_errors=True)


class FileEntry(_Strict):
    """One result file: its name in the run's folder, what it is, and by what it is known to be whole."""

    name: Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9_][A-Za-z0-9._+-]{0,199}$")]
    bytes: Annotated[int, Field(ge=0)]
    sha256: Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{64}$")]
    format: Annotated[str, StringConstraints(max_length=50)] | None = None


class _Shard(_Strict):
    index: _Count
    total: _Count

    @field_validator("total")
    @classmethod
    def _within(cls, total: int, info: ValidationInfo) -> int:
        # pydantic leaves a field out here that has an error of its own.
        index = info.data.get("index", 1)
        if index > total:
            raise ValueError(texts.BEYOND)
        return total


class _Document(_Strict):
    """What the contract says of a manifest; what else it holds is passed over, for newer labs may say more."""

    sha: Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{40}$")]
    suite: _Word
    # Strict mode would refuse JSON's list for a tuple: https://docs.pydantic.dev/latest/concepts/strict_mode/
    files: Annotated[tuple[FileEntry, ...], Field(max_length=MAX_FILES, strict=False)]
    attempt: _Count = 1
    shard: _Shard = _Shard(index=1, total=1)
    started_at: _Time | None = None
    finished_at: _Time | None = None
    exit_status: int | None = None
    pull_request: Annotated[int, Field(ge=1, le=2**31 - 1)] | None = None
    environment: Mapping[str, str | int | float | bool | None] = Field(default_factory=dict, max_length=100)
    log_url: Annotated[str, StringConstraints(max_length=2000)] | None = None
    job: Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9_-]{1,64}$")] | None = None


@dataclass(frozen=True, slots=True)
class Manifest:
    """A manifest that was read: the lab's claims, and the files that it names."""

    claims: Claims
    files: tuple[FileEntry, ...]

    @property
    def bytes(self) -> int:
        """Bytes of all files as they lie in the bucket."""
        return sum(file.bytes for file in self.files)


def run_key(key: str, prefix: str) -> tuple[RunKey, str] | None:
    """Return whose run an object of the bucket belongs to, and its name in the run's folder; None: it is no run's.

    The name of a target is escaped in the one way that `RunKey.folder` escapes it, or a run could have two folders.
    """
    found = _KEY.fullmatch(key.removeprefix(prefix)) if key.startswith(prefix) else None
    if found is None:
        return None
    repository, lab, escaped, sha, run_id, name = found.groups()
    target = unquote(escaped)
    if not _TARGET.fullmatch(target) or escaped_target(target) != escaped:
        return None
    return RunKey(repository, lab, target, sha, run_id), name


def read_manifest(raw: bytes, key: RunKey) -> Manifest:
    """Read the manifest of a run.

    Raises `Refused` with everything that is wrong with it, for the lab.
    """
    if len(raw) > MAX_MANIFEST_BYTES:
        raise TooMuch(texts.MANIFEST_TOO_LARGE)
    document = _validated(_parsed(raw))
    if document.sha != key.sha:
        raise Refused(texts.OTHER_SHA.format(claimed=document.sha, sha=key.sha))
    names = [file.name for file in document.files]
    if not names:
        raise Refused(texts.NO_FILES)
    if MANIFEST in names:
        raise Refused(texts.NAMES_ITSELF.format(manifest=MANIFEST))
    if twice := next((name for name, times in Counter(names).items() if times > 1), None):
        raise Refused(texts.NAMED_TWICE.format(name=twice))
    manifest = Manifest(_claims(document), document.files)
    if manifest.bytes > MAX_RUN_BYTES:
        raise TooMuch(texts.RUN_TOO_LARGE)
    return manifest


def _parsed(raw: bytes) -> dict[str, Any]:
    try:
        value = json.loads(raw)
    except (ValueError, RecursionError) as error:
        raise Refused(texts.NOT_JSON.format(reason=str(error) or type(error).__name__)) from None
    if not isinstance(value, dict):
        raise Refused(texts.NOT_AN_OBJECT)
    # In Python `True == 1`, so that JSON's true would pass for the schema 1.
    if type(value.get("schema")) is not int or value["schema"] != SCHEMA:
        raise Refused(texts.OTHER_SCHEMA.format(schema=SCHEMA))
    return value


def _validated(value: dict[str, Any]) -> _Document:
    try:
        return _Document.model_validate(value)
    except ValidationError as error:
        found = list(dict.fromkeys(_fault(fault) for fault in error.errors()))
    more = f"; and {len(found) - MOST_FAULTS} more" if len(found) > MOST_FAULTS else ""
    raise Refused(texts.FAULTS.format(faults="; ".join(found[:MOST_FAULTS]) + more))


def _fault(error: ErrorDetails) -> str:
    # Below `environment` the keys are the lab's own.
    place = error["loc"][:1] if error["loc"][0] == "environment" else error["loc"]
    key = next(step for step in reversed(place) if isinstance(step, str))
    said = texts.KEY_MISSING if error["type"] == "missing" else texts.KEY_WRONG
    return said.format(key=".".join(map(str, place)), words=texts.MANIFEST_FIELDS[key])


def _claims(document: _Document) -> Claims:
    return Claims(
        suite=document.suite,
        attempt=document.attempt,
        shard_index=document.shard.index,
        shard_total=document.shard.total,
        started_at=document.started_at or "",
        finished_at=document.finished_at or "",
        exit_status=document.exit_status,
        pull_request=document.pull_request,
        environment=dict(document.environment),
        log_url=document.log_url or "",
        job=document.job or "",
    )
