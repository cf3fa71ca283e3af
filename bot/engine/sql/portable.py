r"""SQL that is written once and runs on PostgreSQL and on SQLite.

It is PostgreSQL's dialect in psycopg's form, restricted to what SQLite understands after this translation:

- parameters are `%(name)s`; a percent sign is `%%`;
- `column = ANY(%(names)s)` takes a list, and `column = ANY(ARRAY(SELECT ...))` the rows of a subquery that runs once;
- casts are `value::type` (dropped for SQLite) or `CAST(value AS type)`;
- moments are compared with `to_timestamp(seconds)` and read with `date_part('epoch', moment)`; there is `now()`;
- `RETURNING`, `ON CONFLICT`, `->>`, `FILTER` and `NULLS LAST` are the same on both;
- columns named `args`, `scheduled_at` and `abort_requested` come back as a dict, a datetime and a bool on both.

Text is stored unchanged, whatever people wrote. PostgreSQL's `text` and `jsonb` refuse U+0000 and lone surrogates, and
SQLite's driver refuses the latter; GitHub's payloads may hold both, as the JSON escapes `\u0000` and `\ud800`. So each
such character is stored as U+FDD0 followed by its four hexadecimal digits. U+FDD0 is one of Unicode's noncharacters,
which are reserved for a program's own use (https://www.unicode.org/faq/private_use.html#noncharacters); a U+FDD0 in the
text itself is stored the same way, so decoding is unambiguous. The connectors do this for every string that they store
or return.
"""

from __future__ import annotations

import datetime
import json
import re  # noqa: TID251  # reads SQL of our own, and nothing else
import time
from collections.abc import Callable, Mapping
from functools import lru_cache
from sqlite3 import Connection, Cursor
from typing import TypeAlias

from nightjar_formats.strict_json import read_json

from bot.engine.sql.errors import DatabaseFailure

JSONValue: TypeAlias = "dict[str, JSONValue] | list[JSONValue] | str | int | float | bool | None"
JSONDict = dict[str, JSONValue]

ESCAPE = "\ufdd0"
_ENCODER = json.JSONEncoder(ensure_ascii=False, allow_nan=False, separators=(",", ":"))
_HALF_PAIRS = {half: f"{ESCAPE}{half:04x}" for half in range(0xD800, 0xE000)}


def storable(text: str) -> str:
    """Encode text so that both databases can store it."""
    if text.isascii() and "\x00" not in text:
        return text
    text = text.replace(ESCAPE, f"{ESCAPE}fdd0").replace("\x00", f"{ESCAPE}0000")
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.translate(_HALF_PAIRS)
    return text


def original(text: str) -> str:
    """Decode the result of `storable`."""
    if ESCAPE not in text:
        return text
    first, *escaped = text.split(ESCAPE)
    return "".join([first, *(f"{chr(int(part[:4], 16))}{part[4:]}" for part in escaped)])


def dumps(value: JSONValue) -> str:
    """Write a value as JSON that both databases can store.

    Raises ValueError for NaN and infinity, which are not JSON (RFC 8259, section 6).
    """
    written = storable(_ENCODER.encode(value))
    if "\\u0000" in written:
        # Behind an escaped backslash, `u0000` is five characters like any other.
        sections = written.split("\\\\")
        written = "\\\\".join(section.replace("\\u0000", f"{ESCAPE}0000") for section in sections)
    return written


def loads(written: str | bytes) -> JSONValue:
    """Read the JSON that `dumps` wrote. Raises ValueError for what is damaged, also for numbers that are not finite."""
    text = written.decode() if isinstance(written, bytes) else written
    value: JSONValue = read_json(text.replace(ESCAPE, "\\u"))
    return value


TOO_NEW = "a newer release created the database (schema {found}, this release supports {known}); install that release"

NO_ROWS = "the statement returns no rows: add RETURNING, or run it with execute_query_async"

Value = str | int | float | bytes | None
Row = dict[str, object]

_TOKEN = re.compile(  # noqa: TID251  # SQL of our own
    r"""
      (?P<literal> '(?:[^']|'')*' | "(?:[^"]|"")*" )
    | (?P<comment> --[^\n]* )
    | = \s* ANY \s* \( \s* %\((?P<list>\w+)\)s (?: ::\w+ \[\] )? \s* \)
    | (?P<subquery> = \s* ANY \s* \( \s* ARRAY \s* \( )
    | %\( (?P<name>\w+) \)s
    | (?P<percent> %. )
    | (?P<cast> :: \s* (?: double\ precision | \w+ ) (?: \[\] )? )
    """,
    re.VERBOSE | re.IGNORECASE,
)


@lru_cache(maxsize=256)
def translate(sql: str) -> str:
    """Translate a statement for SQLite, with parameters named `:name`.

    Raises ValueError for text that the two databases would understand differently. For example
    `at < to_timestamp(%(end)s)::bigint AND id = ANY(%(ids)s)` becomes
    `at < to_timestamp(:end) AND id IN (SELECT value FROM json_each(:ids))`.
    """
    return _TOKEN.sub(_translated, sql)


def _translated(token: re.Match[str]) -> str:
    match token.lastgroup:
        case "literal":
            if "%(" in token[0]:
                raise ValueError(f"a parameter inside of quotes: {token[0]}")
            return token[0].replace("%%", "%")
        case "list":
            return f"IN (SELECT value FROM json_each(:{token['list']}))"  # noqa: S608  # a parameter's name
        case "subquery":
            return "IN (SELECT * FROM ("
        case "name":
            return f":{token['name']}"
        case "percent":
            if token[0] != "%%":
                raise ValueError("write %% for a percent sign and %(name)s for a parameter")
            return "%"
        case _:  # a comment or a cast
            return ""


def stored(value: object) -> Value:
    """Convert a parameter for SQLite: moments to seconds since 1970, dicts and lists to JSON."""
    match value:
        case str():
            return storable(value)
        case datetime.datetime():
            return value.timestamp()
        case dict() | list() | tuple():
            return dumps(value)  # type: ignore[arg-type]  # `dumps` refuses other values
        case None | int() | float() | bytes():
            return value
        case _:
            raise TypeError(f"a parameter of SQL cannot be a {type(value).__name__}")


def row(cursor: Cursor, values: tuple[Value, ...]) -> Row:
    """Return a result row as psycopg would: a `sqlite3` row factory."""
    return {column[0]: _read(column[0], value) for column, value in zip(cursor.description, values, strict=True)}


def _read(column: str, value: Value) -> JSONValue | bytes | datetime.datetime:
    if column == "args" and isinstance(value, str):
        return loads(value)
    if isinstance(value, str):
        return original(value)
    if column == "scheduled_at" and isinstance(value, int | float):
        return datetime.datetime.fromtimestamp(value, datetime.UTC)
    if column == "abort_requested" and value is not None:
        return bool(value)
    return value


def execute(connection: Connection, sql: str, arguments: Mapping[str, object], *, has_rows: bool) -> list[Row]:
    """Run one of our statements on SQLite and return its rows.

    Raises DatabaseFailure, as psycopg does, if a statement with `has_rows` returns none.
    """
    cursor = connection.execute(translate(sql), {name: stored(value) for name, value in arguments.items()})
    if has_rows and cursor.description is None:
        raise DatabaseFailure(NO_ROWS)
    return cursor.fetchall()


def add_functions(connection: Connection, clock: Callable[[], float] = time.time) -> None:
    """Give SQLite the functions of PostgreSQL that our statements call; `clock` returns seconds since 1970."""
    connection.create_function("now", 0, clock)
    connection.create_function("to_timestamp", 1, lambda seconds: seconds, deterministic=True)
    connection.create_function("date_part", 2, _date_part, deterministic=True)


def _date_part(field: str, moment: float | None) -> float | None:
    if field != "epoch":
        raise ValueError(f"date_part knows 'epoch' alone, not {field!r}")
    return moment


def check_version(version: int, newest: int) -> None:
    """Raise DatabaseFailure if the schema's version is newer than the `newest` of this release."""
    if version > newest:
        raise DatabaseFailure(TOO_NEW.format(found=version, known=newest))
