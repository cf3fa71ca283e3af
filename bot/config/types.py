"""The types of keys' values, each with its words for errors and docs."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Annotated, Any, Literal, TypeVar
from zoneinfo import ZoneInfo

from pydantic import (
    AfterValidator,
    Field,
    GetCoreSchemaHandler,
    GetJsonSchemaHandler,
    StringConstraints,
    WithJsonSchema,
)
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema, core_schema

from bot.config.texts import BAD_PATH, SHORT_INTERVAL, UNKNOWN_TIME_ZONE, WHOLE_REF
from bot.core.patterns import glob
from bot.core.urls import encrypted_url, http_url

HEADS = "refs/heads/"
STORE_FOLDER = "folder:"
"""Stands for a bucket's name where runs are in the folder beside the database; no bucket can have it."""
LACKING = "lacking"
"""The type of an error of a key that needs another key beside it."""


@dataclass(frozen=True, slots=True)
class Says:
    """Describe what a type allows, as words after "must be"."""

    words: str


@dataclass(frozen=True, slots=True)
class Section:
    """A mapping of keys that may be empty. With `switch` also true, for its defaults, or false, for off (None)."""

    switch: bool

    @property
    def words(self) -> str:
        """Describe the allowed values."""
        return "true, false or a mapping of keys" if self.switch else "a mapping of keys"

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        """Read an empty value and true as an empty mapping, and false as None."""
        # Convert before the validation: the models are strict, and would refuse a bool for a mapping.
        return core_schema.no_info_before_validator_function(self._mapping, handler(source))

    def __get_pydantic_json_schema__(self, schema: CoreSchema, handler: GetJsonSchemaHandler) -> JsonSchemaValue:
        """Describe the values in the file, not the values of the model."""
        inner = handler(schema)
        options = inner.get("anyOf", [inner])
        options = [option for option in options if option.get("type") != "null"]
        extra = [{"type": "boolean"}] if self.switch else []
        return {"anyOf": [*options, {"type": "null"}, *extra]}

    def _mapping(self, written: object) -> object:
        if written is None or (self.switch and written is True):
            return {}
        if self.switch and written is False:
            return None
        return written


class _Shared:
    """Marks a key that a repository's maintainers may set too."""


SHARED = _Shared()
_Value = TypeVar("_Value")
Shared = Annotated[_Value, SHARED]
"""The type of a key that `.github/nightjar.yaml` may set too (`bot.config.shared`). Such a key must not give access to
anything that the operator has not granted: credentials, a place to write to, or a schedule."""


class _Joined:
    """Marks a shared key whose list in the repository's own file is added to that of app.yaml."""


JOINED = _Joined()
"""Beside SHARED, on a list: the items of both files are in force, those of app.yaml first."""

REPOSITORY_NAME = r"^[A-Za-z0-9][A-Za-z0-9_-]{0,99}/\.{0,99}[A-Za-z0-9_-][A-Za-z0-9._-]{0,99}$"
RepositoryName = Annotated[
    str,
    StringConstraints(pattern=REPOSITORY_NAME),
    Says("a repository's owner/name, as in octocat/compiler"),
]
RepositoryEntry = Annotated[
    str,
    StringConstraints(pattern=rf"{REPOSITORY_NAME}|^[A-Za-z0-9][A-Za-z0-9_-]{{0,99}}/[A-Za-z0-9._-]{{0,99}}\*$"),
    Says("a repository's owner/name, as in octocat/compiler, or a pattern such as octo-org/*"),
]
"""A key below `repositories`: a name, or a pattern whose only * is at its end."""

Mention = Annotated[
    str,
    StringConstraints(pattern=r"^[@/][A-Za-z0-9][A-Za-z0-9_-]{0,99}$"),
    Says('a name with its @ or a slash before it, in quotes, as in "@ci" or "/ci"'),
]

Operator = Annotated[
    str,
    StringConstraints(
        pattern=r"^(?:[1-9][0-9]{0,17}|@[A-Za-z0-9][A-Za-z0-9_-]{0,99}(?:/[A-Za-z0-9_][A-Za-z0-9_.-]{0,99})?)$"
    ),
    Says(
        'a person\'s ID, a login with its @, or a team, in quotes, as in "583231", "@octocat" or "@octo-org/compiler"'
    ),
]

JobName = Annotated[
    str,
    StringConstraints(pattern=r"^[A-Za-z0-9_][A-Za-z0-9_.-]{0,99}(?:/[A-Za-z0-9_][A-Za-z0-9_.-]{0,99}){0,9}$"),
    Says("the name of a Jenkins job, with its folders before it, as in tvm-cpu or compiler/gpu"),
]

Pattern = Annotated[
    str,
    StringConstraints(
        min_length=1,
        max_length=255,
        pattern=r"^(?:[^\[\]\x00-\x1f\x7f]|\[!?[^\[\]!\x00-\x1f\x7f][^\[\]\x00-\x1f\x7f]*\])+$",
    ),
    Says("a name or a pattern of *, ? and [letters], as in release/*"),
]
"""A shell pattern as in `fnmatch`: `*` also matches `/`."""

StatusContext = Annotated[
    str,
    StringConstraints(pattern=r"^[^\s\x00-\x1f\x7f](?:[^\x00-\x1f\x7f]{0,98}[^\s\x00-\x1f\x7f])?$"),
    Says("a name of up to 100 characters in one line, as in ci/slow-tests"),
]

_URI: JsonSchemaValue = {"type": "string", "format": "uri", "pattern": "^https?://"}

WebAddress = Annotated[
    str, AfterValidator(http_url), WithJsonSchema(_URI), Says("a web address, as in https://ci.example.org")
]

EncryptedAddress = Annotated[
    str, AfterValidator(encrypted_url), WithJsonSchema(_URI), Says("an https address, as in https://ci.example.org")
]


def _without_prefix(branch: str) -> str:
    """Return the name of a branch; raise ValueError if it starts with refs/heads/."""
    if branch.startswith(HEADS):
        raise ValueError(WHOLE_REF)
    return branch


BRANCH = r"[^\s\x00-\x20\x7f~^:?*\[\\/-][^\s\x00-\x20\x7f~^:?*\[\\]{0,243}"
"""Nearly the names that git allows for a branch: https://git-scm.com/docs/git-check-ref-format"""

BranchName = Annotated[
    str,
    StringConstraints(pattern=f"^{BRANCH}$"),
    AfterValidator(_without_prefix),
    Says("the name of a branch, as in nightly"),
]

WholeNumber = Annotated[int, Field(ge=1, le=2**31 - 1), Says("a whole number from 1")]

Duration = Annotated[
    str,
    StringConstraints(pattern=r"^[1-9][0-9]{0,4}[smhd]$"),
    Says("a time such as 30s, 15m, 6h or 7d"),
]
_UNITS = {"s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}


def seconds(duration: str) -> float:
    """Return a `Duration` in seconds."""
    return float(duration[:-1]) * _UNITS[duration[-1]]


def _not_too_often(duration: str) -> str:
    """Return a `Duration` of at least a minute; raise ValueError for a shorter one."""
    if seconds(duration) < SHORTEST_INTERVAL:
        raise ValueError(SHORT_INTERVAL)
    return duration


SHORTEST_INTERVAL = 60.0
"""Seconds; timers are checked once a minute."""

Interval = Annotated[Duration, AfterValidator(_not_too_often)]

TimeOfDay = Annotated[
    str,
    StringConstraints(pattern=r"^(?:[01][0-9]|2[0-3]):[0-5][0-9]$"),
    Says('a time of day in quotes, as in "21:00"'),
]


def _known_zone(name: str) -> str:
    """Return the name of a time zone; raise ValueError if it is unknown."""
    try:
        ZoneInfo(name)
    except (
        KeyError,
        ValueError,
        OSError,
    ):  # zoneinfo raises these for an unknown zone, an invalid name, and a folder of zones
        raise ValueError(UNKNOWN_TIME_ZONE) from None
    return name


TimeZone = Annotated[
    str,
    StringConstraints(max_length=64, pattern=r"^[A-Za-z][A-Za-z0-9_+/-]*$"),
    AfterValidator(_known_zone),
    Says("a time zone of IANA's, as in America/Los_Angeles"),
]

LabelName = Annotated[
    str,
    StringConstraints(pattern=r"^[^\s\x00-\x1f\x7f](?:[^\x00-\x1f\x7f]{0,48}[^\s\x00-\x1f\x7f])?$"),
    Says("the name of a label, up to 50 characters in one line, as in ready-for-merge"),
]


def _plain_path(path: str) -> str:
    """Return a path; raise ValueError if a part of it is empty, . or .. ."""
    if {"", ".", ".."} & set(path.split("/")):
        raise ValueError(BAD_PATH)
    return path


RepositoryPath = Annotated[
    str,
    StringConstraints(max_length=255, pattern=r"^[A-Za-z0-9_.+@/-]+$"),
    AfterValidator(_plain_path),
    Says("the path of a file in the repository, as in ci/required_tests.json"),
]

Role = Literal["author", "triage", "write", "maintain", "admin"]
"""The pull request's author, or a role in the repository or any higher one."""


def matches(patterns: Iterable[str], name: str) -> bool:
    """Return whether a name is, or matches, any of the patterns; case matters, as in Git.

    Names may have the characters of patterns: a matrix makes jobs such as `test [cpu]`.
    """
    return any(pattern == name or glob(pattern).fullmatch(name) for pattern in patterns)
