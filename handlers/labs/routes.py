"""`POST /api/v1/labs/{lab}/…`: claims, heartbeats and failures of jobs. All of them are safe to repeat.

If the answer to a claim is lost, its lease expires, and the job is handed out again.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, TypeVar

import structlog
from aiohttp import web
from procrastinate.exceptions import ConnectorException
from pydantic import BaseModel, ValidationError

from bot.core.utc import iso_utc
from bot.engine.internal import Announce
from bot.web.app import STOPPING
from bot.web.bodies import Bodies
from bot.web.openapi import Operation, Parameter, ResponseSchema, problem
from bot.web.problems import Problem
from handlers.device_tests.effects import announce_step
from handlers.device_tests.store import JobStore, UnknownJob
from handlers.device_tests.transitions import LeaseLost
from handlers.labs import texts
from handlers.labs.bodies import (
    ClaimBody,
    ExtendedLease,
    FailedBody,
    GivenBack,
    HandedOutJob,
    HeartbeatBody,
)
from handlers.labs.callers import LabAccess, LabCaller, RefusedCaller

if TYPE_CHECKING:
    from handlers.device_tests.model import DeviceJob
    from handlers.labs.calls import LabCalls
    from handlers.labs.claim_reply import ClaimReplies
    from handlers.labs.claims import JobClaims

MOST_BODY = 32 * 1024
"""The most bytes of one body."""
MOST_BODIES = 1 << 20
"""The most bytes of all bodies that arrive at the same time."""
MOST_WAITING = 128
"""The most claims of one lab that wait at the same time: one for each of a hundred devices, and some to spare."""
RETRY_SECONDS = 5
LAB = r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}"
JOB = r"[A-Za-z0-9_-]{1,64}"

Body = TypeVar("Body", bound=BaseModel)
Respond = Callable[[web.Request, LabCaller], Awaitable[tuple[web.Response, str]]]
"""Answers a call of a lab, and returns the outcome for the metrics."""

log: structlog.stdlib.BoundLogger = structlog.get_logger(__name__)


class LabRoutes:
    """The routes of labs. `most_waiting` is the most claims of all labs that wait at the same time."""

    def __init__(
        self,
        access: LabAccess,
        calls: LabCalls,
        claims: JobClaims,
        store: JobStore,
        replies: ClaimReplies,
        accept: Announce,
        most_waiting: int,
    ) -> None:
        self._access = access
        self._calls = calls
        self._claims = claims
        self._store = store
        self._replies = replies
        self._accept = accept
        self._most_waiting = most_waiting
        self._bodies = Bodies(MOST_BODIES, MOST_BODY)

    def operations(self) -> list[Operation]:
        """Return the routes."""
        return [
            self._operation(
                "claims",
                "Get a job for one of a lab's devices; waits until there is one",
                self._claim,
                ClaimBody,
                {200: ResponseSchema("A job", HandedOutJob), 204: ResponseSchema("No job is queued", media_type="")},
            ),
            self._operation(
                "jobs/{job}/heartbeat",
                "Extend the lease of a running test before it expires",
                self._heartbeat,
                HeartbeatBody,
                {200: ResponseSchema("The lease is extended", ExtendedLease)},
            ),
            self._operation(
                "jobs/{job}/failed",
                "Give a job back that the lab cannot do",
                self._failed,
                FailedBody,
                {200: ResponseSchema("The job is no longer yours", GivenBack)},
            ),
        ]

    def _operation(
        self, name: str, summary: str, respond: Respond, body: type[BaseModel], answers: dict[int, ResponseSchema]
    ) -> Operation:
        call = name.rpartition("/")[2]
        parameters = [Parameter("lab", "The lab, as app.yaml names it.", {"type": "string", "pattern": f"^{LAB}$"})]
        if "{job}" in name:
            parameters.append(Parameter("job", "The job.", {"type": "string", "pattern": f"^{JOB}$"}))
            answers |= {404: problem("No such job of this lab"), 409: problem("The lease is lost: stop")}

        async def handler(request: web.Request) -> web.Response:
            return await self._answer(request, call, respond)

        return Operation(
            method="POST",
            path=f"/api/v1/labs/{{lab}}/{name}",
            summary=summary,
            handler=handler,
            parameters=parameters,
            request_body=body,
            answers={
                **answers,
                400: problem("The body is invalid, or names a target that the lab does not have"),
                401: problem("The token is missing or invalid"),
                403: problem("The token is not for this lab"),
                429: problem("Too many requests of the lab, or waiting claims; Retry-After says when to try again"),
                503: problem("The database or the token's issuer does not answer; safe to repeat"),
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
            self._calls.admit_lab(lab)
            response, outcome = await respond(request, caller)
        except UnknownJob:
            self._calls.refused(request, lab, call, "not a job of this lab")
            raise Problem(404, texts.UNKNOWN_JOB) from None
        except LeaseLost:
            self._calls.count(lab, call, "lease lost")
            log.warning("lease is lost", lab=lab, call=call, job=request.match_info["job"], by=caller.name)
            raise Problem(409, texts.LEASE_LOST) from None
        except ConnectorException as error:
            self._calls.count(lab, call, "unavailable")
            raise Problem(503, texts.UNAVAILABLE, headers={"Retry-After": str(RETRY_SECONDS)}) from error
        except Problem as failure:
            self._calls.count(lab, call, "too many" if failure.status == 429 else "invalid")
            raise
        self._calls.count(lab, call, outcome)
        return response

    async def _claim(self, request: web.Request, caller: LabCaller) -> tuple[web.Response, str]:
        body = await self._read(request, ClaimBody)
        lab = caller.lab
        known_targets = {target for settings in self._access.labs(lab).values() for target in settings.targets}
        for target in body.targets:
            if target not in known_targets:
                names = ", ".join(sorted(known_targets))
                raise Problem(400, texts.UNKNOWN_TARGET.format(lab=lab, target=target, known=names))
        # Only claims that wait hold a connection; the others are answered at once.
        if body.wait and self._claims.waiting(lab) >= MOST_WAITING:
            detail = texts.TOO_MANY_WAIT.format(count=MOST_WAITING, lab=lab)
            raise Problem(429, detail, headers={"Retry-After": str(RETRY_SECONDS)})
        if body.wait and self._claims.waiting() >= self._most_waiting:
            detail = texts.TOO_MANY_IN_ALL.format(seconds=RETRY_SECONDS)
            raise Problem(503, detail, headers={"Retry-After": str(RETRY_SECONDS)})

        def has_left() -> bool:
            return request.transport is None or request.transport.is_closing()

        claimed = await self._claims.claim(caller, body.targets, body.wait, has_left, request.app[STOPPING])
        if claimed is None:
            return web.Response(status=204), "nothing"
        job = claimed.job
        log.info(
            "job is handed out",
            job=job.id,
            lab=lab,
            target=job.target,
            attempt=job.attempt,
            repository=job.repository,
            pull_request=job.pull_request,
            sha=job.sha,
            requested_by=job.requested_by.login,
            approved_by=job.approved_by.login,
            to=caller.name,
        )
        return _json(await self._replies.describe(claimed)), "handed out"

    async def _heartbeat(self, request: web.Request, caller: LabCaller) -> tuple[web.Response, str]:
        body, job_id = await self._read(request, HeartbeatBody), await self._job_id(request, caller)
        job = await self._store.heartbeat(caller.lab, job_id, body.lease, log_url=body.log_url, note=body.note)
        # The check run says that the test runs only now, because the first heartbeat has the link to the log.
        await announce_step(self._accept, job)
        return _json(ExtendedLease(lease_expires_at=iso_utc(job.lease_expires_at))), "extended"

    async def _failed(self, request: web.Request, caller: LabCaller) -> tuple[web.Response, str]:
        body, job_id = await self._read(request, FailedBody), await self._job_id(request, caller)
        job = await self._store.fail(caller.lab, job_id, body.lease, body.reason)
        log.info("job is given back", job=job.id, lab=job.lab, attempt=job.attempt, reason=job.note, by=caller.name)
        await announce_step(self._accept, job)
        return _json(GivenBack(state=job.state.value)), "given back"

    async def _job_id(self, request: web.Request, caller: LabCaller) -> str:
        """Return the id of the job in the address. Raises `UnknownJob` if the caller lacks its repository."""
        job: DeviceJob = await self._store.find(caller.lab, request.match_info["job"])
        if job.repository not in caller.repositories:
            raise UnknownJob(job.id)
        return job.id

    async def _read(self, request: web.Request, model: type[Body]) -> Body:
        async with self._bodies.read(request) as raw:
            try:
                return model.model_validate_json(bytes(raw))
            except ValidationError as error:
                errors = error.errors(include_url=False)[:5]
                faults = "; ".join(_fault(details["loc"], details["msg"]) for details in errors)
                raise Problem(400, texts.BAD_BODY.format(faults=faults)) from None


def _fault(location: tuple[int | str, ...], message: str) -> str:
    return f"{'.'.join(map(str, location))[:100]}: {message}" if location else message


def _json(model: BaseModel) -> web.Response:
    # The answer may contain a lease, which lets its reader act for the job.
    headers = {"Cache-Control": "no-store"}
    return web.Response(body=model.model_dump_json().encode(), content_type="application/json", headers=headers)
