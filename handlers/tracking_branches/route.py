"""The API of tracking branches: where a branch is, and why it is not at a newer commit."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from datetime import datetime
from typing import Annotated, Any, Literal

from aiohttp import web
from pydantic import BaseModel, Field

from bot.web.csv_answers import csv_answer, in_format, wants_csv
from bot.web.csv_tables import CsvTable
from bot.web.openapi import Operation, ResponseSchema, problem
from bot.web.repositories import PARAMETERS, answer, answer_about
from handlers.tracking_branches.texts import NO_TRACKING_BRANCH

ReadBranch = Callable[[str], Awaitable[Mapping[str, Any]]]
"""Maps `owner/name` to the members of the answer. Raises LookupError if nothing is known."""

# 64 digits: the repository uses SHA-256. https://git-scm.com/docs/hash-function-transition
Sha = Annotated[str, Field(pattern="^[0-9a-f]{40,64}$")]


class Blocker(BaseModel, extra="forbid"):
    """What makes a commit unfit: a status or check, or a pattern that nothing matches."""

    name: str
    state: Literal["red", "pending", "missing"]


class ListedCommit(BaseModel, extra="forbid"):
    """A commit, and its state when it was scanned."""

    sha: Sha
    title: str
    committed_at: datetime | None
    scanned_at: datetime
    verdict: Literal["chosen", "red", "pending", "missing"]
    blockers: list[Blocker]
    more: int = Field(description="Number of blockers that are not listed.")


class TrackedBranch(BaseModel, extra="forbid"):
    """Where the branch is. What is not known (yet) is null."""

    branch: str
    sha: Sha | None = Field(description="The commit at its head.")
    previous_sha: Sha | None = Field(description="The commit before the last move.")
    moved_at: datetime | None = Field(description="When the branch last moved.")
    commits: int | None = Field(description="Commits that the last move added.")
    scanned_at: datetime = Field(description="When the bot last scanned for a newer commit.")
    why: str = Field(description="The result of that scan and its reason, as a sentence.")
    trouble: str = Field(description="Why the branch cannot be moved; empty if it can.")
    why_not_newer: list[ListedCommit] = Field(description="The commits that were scanned, newest first.")


def operation(
    name: str,
    summary: str,
    model: type[TrackedBranch],
    read: ReadBranch,
    *,
    table: Callable[[Any], CsvTable] | None = None,
    most_csv_rows: int = 0,
) -> Operation:
    """Return the route `GET /api/v1/repos/{owner}/{repo}/{name}`; with a `table` of the model, in CSV too."""

    async def handler(request: web.Request) -> web.Response:
        as_csv = table is not None and wants_csv(request)
        members = await answer_about(request, read, NO_TRACKING_BRANCH.format(name=name))
        branch = model.model_validate(members)
        return csv_answer(name, table(branch)) if table and as_csv else answer(request, branch)

    return Operation(
        method="GET",
        path=f"/api/v1/repos/{{owner}}/{{repo}}/{name}",
        summary=summary,
        handler=handler,
        parameters=[*PARAMETERS, *([in_format(most_csv_rows)] if table else [])],
        answers={
            200: ResponseSchema("The branch", model),
            400: problem("Not the name of a repository, or an unknown format"),
            404: problem(f"No {name} branch is moved there, or it was not scanned yet"),
            503: problem("The database could not be read; Retry-After says when to ask again"),
        },
    )
