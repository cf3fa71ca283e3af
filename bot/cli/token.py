"""`nightjar token` and `nightjar lab token`: tokens for the API of private repositories, and for labs."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, LiteralString

import click
from nightjar_formats.terminal import escape_controls, quoted_text
from nightjar_lab.cli.options import TARGET

from bot.app.lab_lines import MAIN, app_yaml_lines, first_run_commands
from bot.app.load import load_config
from bot.cli.support import (
    AS_WRITTEN,
    REPOSITORY,
    Matching,
    config_option,
    env_file_option,
    json_option,
    start_logging,
    stopping_at_faults,
)
from bot.cli.texts import (
    EXPIRED,
    FIRST_RUN,
    FORM_NOT_WRITTEN,
    FORM_WRITTEN,
    LAB_KNOWN,
    LAB_LINES,
    LIFETIME,
    LONG_NOTE,
    NO_LAB_TOKENS,
    NO_TOKENS,
    NOT_CONFIGURED,
    REVOKED,
    SHOWN_ONCE,
    SHOWN_ONCE_LAB,
    TOKEN_HEADERS,
    UNKNOWN_LAB,
    UNKNOWN_LAB_TOKEN,
    UNKNOWN_TOKEN,
    WHICH_REPOSITORY,
)
from bot.config import Config
from bot.config.environment import DatabaseSettings
from bot.core.errors import UserError
from bot.core.terminal import table
from bot.core.utc import iso_utc, iso_utc_or_none
from bot.engine.service import Engine
from bot.engine.tokens import API, LAB, StoredToken, TokenStore
from handlers.labs.proposals.form import FORM_PATH, issue_form
from handlers.results.config import LAB_RESULTS, labs_of
from handlers.results.texts import NEEDS_BUCKET

NEVER = "never"
DAY = 86_400
LONGEST_DAYS = 3_650
LONGEST_NOTE = 100
LOCAL_URL = "http://127.0.0.1:8080"
"""Where a server listens that has no `public_url` yet."""


class Lifetime(click.ParamType[int]):
    """A number of days such as 90d, or `never` (0)."""

    name = "days"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        """Return the number of days, or fail as click does."""
        text = str(value).strip().lower()
        if text == NEVER:
            return 0
        days = text.removesuffix("d")
        if text.endswith("d") and days.isascii() and days.isdecimal() and 1 <= int(days[:9]) <= LONGEST_DAYS:
            return int(days)
        self.fail(LIFETIME.format(value=quoted_text(str(value)), most=LONGEST_DAYS, never=NEVER), param, ctx)


@dataclass(frozen=True, slots=True)
class TokenKind:
    """The purpose and the texts of the tokens of one scope.

    `subject` is the member of the JSON that names what a token is for. `find` returns that name as it is stored, None
    if app.yaml does not have it; `unknown` is the text of that error.
    """

    scope: LiteralString
    subject: str
    find: Callable[[Config, str], str | None]
    unknown: str
    none: str
    no_such_id: str
    shown_once: str

    def as_json(self, token: StoredToken) -> dict[str, str | None]:
        """Return the token as JSON, without its secret part."""
        used = {"last_used_at": iso_utc_or_none(token.used_at)} if self.notes_use else {}
        return {
            "id": token.id,
            self.subject: token.subject,
            "note": token.note,
            "created_at": iso_utc(token.created_at),
            "expires_at": iso_utc_or_none(token.expires_at),
            **used,
        }

    @property
    def notes_use(self) -> bool:
        """Whether the bot stores when such a token was last used."""
        return self.scope == LAB

    @property
    def headers(self) -> tuple[str, ...]:
        """The headers of the columns."""
        id_, created, expires, used, note = TOKEN_HEADERS
        return (id_, self.subject.upper(), created, expires, *([used] if self.notes_use else []), note)

    def row(self, token: StoredToken) -> tuple[str, ...]:
        """Return the columns of a token."""
        expires = NEVER if token.expires_at is None else iso_utc(token.expires_at)
        if token.expired(time.time()):
            expires = EXPIRED.format(moment=expires)
        used = NEVER if token.used_at is None else iso_utc(token.used_at)
        moments = (expires, used) if self.notes_use else (expires,)
        return (token.id, token.subject, iso_utc(token.created_at), *moments, token.note)


def _find_repository(config: Config, name: str) -> str | None:
    return name.lower() if config.configured.entry_for(name) is not None else None


def _find_lab(config: Config, name: str) -> str | None:
    labs = {lab for settings in config.configured.entries.values() for lab in labs_of(settings)}
    return name if name in labs else None


API_TOKENS = TokenKind(API, "repository", _find_repository, NOT_CONFIGURED, NO_TOKENS, UNKNOWN_TOKEN, SHOWN_ONCE)
LAB_TOKENS = TokenKind(LAB, "lab", _find_lab, UNKNOWN_LAB, NO_LAB_TOKENS, UNKNOWN_LAB_TOKEN, SHOWN_ONCE_LAB)
LAB_NAME = Matching(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}", "the name of a lab in app.yaml, as in example-lab")

expires_option = click.option(
    "--expires",
    "days",
    type=Lifetime(),
    default="365d",
    show_default=True,
    help="After how many days the token expires, such as 90d; or `never`.",
)
note_option = click.option("--note", default="", help=f"Who uses it, shown by `list`: up to {LONGEST_NOTE} characters.")


@click.group()
def token() -> None:
    """Create, list and revoke tokens for the API of private repositories."""


@token.command(
    epilog=f"""{AS_WRITTEN}
    Examples:
      nightjar token create octocat/compiler --note "Jenkins"
      nightjar token create octocat/compiler --expires 90d --json
    """,
)
@click.argument("repository", type=REPOSITORY)
@expires_option
@note_option
@config_option
@json_option
@env_file_option()
def create(repository: str, days: int, note: str, config_path: Path, as_json: bool) -> None:
    """Create a token that reads the API of REPOSITORY (OWNER/NAME), and print it once.

    Works beside a running server; only DATABASE_URL and app.yaml are needed.
    """
    _create(API_TOKENS, repository, days, note, config_path, as_json)


@token.command("list")
@json_option
@env_file_option()
def list_tokens(as_json: bool) -> None:
    """List all tokens. Their secret parts are not stored and cannot be shown again."""
    _list(API_TOKENS, as_json)


@token.command()
@click.argument("token_id", metavar="ID")
@json_option
@env_file_option()
def revoke(token_id: str, as_json: bool) -> None:
    """Revoke a token, immediately and on every replica. `list` shows the IDs."""
    _revoke(API_TOKENS, token_id, as_json)


@click.group()
def lab() -> None:
    """Add a lab, and manage the tokens of labs."""


@lab.group("token")
def lab_token() -> None:
    """Create, list and revoke tokens that a lab uses to get work and report on it."""


@lab.command(
    "propose",
    epilog=f"""{AS_WRITTEN}
    Examples:
      nightjar lab propose
      nightjar lab propose --write {FORM_PATH}
    """,
)
@click.option("--write", "path", type=click.Path(dir_okay=False, path_type=Path), help="Write the form into this file.")
def propose_lab(path: Path | None) -> None:
    """Print an issue form with which people propose a lab: who, which device, contacts, tier, isolation.

    Copy it into your repository. On an issue that somebody opens with it, `@ci lab accept` answers with the lines of
    app.yaml.
    """
    if path is None:
        click.echo(issue_form(), nl=False)
        return
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(issue_form(), encoding="utf-8")
    except OSError as error:
        raise click.ClickException(FORM_NOT_WRITTEN.format(path=path, problem=error.strerror)) from None
    click.echo(FORM_WRITTEN.format(path=path), err=True)


@lab_token.command(
    "create",
    epilog=f"""{AS_WRITTEN}
    Examples:
      nightjar lab token create example-lab --expires 90d
      nightjar lab token create example-lab --expires 90d --note "rack 3" --json
    """,
)
@click.argument("lab_name", metavar="LAB", type=LAB_NAME)
@expires_option
@note_option
@config_option
@json_option
@env_file_option()
def create_lab_token(lab_name: str, days: int, note: str, config_path: Path, as_json: bool) -> None:
    """Create a token for LAB, valid in all repositories that have this lab, and print it once.

    Works beside a running server; only DATABASE_URL and app.yaml are needed.
    """
    _create(LAB_TOKENS, lab_name, days, note, config_path, as_json)


@lab_token.command("list")
@json_option
@env_file_option()
def list_lab_tokens(as_json: bool) -> None:
    """List the tokens of all labs, and when each was last used. Their secret parts are not stored."""
    _list(LAB_TOKENS, as_json)


@lab_token.command("revoke")
@click.argument("token_id", metavar="ID")
@json_option
@env_file_option()
def revoke_lab_token(token_id: str, as_json: bool) -> None:
    """Revoke a lab's token, immediately and on every replica. `list` shows the IDs."""
    _revoke(LAB_TOKENS, token_id, as_json)


@lab.command(
    "add",
    epilog=f"""{AS_WRITTEN}
    Examples:
      nightjar lab add example-lab --target board
      nightjar lab add example-lab --target hexagon-v73 --target adreno --repo octocat/compiler --json
    """,
)
@click.argument("lab_name", metavar="LAB", type=LAB_NAME)
@click.option("--target", "targets", type=TARGET, multiple=True, required=True, help="A target; may be repeated.")
@click.option("--repo", "--repository", "repository", type=REPOSITORY, help="OWNER/NAME. Default: the one in app.yaml.")
@expires_option
@note_option
@config_option
@json_option
@env_file_option()
def add_lab(
    lab_name: str,
    targets: tuple[str, ...],
    repository: str | None,
    days: int,
    note: str,
    config_path: Path,
    as_json: bool,
) -> None:
    """Print all that LAB needs: its lines for app.yaml, a token, and the commands of its first run.

    Changes no file: you add the lines. The token is valid once they are there. Works beside a running server; only
    DATABASE_URL and app.yaml are needed.
    """
    with stopping_at_faults():
        config = load_config(config_path)
        name = _repository_of(config, config_path, repository)
        settings = config.configured.settings_if_installed(name)
        results = settings.of(LAB_RESULTS) if settings is not None else None
        known_targets = results.labs[lab_name].targets if results is not None and lab_name in results.labs else {}
        bucket = results.bucket if results is not None else None
        if bucket is None and not _engine().database.embedded:
            raise UserError(NEEDS_BUCKET)
        text, stored = _new_token(LAB_TOKENS, lab_name, days, note)
    # Without a nightly branch, labs test what is on the main branch.
    branch = None if results is not None or (settings is not None and settings.tested_branches) else MAIN
    lines = app_yaml_lines(name, lab_name, targets, bucket=bucket, branch=branch)
    if set(targets) <= set(known_targets):
        lines = ""
    commands = first_run_commands(config.public_url or LOCAL_URL, text, name, lab_name, targets[0])
    if as_json:
        answer = {"app_yaml": lines or None, "token": text, **LAB_TOKENS.as_json(stored), "commands": list(commands)}
        click.echo(json.dumps(answer, indent=2))
        return
    click.echo(f"{LAB_LINES.format(path=config_path)}\n\n{lines}\n" if lines else LAB_KNOWN.format(path=config_path))
    click.echo(FIRST_RUN + "\n\n" + "\n".join(commands))
    click.echo(SHOWN_ONCE_LAB, err=True)


def _repository_of(config: Config, path: Path, repository: str | None) -> str:
    """Return the repository's name as app.yaml has it. Raises `UserError` if none is given and app.yaml has several."""
    names = config.configured.named
    if repository is not None:
        return config.configured.canonical_name(repository)
    if len(names) != 1:
        raise UserError(WHICH_REPOSITORY.format(path=path, names=", ".join(names) or "none"))
    return names[0]


def _create(kind: TokenKind, name: str, days: int, note: str, config_path: Path, as_json: bool) -> None:
    with stopping_at_faults():
        subject = kind.find(load_config(config_path), name)
        if subject is None:
            raise UserError(kind.unknown.format(path=config_path, name=name))
        text, made = _new_token(kind, subject, days, note)
    if as_json:
        click.echo(json.dumps({"token": text, **kind.as_json(made)}, indent=2))
    else:
        click.echo(text)
        click.echo(kind.shown_once, err=True)


def _new_token(kind: TokenKind, subject: str, days: int, note: str) -> tuple[str, StoredToken]:
    """Store a new token; return its text too, which is not stored."""
    if len(note) > LONGEST_NOTE:
        raise click.BadParameter(LONG_NOTE.format(most=LONGEST_NOTE), param_hint="--note")

    async def make() -> tuple[str, StoredToken]:
        async with _engine() as engine:
            return await tokens_of(engine, kind).create(subject, seconds=days * DAY if days else None, note=note)

    return asyncio.run(make())


def _list(kind: TokenKind, as_json: bool) -> None:
    async def read() -> Sequence[StoredToken]:
        async with _engine(must_exist=True) as engine:
            return await tokens_of(engine, kind).all()

    with stopping_at_faults():
        tokens = asyncio.run(read())
    if as_json:
        click.echo(json.dumps([kind.as_json(token) for token in tokens], indent=2))
    elif tokens:
        click.echo(table(kind.headers, [kind.row(token) for token in tokens]))
    else:
        click.echo(kind.none)


def _revoke(kind: TokenKind, token_id: str, as_json: bool) -> None:
    async def remove() -> bool:
        async with _engine(must_exist=True) as engine:
            return await tokens_of(engine, kind).revoke(token_id)

    with stopping_at_faults():
        if not asyncio.run(remove()):
            raise UserError(kind.no_such_id.format(id=escape_controls(token_id)))
    click.echo(json.dumps({"id": token_id, "revoked": True}) if as_json else REVOKED.format(id=token_id))


def tokens_of(engine: Engine, kind: TokenKind) -> TokenStore:
    """Return the tokens of a kind."""
    return TokenStore(engine.database.connector, kind.scope)


def _engine(*, must_exist: bool = False) -> Engine:
    settings = DatabaseSettings.from_environment()
    start_logging(settings)
    engine = Engine(settings.database_url.get_secret_value())
    if must_exist:
        engine.database.must_exist()
    return engine
