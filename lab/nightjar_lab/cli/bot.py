"""The bot as a command calls it: its address, the lab, and a token from the environment or from a command."""

from __future__ import annotations

import os
import shlex
from collections.abc import Mapping
from typing import Any

import click

from nightjar_lab import texts as agent_texts
from nightjar_lab.api import BotClient, token_of_command
from nightjar_lab.cli import texts
from nightjar_lab.cli.errors import BadSettings, needed

TOKEN = "NIGHTJAR_LAB_TOKEN"  # noqa: S105  # a variable's name

token_command_option = click.option(
    "--token-command", help=f"Prints a token, such as an OIDC token, instead of {TOKEN}."
)


def has_token(options: Mapping[str, Any]) -> bool:
    """Return whether a token of the lab is given."""
    return bool(options.get("token_command") or os.environ.get(TOKEN, "").strip())


def bot_client(options: Mapping[str, Any]) -> BotClient:
    """Return the client for the options `url`, `lab` and `token_command`. Raises `BadSettings`."""
    url = needed(options["url"], "--url", "NIGHTJAR_URL", texts.WHAT_URL)
    lab = needed(options["lab"], "--lab", "NIGHTJAR_LAB", texts.WHAT_LAB)
    if not has_token(options):
        needed("", TOKEN, "", texts.WHAT_TOKEN)
    token = os.environ.get(TOKEN, "").strip()
    command = words_of("--token-command", options.get("token_command"))
    try:
        return BotClient(url, lab, token_of_command(command) if command else lambda: token)
    except ValueError as error:
        raise BadSettings(str(error)) from None


def words_of(option: str, option_value: str | None) -> tuple[str, ...]:
    """Split an option's command as a shell does; return no words without the option. Raises `BadSettings`."""
    try:
        words = tuple(shlex.split(option_value or ""))
    except ValueError as error:
        raise BadSettings(agent_texts.BAD_COMMAND.format(option=option, reason=str(error).lower())) from None
    if option_value is not None and not words:
        raise BadSettings(agent_texts.EMPTY_COMMAND.format(option=option))
    return words
