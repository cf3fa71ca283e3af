"""`POST /api/v1/labs/{lab}/…`: claims, heartbeats and failures of jobs. All of them are safe to repeat.

If the answer to a claim is lost, its lease expires, and the job is handed out again.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import structlog
from aiohttp import web

from bot.core.utc import iso_utc
from bot.engine.internal import Announce
from bot.web.app import STOPPING
from bot.web.bodies import Bodies
from bot.web.openapi import Operation, Parameter, ResponseSchema, problem
from bot.web.problems import Problem
from handlers.device_tests.effects import announce_step
from handlers.device_tests.store import JobStore, UnknownJob
from handlers.labs import texts
from handlers.labs.answering import RETRY_SECONDS, LabAnswers, json_answer, read_body
from handlers.labs.bodies import (
    ClaimBody,
    ExtendedLease,
    FailedBody,
    GivenBack,
    HandedOutJob,
    HeartbeatBody,
)
from handlers.labs.callers import LabAccess, LabCaller

if TYPE_CHECKING:
    from handlers.device_tests.model import DeviceJob
    from handlers.labs.claim_reply import ClaimReplies
    from handlers.labs.claims import JobClaims

MOST_BODY = 32 * 1024
"""The most bytes of one body."""
MOST_BODIES = 1 << 20
"""The most bytes of all bodies that arrive at the same time."""
MOST_WAITING = 128
"""The most claims of one lab that wait at the same time: one for each of a hundred devices, and some to spare."""
JOB = r"[A-Za-z0-9_-]{1,64}"
log: structlog.stdlib.BoundLogger = structlog.get_logger(__name__)


class LabRoutes:
    """The routes of labs. `most_waiting` is the most claims of all labs that wait at the same time."""

    def __init__(
        self,
        answers: LabAnswers,
        access: LabAccess,
        claims: JobClaims,
        store: JobStore,
        replies: ClaimReplies,
        accept: Announce,
        most_waiting: int,
    ) -> None:
        self._answers = answers
        self._access = access
        self._claims = claims
        self._store = store
        self._replies = replies
        self._accept = accept
        self._most_waiting = most_waiting
        self._bodies = Bodies(MOST_BODIES, MOST_BODY)

    def operations(self) -> list[Operation]:
        """Return the routes."""
        job = Parameter("job", "The job.", {"type": "string", "pattern": f"^{JOB}$"})
        of_job = {404: problem("No such job of this lab"), 409: problem("The lease is lost: stop")}
        return [
            self._answers.operation(
                "claims",
                "Get a job for one of a lab's devices; waits until there is one",
                self._claim,
                ClaimBody,
                {200: ResponseSchema("A job", HandedOutJob), 204: ResponseSchema("No job is queued", media_type="")},
            ),
            self._answers.operation(
                "jobs/{job}/heartbeat",
                "Extend the lease of a running test before it expires",
                self._heartbeat,
                HeartbeatBody,
                {200: ResponseSchema("The lease is extended", ExtendedLease), **of_job},
                parameters=[job],
            ),
            self._answers.operation(
                "jobs/{job}/failed",
                "Give a job back that the lab cannot do",
                self._failed,
                FailedBody,
                {200: ResponseSchema("The job is no longer yours", GivenBack), **of_job},
                parameters=[job],
            ),
        ]

    async def _claim(self, request: web.Request, caller: LabCaller) -> tuple[web.Response, str]:
        body = await read_body(self._bodies, request, ClaimBody)
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

        claimed = await self._claims.claim(caller, body.targets, body.can, body.wait, has_left, request.app[STOPPING])
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
            pull_request=job.pull_request or None,
            sha=job.sha,
            requested_by=job.requested_by.login,
            approved_by=job.approved_by.login,
            to=caller.name,
        )
        return json_answer(await self._replies.describe(claimed, body.can)), "handed out"

    async def _heartbeat(self, request: web.Request, caller: LabCaller) -> tuple[web.Response, str]:
        body, job_id = await read_body(self._bodies, request, HeartbeatBody), await self._job_id(request, caller)
        job = await self._store.heartbeat(caller.lab, job_id, body.lease, log_url=body.log_url, note=body.note)
        # The check run says that the test runs only now, because the first heartbeat has the link to the log.
        await announce_step(self._accept, job)
        return json_answer(ExtendedLease(lease_expires_at=iso_utc(job.lease_expires_at))), "extended"

    async def _failed(self, request: web.Request, caller: LabCaller) -> tuple[web.Response, str]:
        body, job_id = await read_body(self._bodies, request, FailedBody), await self._job_id(request, caller)
        job = await self._store.fail(caller.lab, job_id, body.lease, body.reason)
        log.info("job is given back", job=job.id, lab=job.lab, attempt=job.attempt, reason=job.note, by=caller.name)
        await announce_step(self._accept, job)
        return json_answer(GivenBack(state=job.state.value)), "given back"

    async def _job_id(self, request: web.Request, caller: LabCaller) -> str:
        """Return the id of the job in the address. Raises `UnknownJob` if the caller lacks its repository."""
        job: DeviceJob = await self._store.find(caller.lab, request.match_info["job"])
        if job.repository not in caller.repositories:
            raise UnknownJob(job.id)
        return job.id
