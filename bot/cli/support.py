"""Shared parts of commands: options, kinds of values, and how a command reports errors."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click
from nightjar_formats.terminal import escape_controls, quoted_text
from nightjar_lab.cli.colors import BAD, colored

from bot.cli.env_file import ENV_FILE, add_to_environment, read_env_file
from bot.cli.texts import DATABASE_AWAY, INVALID_VALUE, TWO_CONFIGS
from bot.core import logs
from bot.core.errors import SettingsError, StartError, UserError
from bot.core.patterns import Pattern
from bot.core.redaction import AWS_SECRETS, Redactor

if TYPE_CHECKING:
    from bot.config.environment import DatabaseSettings
    from bot.engine.database import Database

Command = TypeVar("Command", bound=Callable[..., Any])

AS_WRITTEN = "\b"
"""Begins a paragraph of a help text that click must not wrap."""


SECRET_VARIABLES = (
    "GITHUB_WEBHOOK_SECRET",
    "JENKINS_TOKEN",
    "NIGHTJAR_TOKEN",
    "DISCORD_WEBHOOK_URL",
    "SLACK_WEBHOOK_URL",
    *AWS_SECRETS,
)


class Matching(click.ParamType[str]):
    """A text that matches a pattern; errors describe it with `words`."""

    name = "text"

    def __init__(self, pattern: str, words: str) -> None:
        self._pattern = Pattern(pattern)
        self._words = words

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """Return the text, or fail as click does."""
        if not self._pattern.fullmatch(str(value)):
            self.fail(INVALID_VALUE.format(value=quoted_text(str(value)), words=self._words), param, ctx)
        return str(value)


REPOSITORY = Matching(r"[A-Za-z0-9_-]{1,100}/[A-Za-z0-9._-]{1,100}", "OWNER/NAME, as in octocat/compiler")

CONFIG_NAMES = (Path("app.yaml"), Path("nightjar.yaml"))
"""Catalogs of schemas list only names that no other program uses, so there is a second one."""


def default_config() -> Path:
    """Return the configuration file of this folder, app.yaml if there is none.

    Raises `click.UsageError` if there are two.
    """
    present = [name for name in CONFIG_NAMES if name.exists()]
    if len(present) > 1:
        raise click.UsageError(TWO_CONFIGS.format(names=" and ".join(map(str, present))))
    return present[0] if present else CONFIG_NAMES[0]


config_option = click.option(
    "--config",
    "config_path",
    type=click.Path(path_type=Path),
    default=default_config,
    envvar="NIGHTJAR_CONFIG",
    show_default="app.yaml, or nightjar.yaml",
    show_envvar=True,
    help="The configuration file.",
)


def _read_env_file(_: click.Context, __: click.Parameter, path: Path) -> Path:
    """Add the variables of the file to the environment, before the command reads it."""
    with stopping_at_faults():
        add_to_environment(read_env_file(path), os.environ)
    return path


def env_file_option(*, exposed: bool = False) -> Callable[[Command], Command]:
    """Return the option that names a file with variables; the command gets its path if it is `exposed`."""
    return click.option(
        "--env-file",
        type=click.Path(path_type=Path),
        default=ENV_FILE,
        show_default=True,
        expose_value=exposed,
        callback=_read_env_file,
        help="A file with environment variables, one NAME=VALUE a line. Variables that are already set win.",
    )


json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON, for programs.")


def start_logging(settings: DatabaseSettings, environ: Mapping[str, str] = os.environ) -> None:
    """Begin to log, with all secrets of this process redacted."""
    aws = [environ[name] for name in AWS_SECRETS if environ.get(name)]
    logs.configure([*settings.secrets(), *aws])


@contextmanager
def stopping_at_faults() -> Iterator[None]:
    """Print an expected error as one line for each problem, and exit with status 1. Other errors propagate."""
    lines: list[str] = []
    try:
        yield
    except Exception as error:
        lines = _lines(error)
        if not lines:
            raise
    if not lines:
        return
    # GITHUB_WEBHOOK_SECRET may hold several secrets, separated by spaces, while one replaces the other.
    redactor = Redactor(value for name in SECRET_VARIABLES for value in os.environ.get(name, "").split())
    for line in lines:
        click.echo(colored(escape_controls(redactor.text(line)), BAD), err=True)
    raise SystemExit(1)


def _lines(error: Exception) -> list[str]:
    """Return the lines to print for an error; none if it is a bug."""
    if isinstance(error, SettingsError):
        return list(error.problems)
    if isinstance(error, (StartError, UserError)):
        return [" ".join(str(error).split())]
    # Imported here: commands that only check a file need neither configuration nor database.
    from bot.config import ConfigError
    from bot.engine.database import DatabaseError
    from bot.engine.sql.errors import DatabaseFailure

    if isinstance(error, ConfigError):
        return [str(fault) for fault in error.faults]
    if isinstance(error, DatabaseError):
        return [" ".join(str(error).split())]
    if isinstance(error, DatabaseFailure):
        # Only its type: the text of a database error may quote stored data.
        return [DATABASE_AWAY.format(kind=type(error.__cause__ or error).__name__)]
    return []


def is_free(database: Database) -> bool:
    """Return whether no server uses a SQLite database. A PostgreSQL database is never free."""
    from bot.engine.database import DatabaseError

    if not database.embedded:
        return False
    try:
        with database.sole():
            return True
    except DatabaseError:
        return False
