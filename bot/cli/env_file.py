"""A file of environment variables, such as `nightjar.env`, that the set-up in a browser writes and commands read.

Each line is `NAME=VALUE`, a comment or empty. A value may stand in quotes, and `export` before the name, so that
shells, systemd, Docker and Compose can read the same file. A value in quotes may have several lines, and so may a key:

    GITHUB_PRIVATE_KEY="-----BEGIN RSA PRIVATE KEY-----
    MIIEpAIBAAKCAQEA…
    -----END RSA PRIVATE KEY-----"
"""

from __future__ import annotations

import os
from collections.abc import Mapping, MutableMapping
from pathlib import Path

from bot.cli.texts import ENV_FILE_LINE, ENV_FILE_TOO_LARGE, ENV_FILE_UNENDED, ENV_FILE_UNREADABLE
from bot.core.errors import SettingsError
from bot.core.patterns import Pattern

ENV_FILE = Path("nightjar.env")
"""Where commands look by default."""
LARGEST_ENV_FILE = 256 * 1024
"""Bytes; the largest key in base64 takes 18 KiB."""

CREDENTIALS = (
    "GITHUB_APP_ID",
    "GITHUB_PRIVATE_KEY",
    "GITHUB_PRIVATE_KEY_FILE",
    "GITHUB_WEBHOOK_SECRET",
    "GITHUB_WEBHOOK_SECRET_FILE",
)
"""Variables of which a server needs at least one; if none is set, it has no credentials."""

_NAME = Pattern(r"[A-Za-z_][A-Za-z0-9_]{0,200}")
_QUOTES = "\"'"
KEY_BEGINS, KEY_ENDS = "-----BEGIN", "-----END"
"""How the first and the last line of a key in PEM form begin."""


def read_env_file(path: Path) -> dict[str, str]:
    """Return the variables of a file, none if it does not exist.

    Raises `SettingsError`, whose text has the numbers of wrong lines, never their content.
    """
    try:
        with path.open("rb") as file:
            raw = file.read(LARGEST_ENV_FILE + 1)
    except FileNotFoundError:
        return {}
    except OSError as error:
        reason = (error.strerror or type(error).__name__).lower()
        raise SettingsError([ENV_FILE_UNREADABLE.format(path=path, reason=reason)]) from None
    if len(raw) > LARGEST_ENV_FILE:
        raise SettingsError([ENV_FILE_TOO_LARGE.format(path=path, most=LARGEST_ENV_FILE // 1024)])
    variables: dict[str, str] = {}
    problems = []
    lines = enumerate(raw.decode("utf-8", "replace").splitlines(), 1)
    for number, line in lines:
        text = line.strip()
        if not text or text.startswith("#"):
            continue
        name, equals, value = text.removeprefix("export ").partition("=")
        if not equals or not _NAME.fullmatch(name.strip()):
            problems.append(ENV_FILE_LINE.format(path=path, line=number))
            continue
        value_lines = [value.strip()]
        ending = _ending(value_lines[0])
        for _, next_line in lines if ending else ():
            value_lines.append(next_line.rstrip())
            last = value_lines[-1]
            if last.startswith(ending) if ending == KEY_ENDS else last.endswith(ending):
                break
        else:
            if ending:
                problems.append(ENV_FILE_UNENDED.format(path=path, line=number, ending=ending))
        variables[name.strip()] = _unquoted("\n".join(value_lines))
    if problems:
        raise SettingsError(problems)
    return variables


def add_to_environment(variables: Mapping[str, str], environ: MutableMapping[str, str]) -> None:
    """Set the variables of a file, except those that the environment already has with a value that is not blank."""
    for name, value in variables.items():
        if not environ.get(name, "").strip():
            environ[name] = value


def lacks_credentials(environ: Mapping[str, str] = os.environ) -> bool:
    """Return whether an environment has no credentials at all."""
    return not _credentials(environ)


def wants_setup(env_file: Path, config: Path, environ: Mapping[str, str] = os.environ) -> bool:
    """Return whether a server has no credentials, or only those of a set-up that ended before it wrote app.yaml.

    Raises the errors of `read_env_file`.
    """
    return lacks_credentials(environ) or (
        not config.exists() and _credentials(environ) <= _credentials(read_env_file(env_file))
    )


def _credentials(environ: Mapping[str, str]) -> set[str]:
    return {name for name in CREDENTIALS if environ.get(name, "").strip()}


def _ending(first_line: str) -> str:
    """Return what ends the last line of a value that has several lines; empty if its first line is all of it."""
    if first_line.startswith(KEY_BEGINS):
        return "" if KEY_ENDS in first_line else KEY_ENDS
    quote = first_line[:1]
    is_open = quote and quote in _QUOTES and (len(first_line) == 1 or not first_line.endswith(quote))
    return quote if is_open else ""


def _unquoted(value: str) -> str:
    if len(value) >= 2 and value[0] == value[-1] and value[0] in _QUOTES:
        return value[1:-1]
    return value
