"""Read the statuses that Jenkins sets on a commit, and build their jobs again.

The links of the statuses say which jobs exist, so there is no list of jobs that could become outdated.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING
from urllib.parse import quote

from bot.ci.addresses import JenkinsBuildLink, parse_build
from bot.ci.base import FAILURES, CiRun, CiRunPart, CiState
from bot.ci.listing import Listing
from bot.ci.rerun_jenkins import StartJenkinsBuild
from bot.ci.texts import OTHER_CI, OTHER_JENKINS_JOB

if TYPE_CHECKING:
    from bot.ci.jenkins_builds import JenkinsBuilds
    from bot.core.events import Payload
    from bot.github.client import GitHub
    from bot.github.commits.ours import Ours
    from bot.plan.effect import Effect

TITLE = "Jenkins"
STATUSES = Listing("/repos/{+repo}/commits/{sha}/status", "statuses", "Commit statuses: read")
NEVER_BEGAN = "no status"
ENDINGS = ("pr-head", "pr-merge")
"""The ends of the contexts of pull requests' statuses."""
JENKINS_LABEL = "continuous-integration/jenkins"
"""The beginning of the contexts of pull requests' statuses, unless the job has a label of its own.

People give a job's name as its label: `tvm-gpu/pr-head`. https://plugins.jenkins.io/github-scm-trait-notification-context/
"""
SUCCESS = "SUCCESS"
"""The result of a green build; others are FAILURE, UNSTABLE, ABORTED and NOT_BUILT."""


@dataclass(frozen=True, slots=True)
class JenkinsProvider:
    """The Jenkins builds of a pull request's commit, and the statuses of other CIs, which the bot cannot start.

    `servers` are the addresses that app.yaml names; `number` says which jobs are the pull request's own;
    `ours` says which statuses this bot has set; `asked_at` is when the person asked, ISO 8601.
    """

    servers: tuple[str, ...]
    number: int
    ours: Ours
    asked_at: str
    expected: tuple[tuple[str, str], ...] = ()
    """Jobs that app.yaml names: the server, and the name of a multibranch job on it."""
    builds: JenkinsBuilds | None = None
    """The server to ask how builds with pending statuses ended; without it, the statuses count."""
    title: str = TITLE

    async def runs(self, github: GitHub, repository: str, sha: str) -> list[CiRun]:
        """Return one run for each job that the commit's newest statuses link to, and the other statuses."""
        statuses = await STATUSES.read(github, {"repo": repository, "sha": sha})
        runs = self.runs_of([status for status in statuses if not self.ours.has_status(status)])
        return await self._with_results(runs)

    async def _with_results(self, runs: list[CiRun]) -> list[CiRun]:
        """Return the runs; those that have ended according to Jenkins have Jenkins' result."""
        # Only the pull request's own jobs below a server of app.yaml have a server: no other link is ever called.
        pending = {f"{run.key}/{run.attempt}": run for run in runs if run.server and run.state is CiState.RUNNING}
        if self.builds is None or not pending:
            return runs
        results = {pending[url].key: result for url, result in (await self.builds.results(list(pending))).items()}
        return [_with_result(run, results[run.key]) if run.key in results else run for run in runs]

    def runs_of(self, statuses: Iterable[Payload]) -> list[CiRun]:
        """Return the runs that the newest statuses of a commit describe, one status of each context."""
        jobs: dict[str, list[tuple[JenkinsBuildLink, Payload]]] = {}
        other_runs = []
        for status in statuses:
            build = parse_build(status.text("target_url"), self.servers)
            if build is not None and build.is_job_of(self.number):
                jobs.setdefault(build.job_url, []).append((build, status))
            else:
                other_runs.append(_other(status, OTHER_JENKINS_JOB if build else OTHER_CI))
        configured = {(server, *name.split("/")): name for server, name in self.expected}
        # Not by the address of the job: if Jenkins builds both the head and the merge, there is no `PR-12`.
        begun = {statuses_of_job[0][0].project for statuses_of_job in jobs.values()}
        missing = [
            self._missing(server, name) for server, name in self.expected if (server, *name.split("/")) not in begun
        ]
        runs = [
            _job(statuses_of_job, configured.get(statuses_of_job[0][0].project)) for statuses_of_job in jobs.values()
        ]
        return runs + missing + other_runs

    def _missing(self, server: str, name: str) -> CiRun:
        path = "".join(f"/job/{quote(part, safe='')}" for part in (*name.split("/"), f"PR-{self.number}"))
        job_url = f"{server}{path}"
        contexts = (f"{label}/{ending}" for label in (name, JENKINS_LABEL) for ending in ENDINGS)
        return CiRun(
            provider=TITLE,
            name=name,
            key=job_url,
            state=CiState.MISSING,
            conclusion=NEVER_BEGAN,
            url=job_url,
            attempt=0,
            parts=tuple(CiRunPart(context, CiState.MISSING) for context in contexts),
            server=server,
        )

    def rerun(self, run: CiRun, *, failed_only: bool, part: CiRunPart | None = None) -> Effect:
        """Return the effect that builds a job again. Jenkins has no partial builds, so the whole job is built."""
        return StartJenkinsBuild(job_url=run.key, build=run.attempt, name=run.name, asked_at=self.asked_at)


def _job(statuses_of_builds: Sequence[tuple[JenkinsBuildLink, Payload]], configured: str | None) -> CiRun:
    """Return one run for the statuses of a job. The statuses of its newest build determine its state.

    `configured` is the name that app.yaml gives the job.
    """
    latest = max((build for build, _ in statuses_of_builds), key=lambda build: build.number)
    current = [status for build, status in statuses_of_builds if build.number == latest.number]
    states = [_state(status) for status in current]
    state = next(
        (candidate for candidate in (CiState.RUNNING, CiState.FAILED) if candidate in states), CiState.SUCCEEDED
    )
    decisive = current[states.index(state)]
    contexts = [status.string("context") for _, status in statuses_of_builds]
    names = [*contexts, latest.name, *([configured] if configured else [])]
    return CiRun(
        provider=TITLE,
        name=contexts[0] if len(contexts) == 1 else latest.name,
        key=latest.job_url,
        state=state,
        conclusion=decisive.string("state"),
        url=decisive.text("target_url"),
        attempt=latest.number,
        parts=tuple(CiRunPart(name=name, state=state) for name in dict.fromkeys(names)),
        server=latest.server,
    )


def _with_result(run: CiRun, result: str) -> CiRun:
    """Return a run with the result that Jenkins reports; a build that is not green counts as failed."""
    state = CiState.SUCCEEDED if result == SUCCESS else CiState.FAILED
    parts = tuple(replace(part, state=state) for part in run.parts)
    return replace(run, state=state, parts=parts, conclusion=result.lower(), is_outdated=True)


def _other(status: Payload, untouchable: str) -> CiRun:
    return CiRun(
        provider="",
        name=status.string("context"),
        key=status.string("context"),
        state=_state(status),
        conclusion=status.string("state"),
        url=status.text("target_url"),
        untouchable=untouchable,
    )


def _state(status: Payload) -> CiState:
    state = status.string("state")
    if state == "pending":
        return CiState.RUNNING
    return CiState.FAILED if state in FAILURES else CiState.SUCCEEDED
