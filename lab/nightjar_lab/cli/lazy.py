"""Commands whose modules are imported when they run, so that each needs no more than it uses."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from typing import Any

import click

from nightjar_lab.cli import texts

OF_UNIX = ("fcntl", "grp", "pwd", "resource", "termios")
"""Modules that Python has on Linux and macOS only."""


class LazyGroup(click.Group):
    """A group of commands; `lazy` maps a command's name to its `MODULE:NAME` and its short help."""

    def __init__(self, *arguments: Any, lazy: Mapping[str, tuple[str, str]], **options: Any) -> None:
        super().__init__(*arguments, **options)
        self._lazy = lazy

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names of all commands."""
        return sorted([*super().list_commands(ctx), *self._lazy])

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Return the command of a name, None if there is none."""
        if cmd_name not in self._lazy:
            return super().get_command(ctx, cmd_name)
        module, _, name = self._lazy[cmd_name][0].partition(":")
        try:
            command: click.Command = getattr(import_module(module), name)
        except ModuleNotFoundError as error:
            if error.name not in OF_UNIX:
                raise
            raise click.ClickException(texts.NEEDS_UNIX.format(command=cmd_name, module=error.name)) from None
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Return the command that arguments name; the error for a typo names similar commands."""
        try:
            return super().resolve_command(ctx, args)
        except click.UsageError:
            # click knows only commands that are imported. Before click 8.5 it names none.
            no_such_command = getattr(click.exceptions, "NoSuchCommand", None)
            if no_such_command is None or self.get_command(ctx, args[0]) is not None:
                raise
            raise no_such_command(args[0], possibilities=self.list_commands(ctx), ctx=ctx) from None

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """List the commands without importing them."""
        help_texts = {name: command.get_short_help_str(formatter.width) for name, command in self.commands.items()}
        help_texts |= {name: short_help for name, (_, short_help) in self._lazy.items()}
        with formatter.section("Commands"):
            formatter.write_dl(sorted(help_texts.items()))
