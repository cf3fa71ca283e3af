"""Authenticate a lab's call, count it, and turn its errors into answers; all routes of labs share this."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import TypeVar

import structlog
from aiohttp import web
from gidgethub import GitHubException
from nightjar_formats.refused import Refused
from pydantic import BaseModel, ValidationError

from bot.aws.bucket import NoSpace, OtherContent
from bot.core.errors import TryAgain, UserError
from bot.engine.sql.errors import DatabaseFailure
from bot.web.bodies import Bodies, HeldBody
from bot.web.openapi import Operation, Parameter, ResponseSchema, Schema, problem
from bot.web.problems import Problem
from handlers.device_tests.store import UnknownJob
from handlers.device_tests.transitions import LeaseLost
from handlers.labs import texts
from handlers.labs.callers import LabAccess, LabCaller, RefusedCaller
from handlers.labs.calls import LabCalls

RETRY_SECONDS = 5
LAB = r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}"

Body = TypeVar("Body", bound=BaseModel)
Respond = Callable[[web.Request, LabCaller], Awaitable[tuple[web.Response, str]]]
"""Answers a call of a lab, and returns the outcome for the metrics."""

log: structlog.stdlib.BoundLogger = structlog.get_logger(__name__)


class LabAnswers:
    """Makes the routes below `/api/v1/labs/{lab}/`, whose callers are labs."""

    def __init__(self, access: LabAccess, calls: LabCalls) -> None:
        self._access = access
        self._calls = calls

    def operation(
        self,
        path: str,
        summary: str,
        respond: Respond,
        body: type[BaseModel] | Schema,
        answers: Mapping[int, ResponseSchema],
        *,
        parameters: Sequence[Parameter] = (),
        method: str = "POST",
    ) -> Operation:
        """Return the route of a path, whose last word names the call; `parameters` are those besides the lab."""
        call = [part for part in path.split("/") if not part.startswith("{")][-1]
        lab = Parameter("lab", "The lab, as app.yaml names it.", {"type": "string", "pattern": f"^{LAB}$"})

        async def handler(request: web.Request) -> web.Response:
            return await self._answer(request, call, respond)

        return Operation(
            method=method,
            path=f"/api/v1/labs/{{lab}}/{path}",
            summary=summary,
            handler=handler,
            parameters=[lab, *parameters],
            request_body=body,
            answers={
                400: problem("The body is invalid, or names a target that the lab does not have"),
                401: problem("The token is missing or invalid"),
                403: problem("The token is not for this lab"),
                429: problem("Too many requests of the lab, or waiting claims; Retry-After says when to try again"),
                503: problem("The database or the token's issuer does not answer; safe to repeat"),
                **answers,
            },
            for_labs=True,
        )

    async def _answer(self, request: web.Request, call: str, respond: Respond) -> web.Response:
        lab = request.match_info["lab"]
        try:
            # The address is checked first: to check a token costs a query or a signature, and strangers may send any
            # number of tokens.
            self._calls.admit_address(request, lab)
            caller = await self._access.authenticate(request, lab)
        except RefusedCaller as refused:
            self._calls.refuse(request, lab)
            self._calls.refused(request, lab, call, refused.reason)
            raise
        except Problem as failure:
            self._calls.count(lab, call, "too many" if failure.status == 429 else "unavailable")
            raise
        self._calls.accept(request, lab)
        try:
            self._calls.admit_lab(lab, call)
            response, outcome = await respond(request, caller)
        except UnknownJob:
            self._calls.refused(request, lab, call, "not a job of this lab")
            raise Problem(404, texts.UNKNOWN_JOB) from None
        except LeaseLost:
            self._calls.count(lab, call, "lease lost")
            log.warning("lease is lost", lab=lab, call=call, job=request.match_info["job"], by=caller.name)
            raise Problem(409, texts.LEASE_LOST) from None
        except Problem as failure:
            self._calls.count(lab, call, "too many" if failure.status == 429 else "invalid")
            raise
        except (DatabaseFailure, GitHubException, TryAgain, NoSpace, OtherContent, UserError, Refused) as error:
            answer, outcome = _failure_of(error)
            self._calls.count(lab, call, outcome)
            if answer.status >= 500:
                log.warning("lab call failed", lab=lab, call=call, reason=str(error), by=caller.name)
            raise answer from error
        self._calls.count(lab, call, outcome)
        return response


def _failure_of(error: Exception) -> tuple[Problem, str]:
    """Return the answer to a call that an error ends, and its outcome for the metrics."""
    later = {"Retry-After": str(RETRY_SECONDS)}
    if isinstance(error, DatabaseFailure):
        return Problem(503, texts.UNAVAILABLE, headers=later), "unavailable"
    if isinstance(error, GitHubException):
        return Problem(503, texts.GITHUB_UNAVAILABLE, headers=later), "unavailable"
    if isinstance(error, Refused):
        return Problem(422, str(error)), "refused run"
    if isinstance(error, OtherContent):
        return Problem(409, str(error)), "invalid"
    if isinstance(error, NoSpace):
        return Problem(507, str(error)), "no space"
    return Problem(503, str(error), headers=later), "unavailable"


async def read_body(bodies: Bodies, request: web.Request, model: type[Body]) -> Body:
    """Read the JSON body of a request. Raises `Problem`."""
    async with HeldBody(bodies, request) as raw:
        try:
            return model.model_validate_json(bytes(raw))
        except ValidationError as error:
            errors = error.errors(include_url=False)[:5]
            faults = "; ".join(_fault(details["loc"], details["msg"]) for details in errors)
            raise Problem(400, texts.BAD_BODY.format(faults=faults)) from None


def _fault(location: tuple[int | str, ...], message: str) -> str:
    return f"{'.'.join(map(str, location))[:100]}: {message}" if location else message


def json_answer(model: BaseModel, status: int = 200) -> web.Response:
    """Return an answer that no cache may store, as it may contain a lease, which lets its reader act for a job.

    Fields at their defaults are left out.
    """
    headers = {"Cache-Control": "no-store"}
    body = model.model_dump_json(exclude_defaults=True).encode()
    return web.Response(status=status, body=body, content_type="application/json", headers=headers)
