"""The commands as the page of help lists them: all, or those that are on in a repository by its settings in force."""

from __future__ import annotations

from typing import TYPE_CHECKING

from bot.app.features import REGISTRY
from bot.commands.answers import CommandRow, command_rows, offered_commands
from bot.github.repositories.in_force import config_in_force
from bot.web.help import ListCommands, ListedCommand

if TYPE_CHECKING:
    from bot.config import Config
    from bot.engine.records import Records


def list_commands_of(config: Config, records: Records) -> ListCommands:
    """Return the function that lists the commands for the page."""
    mention = config.mentions[0]

    async def listed(repository: str) -> tuple[str, list[ListedCommand]] | None:
        if not repository:
            return "", [_listed(row) for row in command_rows(REGISTRY, mention)]
        settings = await config_in_force(config, records, repository)
        if settings is None:
            return None
        rows = command_rows(offered_commands(REGISTRY, settings), mention, settings)
        return config.configured.name_of(repository) or repository, [_listed(row) for row in rows]

    return listed


def _listed(row: CommandRow) -> ListedCommand:
    return ListedCommand(
        usage=row.usage, summary=row.summary, example=row.example, who=row.who, synonyms=list(row.synonyms)
    )
