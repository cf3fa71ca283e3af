"""`GET /api/v1/repos/{owner}/{repo}/nightly`: the commit that labs test, and why it is not a newer one."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from datetime import datetime
from typing import Annotated, Any, Literal

from aiohttp import web
from procrastinate.exceptions import ConnectorException
from pydantic import BaseModel, ConfigDict, Field

from bot.web.openapi import Answer, Operation, problem
from bot.web.problems import Problem
from bot.web.repositories import PARAMETERS, answer, repository_of, unavailable

NO_NIGHTLY = "This bot moves no nightly branch of such a repository, or has not looked at it yet."

ReadNightly = Callable[[str], Awaitable[Mapping[str, Any]]]
"""Of `owner/name` → the members of `NightlyBranch`; raises LookupError where there is nothing to tell."""

Sha = Annotated[str, Field(pattern="^[0-9a-f]{40,64}$")]


class Blocker(BaseModel):
    """What kept a commit from being chosen: a status or check, or a pattern that nothing matches."""

    model_config = ConfigDict(extra="forbid")

    name: str
    state: Literal["red", "pending", "missing"]


class LookedAt(BaseModel):
    """A commit that was looked at."""

    model_config = ConfigDict(extra="forbid")

    sha: Sha
    title: str
    verdict: Literal["chosen", "red", "pending", "missing"]
    blockers: list[Blocker]


class NightlyBranch(BaseModel):
    """Where the branch is that labs test. What is not known (yet) is null."""

    model_config = ConfigDict(extra="forbid")

    branch: str
    sha: Sha | None = Field(description="The commit to test.")
    previous_sha: Sha | None = Field(description="Where the branch was before its last move.")
    moved_at: datetime | None = Field(description="When it moved last.")
    commits: int | None = Field(description="How many commits the last move brought.")
    looked_at: datetime = Field(description="When it was last looked for a newer commit.")
    why: str = Field(description="What came of that look, and why, in a sentence for people.")
    trouble: str = Field(description="Why the branch cannot be moved; empty while it can.")
    why_not_newer: list[LookedAt] = Field(description="The commits that were looked at, the newest first.")


def operation(read: ReadNightly) -> Operation:
    """Return the route."""

    async def handler(request: web.Request) -> web.Response:
        try:
            members = await read(repository_of(request))
        except ConnectorException as error:
            raise unavailable() from error
        except LookupError as error:
            if isinstance(error, KeyError | IndexError):  # a fault of ours, not an answer
                raise
            raise Problem(404, NO_NIGHTLY) from None
        return answer(NightlyBranch.model_validate(members))

    return Operation(
        method="GET",
        path="/api/v1/repos/{owner}/{repo}/nightly",
        summary="The commit that all labs test, and why it is not a newer one",
        handler=handler,
        parameters=PARAMETERS,
        answers={
            200: Answer("The branch", NightlyBranch),
            400: problem("Not the name of a repository"),
            404: problem("No nightly branch is moved there, or it was not looked at yet"),
            503: problem("The database could not be read; Retry-After says when to ask again"),
        },
    )
