"""List the workflow runs of a commit in GitHub Actions, and rerun them.

Two lists suffice for any number of jobs: the workflow runs, and the commit's check runs, which name the jobs. A run and
its jobs have the same check suite.
https://docs.github.com/en/rest/actions/workflow-runs, https://docs.github.com/en/rest/checks/runs
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from bot.ci.base import CiRun, CiRunPart, CiState, state_of
from bot.ci.listing import Listing
from bot.ci.rerun_actions import RerunJob, RerunWorkflow
from bot.ci.restarts import PullOrigin, why_not_own
from bot.ci.texts import OTHER_APP
from bot.core.events import Payload
from bot.core.patterns import Pattern
from bot.github.commits.signals import name_of_run

if TYPE_CHECKING:
    from bot.github.client import GitHub
    from bot.plan.effect import Effect

TITLE = "GitHub Actions"
WORKFLOW_RUNS = Listing("/repos/{+repo}/actions/runs?head_sha={sha}", "workflow_runs", "Actions: read")
CHECK_RUNS = Listing("/repos/{+repo}/commits/{sha}/check-runs", "check_runs", "Checks: read")
_JOB_URL = Pattern(r"/actions/runs/\d+/job/(\d{1,18})")


@dataclass(frozen=True, slots=True)
class Actions:
    """The workflow runs of a commit, and the check runs of other Apps; those of `own_app_id` are not CI and left out.

    `origin` tells which runs are the pull request's own; the bot lists the others, but never reruns them.
    """

    own_app_id: int
    origin: PullOrigin
    title: str = TITLE

    async def runs(self, github: GitHub, repository: str, sha: str) -> list[CiRun]:
        """Return the newest run of each workflow, event, repository and branch, and the other Apps' checks."""
        url_vars = {"repo": repository, "sha": sha}
        runs = await WORKFLOW_RUNS.read(github, url_vars)
        checks = await CHECK_RUNS.read(github, url_vars)
        by_suite: dict[int, list[Payload]] = defaultdict(list)
        for check in checks:
            by_suite[check.integer("check_suite", "id") if check.has("check_suite", "id") else 0].append(check)
        workflows = [_workflow_run(run, by_suite, why_not_own(run, self.origin)) for run in newest(runs)]
        return workflows + [run for check in checks if (run := self._other_app_check(check)) is not None]

    def rerun(self, run: CiRun, *, failed_only: bool, part: CiRunPart | None = None) -> Effect:
        """Return the effect that runs a workflow, its failed jobs, or one job and what depends on it, again."""
        if part is not None and part.id:
            return RerunJob(
                job_id=part.id,
                run_id=int(run.key),
                attempt=run.attempt,
                name=part.name,
                origin=self.origin,
                failed=part.state is CiState.FAILED,
            )
        return RerunWorkflow(int(run.key), run.attempt, failed_only, run.name, self.origin)

    def _other_app_check(self, check: Payload) -> CiRun | None:
        if check.text("app", "slug") == "github-actions":
            return None
        if check.has("app", "id") and check.integer("app", "id") == self.own_app_id:
            return None
        return CiRun(
            provider=check.text("app", "name") or "another App",
            name=check.string("name"),
            key=str(check.integer("id")),
            state=state_of(check.string("status"), check.text("conclusion")),
            conclusion=check.text("conclusion"),
            url=check.text("html_url"),
            untouchable=OTHER_APP,
        )


def newest(runs: Iterable[Payload]) -> list[Payload]:
    """Return the newest run of each workflow, event, repository and branch: an older one was superseded."""
    newest_by_key: dict[tuple[int, str, int, str], Payload] = {}
    for run in runs:
        # Two forks may have branches of one name at one commit.
        head_repository = run.integer("head_repository", "id") if run.has("head_repository", "id") else 0
        key = (run.integer("workflow_id"), run.string("event"), head_repository, run.text("head_branch"))
        if key not in newest_by_key or newest_by_key[key].integer("id") < run.integer("id"):
            newest_by_key[key] = run
    return list(newest_by_key.values())


def _workflow_run(run: Payload, by_suite: Mapping[int, Iterable[Payload]], untouchable: str) -> CiRun:
    # No check run has the suite -1, whereas 0 has all check runs without a suite.
    suite = run.integer("check_suite_id") if run.has("check_suite_id") else -1
    return CiRun(
        provider=TITLE,
        name=name_of_run(run),
        key=str(run.integer("id")),
        state=state_of(run.text("status"), run.text("conclusion")),
        conclusion=run.text("conclusion"),
        url=run.text("html_url"),
        attempt=run.integer("run_attempt") if run.has("run_attempt") else 1,
        parts=tuple(_job(check) for check in by_suite.get(suite, ())),
        untouchable=untouchable,
    )


def _job(check: Payload) -> CiRunPart:
    """Return the job that a check run describes; its link has the ID of the job."""
    link = _JOB_URL.search(check.text("details_url"))
    return CiRunPart(
        name=check.string("name"),
        state=state_of(check.string("status"), check.text("conclusion")),
        id=int(link[1]) if link else check.integer("id"),
    )
