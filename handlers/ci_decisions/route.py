"""The API routes of decisions: CI asks what to run for a pull request, or for a commit of a branch."""

from __future__ import annotations

import math
from collections.abc import Awaitable, Callable, Mapping
from typing import Annotated

from aiohttp import web
from pydantic import BaseModel, Field

from bot.config.types import BRANCH, HEADS
from bot.core.errors import TryAgain
from bot.core.patterns import Pattern
from bot.github.pull_heads import LARGEST_NUMBER
from bot.web.openapi import Operation, Parameter, ResponseSchema, problem
from bot.web.problems import Problem
from handlers.ci_decisions import texts

_NAME = r"[A-Za-z0-9._-]{1,100}"
_NUMBER = Pattern(r"[1-9][0-9]{0,9}")
# 64 digits: a repository with git's newer hash. https://git-scm.com/docs/hash-function-transition
SHA = "[0-9a-f]{40}(?:[0-9a-f]{24})?"
_IS_NAME, _IS_SHA, _IS_BRANCH = Pattern(_NAME), Pattern(SHA), Pattern(BRANCH)

Decide = Callable[[str, int, str], Awaitable[Mapping[str, object]]]
"""(`owner/name`, number, commit or "") → the members of `DecisionAnswer`.

Raises LookupError for what does not exist or is not ours.
"""

DecideCommit = Callable[[str, str, str], Awaitable[Mapping[str, object]]]
"""(`owner/name`, commit, branch or "") → the members of `DecisionAnswer`. Raises LookupError as above."""


class VerdictAnswer(BaseModel, extra="forbid"):
    """One decision, and why it was made."""

    value: bool
    reason: str = Field(description="The reason, as a sentence.")


class DecisionAnswer(BaseModel, extra="forbid"):
    """What CI should do for the head of a pull request, or for a commit of a branch."""

    sha: Annotated[str, Field(pattern=f"^{SHA}$", description="The head or the commit that this is about.")]
    run_slow_tests: VerdictAnswer
    skip_ci: VerdictAnswer
    docs_only: Annotated[
        VerdictAnswer, Field(description="Whether only documentation changed, so that CI need only build the docs.")
    ]
    rebuild_docker: VerdictAnswer


def operations(decide: Decide, decide_commit: DecideCommit) -> list[Operation]:
    """Return the routes of the API."""
    return [_pull_request_operation(decide), _commit_operation(decide_commit)]


_OF_REPOSITORY = (
    Parameter("owner", "Who owns the repository.", {"type": "string", "pattern": f"^{_NAME}$"}),
    Parameter("repo", "The repository's name.", {"type": "string", "pattern": f"^{_NAME}$"}),
)


def _pull_request_operation(decide: Decide) -> Operation:
    async def decision(request: web.Request) -> web.Response:
        return await _decision(request, decide)

    return Operation(
        method="GET",
        path="/api/v1/repos/{owner}/{repo}/pulls/{n}/decision",
        summary="What CI should do for the pull request's head",
        handler=decision,
        parameters=[
            *_OF_REPOSITORY,
            Parameter("n", "The pull request's number.", {"type": "integer", "minimum": 1, "maximum": LARGEST_NUMBER}),
            Parameter(
                "sha",
                "The commit that is built. Where that is not the head, nothing is skipped.",
                {"type": "string", "pattern": f"^{SHA}$"},
                place="query",
                required=False,
            ),
        ],
        answers={
            200: ResponseSchema("The decision", DecisionAnswer),
            400: problem("Not the name of a repository, not a number, or not a SHA"),
            404: problem("No such pull request, or its repository is not in app.yaml"),
            503: problem("The bot could not find the head commit; Retry-After says when to ask again"),
        },
    )


def _commit_operation(decide: DecideCommit) -> Operation:
    async def decision(request: web.Request) -> web.Response:
        return await _commit_decision(request, decide)

    return Operation(
        method="GET",
        path="/api/v1/repos/{owner}/{repo}/commits/{sha}/decision",
        summary="What CI should do for a commit of a branch, compared with its first parent",
        handler=decision,
        parameters=[
            *_OF_REPOSITORY,
            Parameter("sha", "The commit that is built.", {"type": "string", "pattern": f"^{SHA}$"}),
            Parameter(
                "branch",
                "The branch that is built. Everything runs if its last push did not begin at the commit's parent.",
                {"type": "string", "minLength": 1, "maxLength": 244},
                place="query",
                required=False,
            ),
        ],
        answers={
            200: ResponseSchema("The decision; if GitHub does not answer, everything runs", DecisionAnswer),
            400: problem("Not the name of a repository, not a SHA, or not the name of a branch"),
            404: problem("No such commit, or its repository is not in app.yaml"),
        },
    )


async def _commit_decision(request: web.Request, decide: DecideCommit) -> web.Response:
    repository, sha, branch = _repository(request), request.match_info["sha"], request.query.get("branch", "")
    if not _IS_SHA.fullmatch(sha):
        raise Problem(400, texts.BAD_SHA)
    if branch and (not _IS_BRANCH.fullmatch(branch) or branch.startswith(HEADS)):
        raise Problem(400, texts.BAD_BRANCH)
    return await _answer(decide(repository, sha, branch), texts.NO_SUCH_COMMIT)


async def _decision(request: web.Request, decide: Decide) -> web.Response:
    repository, number, sha = _repository(request), request.match_info["n"], request.query.get("sha", "")
    if not _NUMBER.fullmatch(number) or int(number) > LARGEST_NUMBER:
        raise Problem(400, texts.BAD_NUMBER)
    if sha and not _IS_SHA.fullmatch(sha):
        raise Problem(400, texts.BAD_SHA)
    return await _answer(decide(repository, int(number), sha), texts.NO_SUCH_PULL_REQUEST)


def _repository(request: web.Request) -> str:
    names = [request.match_info[part] for part in ("owner", "repo")]
    if not all(_IS_NAME.fullmatch(name) for name in names):
        raise Problem(400, texts.BAD_REPOSITORY)
    return "/".join(names)


async def _answer(deciding: Awaitable[Mapping[str, object]], nothing: str) -> web.Response:
    try:
        members = await deciding
    except TryAgain as error:
        seconds = str(max(1, math.ceil(error.retry_in or 10)))
        raise Problem(503, texts.GITHUB_UNAVAILABLE, headers={"Retry-After": seconds}) from error
    except LookupError as error:
        # A KeyError or IndexError is a fault of ours, not an answer.
        if isinstance(error, KeyError | IndexError):
            raise
        raise Problem(404, nothing) from None
    body = DecisionAnswer.model_validate(members).model_dump_json().encode()
    # A comment may change the answer at any moment, so nobody may cache it.
    return web.Response(body=body, content_type="application/json", headers={"Cache-Control": "no-store"})
