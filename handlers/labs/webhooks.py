"""Notify a lab that a job waits for it, by a signed webhook (here) or by starting its workflow (`dispatches`).

The message holds no lease: the lab claims the job, so a message that is lost, repeated or late does no harm. The bot
sends it at least once for each attempt, each time with the same `X-Nightjar-Delivery`.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import os
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import aiohttp
from cachetools import TTLCache
from yarl import URL

from bot.core.errors import SettingsError, TryAgain, UserError
from bot.core.events import Repository
from bot.core.http import open_session, proxy_of
from bot.core.listing import counted
from bot.core.parts import PartKey
from bot.core.public_hosts import PrivateAddress, PublicResolver, check_literal
from bot.engine.internal import InternalEvent, announce
from bot.github.access import NO_PERMISSIONS, WritePermissions
from bot.plan.effect import Applied, Effect, EffectContext
from bot.plan.handler import Context, Plan, Router
from handlers.device_tests.model import DeviceJob
from handlers.device_tests.store import JOBS, JobStore
from handlers.labs import texts
from handlers.labs.calls import LAB_CALLS
from handlers.labs.dispatches import StartLabWorkflow, waiting_job
from handlers.results.config import labs_of

if TYPE_CHECKING:
    from bot.config import Config
    from bot.engine.internal import Announce
    from bot.results.settings.results import Lab

TICK = "* * * * * */5"
"""When `tick` runs; the last field counts seconds."""
MARGIN = 600.0
"""Seconds by which the clocks of two processes may differ when they queue jobs."""
REPEATED_SECONDS = 60.0
"""Seconds after which a job that still waits has a tick run again, in case the last one failed."""
MOST_SEEN = 10_000
TIMEOUT = aiohttp.ClientTimeout(total=15, sock_connect=5)
SHORTEST_SECRET = 16
# Signed as GitHub signs its webhooks:
# https://docs.github.com/en/webhooks/using-webhooks/validating-webhook-deliveries
SIGNATURE, EVENT, DELIVERY = "X-Hub-Signature-256", "X-Nightjar-Event", "X-Nightjar-Delivery"

router = Router()


@dataclass(frozen=True, slots=True)
class WaitingJob:
    """A job of a lab waits to be claimed, in an attempt."""

    lab: str
    job: str
    attempt: int


JOB_WAITS = InternalEvent(
    "nightjar.lab-webhook",
    WaitingJob,
    guid=lambda _, waiting: f"lab-webhook:{waiting.job}:{waiting.attempt}",
    lock=lambda _, waiting: f"lab-webhook:{waiting.lab}",
)


def webhook_guids(job: DeviceJob) -> list[str]:
    """Return the GUIDs under which a lab is notified of the attempts of a job."""
    attempts = range(1, job.attempt + 2)
    return [JOB_WAITS.guid(job.repository_id, WaitingJob(job.lab, job.id, attempt)) for attempt in attempts]


class LabWebhooks:
    """The webhooks of all labs in app.yaml, and which labs are notified.

    Raises `SettingsError` if a secret is not in the environment.
    """

    def __init__(
        self, config: Config, store: JobStore, accept: Announce, environ: Mapping[str, str] = os.environ
    ) -> None:
        self._config = config
        self._store = store
        self._accept = accept
        self._last_expiry = 0.0
        self._announced: set[WaitingJob] = set()
        """The jobs that the last tick has read."""
        self._seen_expiry = 0.0
        self._seen: TTLCache[WaitingJob, bool] = TTLCache(MOST_SEEN, REPEATED_SECONDS)
        """The jobs for which this process had a tick run."""
        labs = [item for settings in config.configured.entries.values() for item in labs_of(settings).items()]
        self.notified = frozenset(name for name, lab in labs if lab.webhook or lab.workflow)
        """The labs that are notified of jobs of at least one repository, by a webhook or by a workflow that starts."""
        variables = {lab.webhook.secret_env for _, lab in labs if lab.webhook is not None}
        self._secrets = {name: environ.get(name, "").strip() for name in variables}
        short = sorted(name for name, secret in self._secrets.items() if len(secret) < SHORTEST_SECRET)
        if short:
            raise SettingsError(texts.NO_WEBHOOK_SECRET.format(name=name, least=SHORTEST_SECRET) for name in short)

    def lab_of(self, repository: str, name: str) -> Lab | None:
        """Return the settings of a repository's lab; None if app.yaml has none of this name."""
        settings = self._config.repository(repository)
        return labs_of(settings).get(name) if settings is not None else None

    def secret(self, name: str) -> bytes:
        """Return the secret in an environment variable."""
        return self._secrets[name].encode()

    async def has_work(self) -> bool:
        """Return whether a job waits for which this process had no tick run lately."""
        jobs = await self._store.queued_lately(self.notified, self._seen_expiry - MARGIN)
        new = [waiting for waiting, _ in self._notified(jobs) if waiting not in self._seen]
        self._seen.update(dict.fromkeys(new, True))
        self._seen_expiry = _last_expiry(jobs, self._seen_expiry)
        return bool(new)

    async def tick(self) -> str:
        """Announce the jobs that wait for these labs, once for each attempt; return how many, for the log.

        It reads only the jobs that were queued since the last tick of this process. Another process may have announced
        them, so their deliveries have the same GUID.
        """
        jobs = await self._store.queued_lately(self.notified, self._last_expiry - MARGIN)
        announced, waiting_jobs = 0, dict(self._notified(jobs))
        for waiting, job in waiting_jobs.items():
            if waiting not in self._announced:
                repository = Repository(job.repository_id, job.repository, None)
                announced += await announce(self._accept, JOB_WAITS, repository, waiting)
        # Only now: after an error, the next tick repeats this one.
        self._last_expiry, self._announced = _last_expiry(jobs, self._last_expiry), set(waiting_jobs)
        return texts.JOBS_ANNOUNCED.format(jobs=counted(announced, "job"))

    def _notified(self, jobs: Iterable[DeviceJob]) -> Iterator[tuple[WaitingJob, DeviceJob]]:
        """Yield those of the jobs whose labs are notified, each with its attempt."""
        for job in jobs:
            settings = self.lab_of(job.repository, job.lab)
            if settings is not None and (settings.webhook or settings.workflow):
                yield WaitingJob(job.lab, job.id, job.attempt + 1), job


def _last_expiry(jobs: Iterable[DeviceJob], earlier: float) -> float:
    return max([earlier, *(job.expires_at for job in jobs)])


LAB_WEBHOOKS = PartKey[LabWebhooks]("lab-webhooks")


@router.on(JOB_WAITS.name, name="lab-webhook")
async def push_job(context: Context) -> Plan:
    """Plan to send the webhook and to start the workflow, whichever the lab has."""
    waiting = JOB_WAITS.read(context.delivery.payload)
    lab = labs_of(context.config).get(waiting.lab)
    effects: list[Effect] = []
    if lab and lab.webhook:
        effects.append(SendLabWebhook(waiting.lab, waiting.job, waiting.attempt))
    if lab and lab.workflow:
        effects.append(StartLabWorkflow(waiting.lab, waiting.job, waiting.attempt))
    return Plan(tuple(effects))


@dataclass(frozen=True, slots=True)
class SendLabWebhook:
    """Notify a lab that a job waits for it, if it still does."""

    permissions: ClassVar[WritePermissions] = NO_PERMISSIONS

    lab: str
    job: str
    attempt: int

    @property
    def effect_key(self) -> str:
        """The job and its attempt."""
        return f"lab-webhook:{self.job}:{self.attempt}"

    async def apply(self, context: EffectContext) -> Applied:
        """Send the webhook. Raises `TryAgain` if the lab does not answer, `UserError` if it refuses."""
        webhooks, calls = context.part(LAB_WEBHOOKS), context.part(LAB_CALLS)
        job = await waiting_job(context.part(JOBS), self.lab, self.job, self.attempt)
        lab = webhooks.lab_of(job.repository, self.lab) if job else None
        webhook = lab.webhook if lab else None
        if job is None or webhook is None:
            return Applied(texts.JOB_NOT_WAITING, changed=False)
        body = webhook_body(job, self.attempt)
        signature = hmac.new(webhooks.secret(webhook.secret_env), body, hashlib.sha256).hexdigest()
        headers = {
            "Content-Type": "application/json",
            SIGNATURE: f"sha256={signature}",
            EVENT: "job",
            DELIVERY: f"{self.job}-{self.attempt}",
        }
        try:
            await send_webhook(webhook.url, body, headers, allow_private=webhook.allow_private)
        except UserError:
            calls.count(self.lab, "webhook", "refused")
            raise
        except TryAgain:
            calls.count(self.lab, "webhook", "unavailable")
            raise
        calls.count(self.lab, "webhook", "sent")
        return Applied(texts.WEBHOOK_SENT.format(lab=self.lab, job=self.job))


def webhook_body(job: DeviceJob, attempt: int) -> bytes:
    """Return the body of the message; repeated messages are identical."""
    message = {
        "event": "job",
        "lab": job.lab,
        "target": job.target,
        "job": job.id,
        "attempt": attempt,
        "repository": job.repository,
        "sha": job.sha,
        "pull_request": job.pull_request or None,
        "suites": list(job.suites),
        "requested_by": job.requested_by.login,
        "approved_by": job.approved_by.login or None,
        "claims": f"/api/v1/labs/{job.lab}/claims",
    }
    return json.dumps(message).encode()


async def send_webhook(url: str, body: bytes, headers: Mapping[str, str], *, allow_private: bool) -> None:
    """POST a message; read only the status of the answer. Raises `TryAgain` and `UserError`.

    Without `allow_private`, it sends only to public addresses. It never follows a redirection. A proxy gets the address
    that was checked, not the name: the proxy would look the name up again.
    """
    # `encoded`: yarl must not change the address that app.yaml names.
    address = URL(url, encoded=True)
    host = address.host or ""
    resolver = None if allow_private else PublicResolver()
    try:
        # aiohttp asks no resolver for a literal address, so the address is checked here.
        if not allow_private:
            check_literal(host)
            if proxy_of(address) is not None:
                headers = {**headers, "Host": address.host_port_subcomponent or host}
                address = address.with_host((await PublicResolver().resolve(host, address.port or 0))[0]["host"])
                resolver = None  # for the proxy, which may be a private host
        # Each message has its own connection: there are few messages.
        connector = aiohttp.TCPConnector(resolver=resolver, use_dns_cache=False, force_close=True)
        async with (
            open_session(connector=connector) as session,
            session.post(
                address, data=body, headers=headers, allow_redirects=False, timeout=TIMEOUT, server_hostname=host
            ) as answer,
        ):
            status = answer.status
    # The resolver's refusal arrives as the cause of a ClientError.
    except (aiohttp.ClientError, TimeoutError, OSError) as error:
        if _is_private(error):
            raise UserError(texts.WEBHOOK_PRIVATE.format(host=host)) from None
        raise TryAgain(texts.WEBHOOK_UNREACHABLE.format(host=host, reason=type(error).__name__)) from None
    if 200 <= status < 300:
        return
    # These statuses say "later": RFC 9110 (408, 5xx), RFC 8470 (425), RFC 6585 (429).
    if status >= 500 or status in (408, 425, 429):
        raise TryAgain(texts.WEBHOOK_BUSY.format(host=host, status=status))
    raise UserError((texts.WEBHOOK_MOVED if status < 400 else texts.WEBHOOK_REFUSED).format(host=host, status=status))


def _is_private(error: BaseException | None) -> bool:
    """Return whether an error, or one of its causes, says that the address is not public."""
    while error is not None:
        if isinstance(error, PrivateAddress) or isinstance(getattr(error, "os_error", None), PrivateAddress):
            return True
        error = error.__cause__ or error.__context__
    return False
