"""A simulated Jenkins on this machine, over real HTTP: jobs, builds, a queue, crumbs and basic auth."""

from __future__ import annotations

import hmac
import json
import secrets
import time
from base64 import b64encode
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import quote

from aiohttp import web

from sandbox.clock import Clock
from sandbox.faults import Faults
from sandbox.model.pulls import PullRequest

CRUMB_FIELD = "Jenkins-Crumb"
SESSION = "JSESSIONID"


@dataclass(eq=False)
class Build:
    """One build; `result` is None while it is building, then SUCCESS, FAILURE, UNSTABLE or ABORTED."""

    job: JenkinsJob
    number: int
    timestamp: float
    result: str | None = None

    @property
    def url(self) -> str:
        """Return the address that a commit status links to."""
        return f"{self.job.url}/{self.number}/display/redirect"

    def finish(self, result: str) -> None:
        """End the build, and report it to GitHub."""
        self.result = result
        self.job.report("success" if result == "SUCCESS" else "failure", self)

    def finish_silently(self, result: str) -> None:
        """End the build without a report to GitHub, as an aborted build may: its status stays pending."""
        self.result = result

    def as_json(self) -> dict[str, Any]:
        """Return Jenkins' answer about a build, with the members that the bot reads."""
        return {"building": self.result is None, "result": self.result}


@dataclass(eq=False)
class JenkinsJob:
    """A job with its full name, such as `compiler-cpu/PR-1`, in which Jenkins writes a branch's slash as `%2F`.

    `status` is an error that answers every request for the job, 404 for a removed job. A `quiet` job leaves requested
    builds in the queue until `begin`.
    """

    jenkins: JenkinsSandbox
    name: str
    pull: PullRequest | None = None
    context: str = ""
    parameterized: bool = True
    quiet: bool = False
    buildable: bool = True
    status: int | None = None
    in_queue: bool = False
    builds: list[Build] = field(default_factory=list)

    @property
    def url(self) -> str:
        """Return the job's address."""
        return self.jenkins.url + self.path

    @property
    def path(self) -> str:
        """Return the path of the job on its server."""
        return "".join(f"/job/{quote(part, safe='')}" for part in self.name.split("/"))

    def trigger(self) -> None:
        """Request a build, as a push does."""
        self.in_queue = True
        if not self.quiet:
            self.begin()

    def begin(self) -> Build:
        """Start the build that is in the queue; return it."""
        self.in_queue = False
        build = Build(self, len(self.builds) + 1, time.time())
        self.builds.append(build)
        self.report("pending", build)
        return build

    def report(self, state: str, build: Build) -> None:
        """Post the state of a build as a commit status on the head of the job's pull request, if it has one."""
        if self.pull is not None:
            description = f"build {build.number}"
            self.pull.repository.set_status("jenkins", self.pull.head_sha, self.context, state, description, build.url)

    def as_json(self) -> dict[str, Any]:
        """Return Jenkins' answer about a job, with the members that the bot reads."""
        last = self.builds[-1] if self.builds else None
        return {
            "inQueue": self.in_queue,
            "buildable": self.buildable,
            "lastBuild": last
            and {"number": last.number, "building": last.result is None, "timestamp": int(last.timestamp * 1000)},
        }


class JenkinsSandbox:
    """A Jenkins. `user` and `token` are the bot's credentials; `requests` has the method and path of every request.

    `says`, if set, answers every request, as a login page would. `hosts` are the hosts and ports of the requests.
    `path` is the part of its address after the host. `crumbs` says whether a POST needs a crumb, which belongs to a
    session. Routes of `faults` are patterns for the path, or `*`.
    """

    def __init__(self, *, path: str = "", crumbs: bool = True) -> None:
        self.user = "hubot"
        self.token = secrets.token_hex(16)
        self.crumbs = crumbs
        self.redirect_to = ""
        self.says: str | None = None
        self.jobs: dict[str, JenkinsJob] = {}
        self.requests: list[tuple[str, str]] = []
        self.hosts: set[str] = set()
        self.faults = Faults()
        self.clock = Clock()
        self._path = path
        self._origin = "http://127.0.0.1:0"
        self._sessions: dict[str, str] = {}
        self._runner: web.AppRunner | None = None

    @property
    def url(self) -> str:
        """Return its address, without a slash at the end, as app.yaml names it."""
        return self._origin + self._path

    def add_job(self, name: str, **values: Any) -> JenkinsJob:
        """Add a job with any of the fields of `JenkinsJob`."""
        job = JenkinsJob(self, name, **values)
        self.jobs[job.path] = job
        return job

    @asynccontextmanager
    async def serve(self, port: int = 0) -> AsyncIterator[str]:
        """Serve on 127.0.0.1 while the block runs; yields the address."""
        application = web.Application()
        application.router.add_route("*", "/{path:.*}", self._answer)
        runner = web.AppRunner(application, access_log=None, shutdown_timeout=1.0)
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", port).start()
        self._runner = runner
        self._origin = f"http://127.0.0.1:{runner.addresses[0][1]}"
        try:
            yield self.url
        finally:
            self.faults.clear()
            await self.stop()

    async def stop(self) -> None:
        """Stop: from now on, connections fail."""
        if self._runner is not None:
            await self._runner.cleanup()
            self._runner = None

    async def _answer(self, request: web.Request) -> web.Response:
        path = request.rel_url.raw_path
        self.requests.append((request.method, path))
        self.hosts.add(request.host)
        fault = self.faults.take(request.method, path, path)
        if fault is not None and await fault.strike("before", request.transport):
            if fault.late:
                self.clock.after(fault.late, lambda: self._carry_out(request, path))
            return web.Response(status=fault.status or 500)
        answer = self._carry_out(request, path)
        if fault is not None and await fault.strike("after", request.transport):
            return web.Response(status=fault.status or 500)
        return answer

    def _carry_out(self, request: web.Request, path: str) -> web.Response:
        if self.redirect_to:
            return web.Response(status=302, headers={"Location": self.redirect_to + path})
        if self.says is not None:
            return web.Response(text=self.says)
        if not path.startswith(f"{self._path}/"):
            return web.Response(status=404)
        if refused := self._refused(request):
            return web.Response(status=refused)
        path = path.removeprefix(self._path)
        if path == "/crumbIssuer/api/json":
            return self._crumb()
        if path == "/api/json":
            return web.Response(text='{"mode": "NORMAL"}', content_type="application/json")
        parent, _, action = path.rpartition("/api/") if path.endswith("/api/json") else path.rpartition("/")
        above, _, number = parent.rpartition("/")
        job = self.jobs.get(parent) or self.jobs.get(above)
        if job is None:
            return web.Response(status=404)
        if job.status is not None:
            return web.Response(status=job.status)
        target: JenkinsJob | Build | None = job
        if job.path != parent:
            target = next((build for build in job.builds if str(build.number) == number), None)
        if request.method == "GET" and action == "json" and target is not None:
            return web.Response(text=json.dumps(target.as_json()), content_type="application/json")
        if request.method == "POST" and target is job:
            return self._build(job, action)
        return web.Response(status=404)

    def _refused(self, request: web.Request) -> int | None:
        """Return the status that refuses a request: 401 for bad credentials, 403 without any or without a crumb."""
        authorization = request.headers.get("Authorization", "")
        expected = "Basic " + b64encode(f"{self.user}:{self.token}".encode()).decode()
        if not authorization:
            return 403
        if not hmac.compare_digest(authorization.encode(), expected.encode()):
            return 401
        if request.method == "POST" and self.crumbs:
            crumb = self._sessions.get(request.cookies.get(SESSION, ""))
            if crumb is None or request.headers.get(CRUMB_FIELD) != crumb:
                return 403
        return None

    def _crumb(self) -> web.Response:
        if not self.crumbs:
            return web.Response(status=404)
        session, crumb = secrets.token_hex(8), secrets.token_hex(16)
        self._sessions[session] = crumb
        body = {"crumb": crumb, "crumbRequestField": CRUMB_FIELD}
        response = web.Response(text=json.dumps(body), content_type="application/json")
        response.set_cookie(SESSION, session, httponly=True)
        return response

    def _build(self, job: JenkinsJob, how: str) -> web.Response:
        if how not in ("build", "buildWithParameters"):
            return web.Response(status=404)
        if job.parameterized is (how == "build"):
            return web.Response(status=400)
        if not job.buildable:
            return web.Response(status=409)
        job.trigger()
        return web.Response(status=201, headers={"Location": f"{self.url}/queue/item/{len(job.builds)}/"})
