"""`@ci help`: the commands that are on in this repository, and who may run each."""

from __future__ import annotations

from bot.commands.answers import help_text
from bot.commands.dialogue import CommandAnswer, CommandFunction, CommandRequest
from bot.commands.grammar import Command, CommandSpec
from bot.commands.texts import HELP_SUMMARY

HELP = CommandSpec(
    name="help",
    summary=HELP_SUMMARY,
    example="help",
    feature="help",
    synonyms=("commands", "usage"),
    own_words=False,
)


async def show_help(asked: CommandRequest, command: Command) -> CommandAnswer:
    """Answer with the table that the parser, the docs and the permission check are made from too."""
    config = asked.context.config
    text = help_text(asked.registry, asked.context.app_config.mentions, config)
    return CommandAnswer(say=text)


COMMANDS: tuple[tuple[CommandSpec, CommandFunction], ...] = ((HELP, show_help),)
