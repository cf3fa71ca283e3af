"""Shared parts of the routes of a repository: its name in the path, and answers that must not be cached."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TypeVar

from aiohttp import web
from pydantic import BaseModel

from bot.core.patterns import Pattern
from bot.engine.sql.errors import DatabaseFailure
from bot.web.openapi import Parameter
from bot.web.pages import JSON, answer_with, compressed_page
from bot.web.problems import Problem
from bot.web.texts import DATABASE_UNAVAILABLE, INVALID_REPOSITORY

RETRY_SECONDS = 10
NAME = r"[A-Za-z0-9._-]{1,100}"
_IS_NAME = Pattern(NAME)

AboutRepository = TypeVar("AboutRepository")

PARAMETERS = (
    Parameter("owner", "Who owns the repository.", {"type": "string", "pattern": f"^{NAME}$"}),
    Parameter("repo", "The repository's name.", {"type": "string", "pattern": f"^{NAME}$"}),
)


def repository_of(request: web.Request) -> str:
    """Return the `owner/name` of a request's path. Raises `Problem`."""
    path = request.match_info
    if not all(_IS_NAME.fullmatch(name) for name in (path["owner"], path["repo"])):
        raise Problem(400, INVALID_REPOSITORY)
    return f"{path['owner']}/{path['repo']}"


async def answer_about(
    request: web.Request, ask: Callable[[str], Awaitable[AboutRepository]], nothing: str
) -> AboutRepository:
    """Return what `ask` returns for the repository in a request's path.

    Raises `Problem`: 404 with the text `nothing` after a LookupError, 503 without a database.
    """
    try:
        return await ask(repository_of(request))
    except DatabaseFailure as error:
        raise Problem(503, DATABASE_UNAVAILABLE, headers={"Retry-After": str(RETRY_SECONDS)}) from error
    except LookupError as error:
        if isinstance(error, KeyError | IndexError):  # a bug, not an answer
            raise
        raise Problem(404, nothing) from None


def answer(request: web.Request, model: BaseModel) -> web.Response:
    """Return a model as JSON; an empty 304 if the client has it already."""
    return answer_with(request, compressed_page(model.model_dump_json().encode()), JSON)
