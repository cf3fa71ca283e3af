"""`nightjar token`: tokens that may read the API of a private repository."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click

from bot.app.load import load_config
from bot.cli.support import (
    AS_WRITTEN,
    REPOSITORY,
    config_option,
    env_file_option,
    json_option,
    start_logging,
    stopping_at_faults,
)
from bot.cli.texts import (
    EXPIRED,
    LIFETIME,
    LONG_NOTE,
    NO_TOKENS,
    NOT_CONFIGURED,
    REVOKED,
    SHOWN_ONCE,
    TOKEN_HEADERS,
    UNKNOWN_TOKEN,
)
from bot.config.environment import DatabaseSettings
from bot.core.errors import UserError
from bot.core.terminal import printable, table
from bot.core.utc import iso_utc, iso_utc_or_none
from bot.engine.service import Engine
from bot.engine.tokens import API, StoredToken, TokenStore

NEVER = "never"
DAY = 86_400
LONGEST_DAYS = 3_650
LONGEST_NOTE = 100


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
        self.fail(LIFETIME.format(value=value, most=LONGEST_DAYS, never=NEVER), param, ctx)


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
@click.option(
    "--expires",
    "days",
    type=Lifetime(),
    default="365d",
    show_default=True,
    help="After how many days the token expires, such as 90d; or `never`.",
)
@click.option("--note", default="", help=f"Who uses it, shown by `list`: up to {LONGEST_NOTE} characters.")
@config_option
@json_option
@env_file_option()
def create(repository: str, days: int, note: str, config_path: Path, as_json: bool) -> None:
    """Create a token that reads the API of REPOSITORY (OWNER/NAME), and print it once.

    Works beside a running server; only DATABASE_URL and app.yaml are needed.
    """
    if len(note) > LONGEST_NOTE:
        raise click.BadParameter(LONG_NOTE.format(most=LONGEST_NOTE), param_hint="--note")
    with stopping_at_faults():
        if load_config(config_path).repository(repository) is None:
            raise UserError(NOT_CONFIGURED.format(path=config_path, repository=repository))
        text, made = asyncio.run(_create(repository, days, note))
    if as_json:
        click.echo(json.dumps({"token": text, **_as_json(made)}, indent=2))
    else:
        click.echo(text)
        click.echo(SHOWN_ONCE, err=True)


@token.command("list")
@json_option
@env_file_option()
def list_tokens(as_json: bool) -> None:
    """List all tokens. Their secret parts are not stored and cannot be shown again."""
    with stopping_at_faults():
        tokens = asyncio.run(_all())
    if as_json:
        click.echo(json.dumps([_as_json(one) for one in tokens], indent=2))
    elif tokens:
        click.echo(table(TOKEN_HEADERS, [_row(one) for one in tokens]))
    else:
        click.echo(NO_TOKENS)


@token.command()
@click.argument("token_id", metavar="ID")
@json_option
@env_file_option()
def revoke(token_id: str, as_json: bool) -> None:
    """Revoke a token, at once and on every replica. `list` shows the IDs."""
    with stopping_at_faults():
        if not asyncio.run(_revoke(token_id)):
            raise UserError(UNKNOWN_TOKEN.format(id=printable(token_id)))
    click.echo(json.dumps({"id": token_id, "revoked": True}) if as_json else REVOKED.format(id=token_id))


async def _create(repository: str, days: int, note: str) -> tuple[str, StoredToken]:
    async with _engine() as engine:
        return await api_tokens(engine).create(repository, seconds=days * DAY if days else None, note=note)


async def _all() -> Sequence[StoredToken]:
    async with _engine(must_exist=True) as engine:
        return await api_tokens(engine).all()


async def _revoke(token_id: str) -> bool:
    async with _engine(must_exist=True) as engine:
        return await api_tokens(engine).revoke(token_id)


def api_tokens(engine: Engine) -> TokenStore:
    """Return the tokens that let programs read the API."""
    return TokenStore(engine.database.connector, API)


def _engine(*, must_exist: bool = False) -> Engine:
    settings = DatabaseSettings.from_environment()
    start_logging(settings)
    engine = Engine(settings.database_url.get_secret_value())
    if must_exist:
        engine.database.must_exist()
    return engine


def _row(one: StoredToken) -> tuple[str, ...]:
    expires = NEVER if one.expires_at is None else iso_utc(one.expires_at)
    if one.expired(time.time()):
        expires = EXPIRED.format(moment=expires)
    return (one.id, one.subject, iso_utc(one.created_at), expires, one.note)


def _as_json(one: StoredToken) -> dict[str, str | None]:
    return {
        "id": one.id,
        "repository": one.subject,
        "note": one.note,
        "created_at": iso_utc(one.created_at),
        "expires_at": iso_utc_or_none(one.expires_at),
    }
