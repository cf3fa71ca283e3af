"""`@ci help`: the commands that are on in this repository, and who may run each."""

from __future__ import annotations

from bot.commands.answers import help_text, offered_commands
from bot.commands.dialogue import CommandAnswer, CommandFunction, CommandRequest
from bot.commands.grammar import Command, CommandSpec
from bot.commands.texts import HELP_SUMMARY
from bot.feature import Feature
from handlers.help.config import HELP, KEYS

SPEC = CommandSpec(
    name="help",
    summary=HELP_SUMMARY,
    example="help",
    feature=HELP.name,
    synonyms=("commands", "usage"),
    own_words=False,
)


async def show_help(request: CommandRequest, command: Command) -> CommandAnswer:
    """Answer with the table of commands, made from the declarations that the parser and the permission check use."""
    context = request.context
    specs = offered_commands(request.registry, context.config)
    details = {spec.name: await spec.details(context) for spec in specs if spec.details}
    mentions = sorted(context.app_config.mentions, key=lambda mention: mention != request.mention)
    text = help_text(request.registry, mentions, context.config, details)
    return CommandAnswer(say=text)


COMMANDS: tuple[tuple[CommandSpec, CommandFunction], ...] = ((SPEC, show_help),)

FEATURE = Feature(name="help", config=KEYS, commands=COMMANDS)
