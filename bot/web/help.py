"""`GET /help`: the commands, or those that are on in one repository, and who may use each.

Answers to invalid commands link it if `public_url` is set.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Annotated

from pydantic import BaseModel, Field, StringConstraints

from bot.core.page_paths import HELP
from bot.core.parts import PartKey
from bot.web.page_routes import Page, PageRequest
from bot.web.repositories import NAME

API = "/api/v1/help"


class HelpQuery(BaseModel, extra="forbid"):
    """Whose commands are listed."""

    repo: Annotated[str, StringConstraints(pattern=f"^{NAME}/{NAME}$")] | None = Field(
        default=None, description="Only the commands that are on in this repository, as OWNER/NAME; default: all."
    )


class ListedCommand(BaseModel, extra="forbid"):
    """A command, as people write it."""

    usage: str
    summary: str
    example: str = Field(description="An example with an argument; empty for a command without one.")
    who: str = Field(description="Who may use it.")
    synonyms: list[str]


class HelpDetails(BaseModel, extra="forbid"):
    """Commands, and the names that address the bot."""

    repository: str | None = Field(
        description="The repository in which these commands are on. Null: all commands, because the query names no "
        "repository, or one whose settings the reader may not see."
    )
    mentions: list[str]
    commands: list[ListedCommand]


ListCommands = Callable[[str], Awaitable[tuple[str, Sequence[ListedCommand]] | None]]
"""Returns the name of a repository as app.yaml has it, and the commands that are on there; None if it has none.

For the empty name, it returns all commands.
"""

COMMAND_LIST = PartKey[ListCommands]("list of commands")


def help_page(list_commands: ListCommands, mentions: Sequence[str]) -> Page:
    """Return the page that lists the commands and the names (`mentions`) that address the bot."""

    async def load(page_request: PageRequest) -> HelpDetails:
        repository = page_request.query.repo or ""
        pages, viewers = page_request.pages, page_request.pages.viewers
        visible = repository and (
            await pages.is_public(repository) or await viewers.may_read(page_request.request, repository)
        )
        name, commands = await list_commands(repository if visible else "") or await list_commands("") or ("", ())
        return HelpDetails(repository=name or None, mentions=list(mentions), commands=list(commands))

    return Page(
        path=HELP,
        api_path=API,
        summary="All commands, or those of one repository, and who may use each",
        template="help.html",
        model=HelpDetails,
        query=HelpQuery,
        load=load,
    )
