"""The effect that starts a build of a Jenkins job.

https://www.jenkins.io/doc/book/using/remote-access-api/, https://www.jenkins.io/doc/book/security/csrf-protection/
"""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any, ClassVar

import aiohttp
from nightjar_formats.strict_json import read_json
from yarl import URL

from bot.ci import texts
from bot.ci.addresses import server_of
from bot.config.environment import SETTINGS
from bot.core.errors import RefusedToPerson, TryAgain, UserError
from bot.core.events import Payload
from bot.core.web_json import HTTP, read_body
from bot.engine.writes import UnclearWrite
from bot.github.access import NO_PERMISSIONS, WritePermissions
from bot.github.text.markdown import code
from bot.plan.effect import Applied, EffectContext

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

TIMEOUT = aiohttp.ClientTimeout(total=30, sock_connect=5)
"""Seconds for one request."""
LARGEST = 64 * 1024
"""Bytes of an answer that are read."""
STATE = "?tree=inQueue,buildable,lastBuild%5Bnumber,building,timestamp%5D"


@dataclass(frozen=True, slots=True)
class StartJenkinsBuild:
    """Build a job again, unless a build runs or one was started since the person asked.

    `build` is the number of the build that was read, 0 if no status on the head links to one; `asked_at`
    (ISO 8601) is when the person asked.
    """

    permissions: ClassVar[WritePermissions] = NO_PERMISSIONS

    job_url: str
    build: int
    name: str
    asked_at: str

    @property
    def effect_key(self) -> str:
        """The job."""
        return f"jenkins:{self.job_url}"

    async def apply(self, context: EffectContext) -> Applied:
        """Look whether it is queued or building, then start it with its parameters' defaults.

        Raises `TryAgain` where Jenkins is unavailable or broken: after a lost answer, the next try checks whether the
        request took effect.
        """
        name = code(self.name)
        server = server_of(self.job_url, [server.url for server in context.config.jenkins])
        if server is None:
            raise RefusedToPerson(texts.JENKINS_NOT_CONFIGURED.format(name=name))
        settings = context.part(SETTINGS)
        user, token = settings.jenkins_user, settings.jenkins_token
        if not user or token is None:
            raise UserError(texts.JENKINS_NO_CREDENTIALS.format(name=name))
        authorization = aiohttp.encode_basic_auth(user, token.get_secret_value())
        jenkins = _Jenkins(context.part(HTTP), server, {"Authorization": authorization}, name)
        jobs = await self._jobs(jenkins)
        if not jobs:
            raise RefusedToPerson((texts.JENKINS_NO_JOB if self.build else texts.JENKINS_NOT_SCANNED).format(name=name))
        outcomes = [await self._start(context, jenkins, url, job) for url, job in jobs]
        text = "; ".join(outcome.text for outcome in outcomes)
        return Applied(text, changed=any(outcome.changed for outcome in outcomes))

    async def _jobs(self, jenkins: _Jenkins) -> list[tuple[str, Payload]]:
        """Return the address and state of the job, or of the head's and the merge's jobs if no link named the job.

        https://plugins.jenkins.io/github-branch-source/: a project that builds both has no `PR-12`.
        """
        if (job := await jenkins.job(self.job_url)) is not None:
            return [(self.job_url, job)]
        other_urls = () if self.build else (f"{self.job_url}-head", f"{self.job_url}-merge")
        return [(url, job) for url in other_urls if (job := await jenkins.job(url)) is not None]

    async def _start(self, context: EffectContext, jenkins: _Jenkins, url: str, job: Payload) -> Applied:
        if reason_not_to_start := self.reason_not_to_start(job):
            return Applied(reason_not_to_start, changed=False)
        if job.has("buildable") and not job.flag("buildable"):
            raise RefusedToPerson(texts.JENKINS_DISABLED.format(name=code(self.name)))
        async with context.writes.once(f"POST {url}", context.github.now):
            await jenkins.start(url)
        return Applied(texts.JENKINS_STARTED.format(name=self.name))

    def reason_not_to_start(self, job: Payload) -> str:
        """Say why the job need not be started, by the state that Jenkins reports; empty if it must be started."""
        if job.flag("inQueue"):
            return texts.JENKINS_IN_QUEUE.format(name=self.name)
        if not job.has("lastBuild"):
            return ""
        last = job.at("lastBuild")
        asked_at_ms = datetime.fromisoformat(self.asked_at).timestamp() * 1000  # Jenkins counts milliseconds
        is_newer = last.integer("timestamp") >= asked_at_ms
        # An older build without a status on this head is of another head: a build of this one would have posted it.
        if last.flag("building") and (self.build or is_newer):
            return texts.JENKINS_BUILDING.format(name=self.name, build=last.integer("number"))
        if last.integer("number") > self.build and is_newer:
            return texts.JENKINS_BUILT.format(name=self.name, build=last.integer("number"))
        return ""


@dataclass(frozen=True, slots=True)
class _Jenkins:
    """Requests to one server. Redirects are never followed: they would carry the credentials elsewhere."""

    http: aiohttp.ClientSession
    server: str
    headers: Mapping[str, str]
    name: str

    def __repr__(self) -> str:
        return f"_Jenkins({self.server})"

    async def job(self, job_url: str) -> Payload | None:
        """Return the state of a job, None if Jenkins has no such job (404)."""
        async with self._request("GET", f"{job_url}/api/json{STATE}") as response:
            if response.status == 404:
                return None
            self._check(response.status)
            return Payload(await _json(response, self.name), "Jenkins job")

    async def start(self, job_url: str) -> None:
        crumb, cookies = await self._crumb()
        # A job without parameters refuses buildWithParameters (400), one with parameters refuses build.
        for endpoint in ("buildWithParameters", "build"):
            async with self._request("POST", f"{job_url}/{endpoint}", crumb, cookies) as response:
                if response.status == 400 and endpoint == "buildWithParameters":
                    continue
                if response.status >= 500:
                    raise UnclearWrite(texts.JENKINS_ANSWERED.format(status=response.status, name=self.name))
                self._check(response.status)
                return

    async def _crumb(self) -> tuple[dict[str, str], dict[str, str]]:
        """Return Jenkins' CSRF header and the session that it belongs to; a 404 means that Jenkins wants none."""
        async with self._request("GET", f"{self.server}/crumbIssuer/api/json") as response:
            if response.status == 404:
                return {}, {}
            self._check(response.status)
            crumb = Payload(await _json(response, self.name), "Jenkins crumb")
            # A crumb is valid only in its own session:
            # https://www.jenkins.io/doc/book/security/csrf-protection/
            cookies = {key: morsel.value for key, morsel in response.cookies.items()}
            return {crumb.string("crumbRequestField"): crumb.string("crumb")}, cookies

    def _check(self, status: int) -> None:
        if status >= 500:
            raise TryAgain(texts.JENKINS_ANSWERED.format(status=status, name=self.name))
        if status == 404:
            raise RefusedToPerson(texts.JENKINS_NO_JOB.format(name=self.name))
        if status in (401, 403):
            raise UserError(texts.JENKINS_REFUSED.format(name=self.name, status=status))
        # 201: the build is in the queue.
        if status not in (200, 201):
            raise UserError(texts.JENKINS_ODD_STATUS.format(name=self.name, status=status))

    @asynccontextmanager
    async def _request(
        self, method: str, url: str, extra: Mapping[str, str] | None = None, cookies: Mapping[str, str] | None = None
    ) -> AsyncIterator[aiohttp.ClientResponse]:
        problem, sent = None, False
        try:
            async with self.http.request(
                method,
                # Don't decode the URL: the `%2F` of a branch must not become a slash.
                URL(url, encoded=True),
                headers={**self.headers, **(extra or {})},
                cookies=cookies,
                allow_redirects=False,
                timeout=TIMEOUT,
            ) as response:
                yield response
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            problem, sent = type(error).__name__, not isinstance(error, aiohttp.ClientConnectorError)
        # Raise outside the `except`: aiohttp's errors hold the request's headers, and with them the token.
        if problem is not None:
            kind = UnclearWrite if sent and method == "POST" else TryAgain
            raise kind(texts.JENKINS_NO_ANSWER.format(name=self.name, problem=problem))


async def _json(response: aiohttp.ClientResponse, name: str) -> Any:
    body = await read_body(response, LARGEST)
    with contextlib.suppress(ValueError):
        if len(body) <= LARGEST and isinstance(data := read_json(body), dict):
            return data
    raise UserError(texts.JENKINS_NOT_JSON.format(name=name))
