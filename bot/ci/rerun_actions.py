"""Effects that restart workflow runs and jobs of GitHub Actions.

GitHub increases the attempt number of a restarted run. So after a crash, or for a second request, the effect finds the
higher number and does nothing.
https://docs.github.com/en/rest/actions/workflow-runs#re-run-a-workflow
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, ClassVar

from bot.ci import texts
from bot.ci.restarts import ACTION_REQUIRED, PullOrigin, why_not_own, why_not_restart
from bot.core.errors import RefusedToPerson, UserError
from bot.core.events import Payload
from bot.github.access import ACTIONS, WritePermissions
from bot.github.addresses import workflow_run_on_github
from bot.github.errors import is_conflict, is_forbidden, is_not_found, is_unprocessable
from bot.github.text.markdown import code
from bot.plan.effect import Applied, Effect, EffectContext
from bot.plan.failure_text import refusal_text

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

RUN = "/repos/{+repo}/actions/runs/{run_id}"
JOB = "/repos/{+repo}/actions/jobs/{job_id}"
OLDEST_DAYS = 30
"""https://docs.github.com/en/actions/how-tos/manage-workflow-runs/re-run-workflows-and-jobs"""


@dataclass(frozen=True, slots=True)
class RerunWorkflow:
    """Restart a workflow run, or its failed jobs; `attempt` is the attempt of the run when the plan was made."""

    permissions: ClassVar[WritePermissions] = frozenset({ACTIONS})

    run_id: int
    attempt: int
    failed_only: bool
    name: str
    origin: PullOrigin

    @property
    def effect_key(self) -> str:
        """The workflow run."""
        return f"actions-run:{self.run_id}"

    async def apply(self, context: EffectContext) -> Applied:
        """Restart the run unless it was restarted already.

        If the run ended before any job failed (cancelled, never started, never approved), there are no failed jobs, and
        GitHub refuses; then the whole run is restarted.
        """
        url_vars = {"repo": context.repository.full_name, "run_id": str(self.run_id)}
        if no_op := _no_op_outcome(
            await _startable(context, url_vars, self.name, self.origin), self.attempt, self.name
        ):
            return no_op
        for action in ("rerun-failed-jobs", "rerun") if self.failed_only else ("rerun",):
            refused = await _post_or_refusal(context, f"{RUN}/{action}", url_vars)
            if refused is None:
                restarted = texts.RUN_RESTARTED if action == "rerun" else texts.JOBS_RESTARTED
                return Applied(restarted.format(name=self.name), page=workflow_run_on_github(self.run_id))
            run = await _read_run(context, url_vars, self.name)
            if no_op := _no_op_outcome(run, self.attempt, self.name):
                return no_op
        raise refusal(run, self.name, time.time(), refused)


@dataclass(frozen=True, slots=True)
class RerunJob:
    """Restart one job of a workflow run, and the jobs that depend on it; `failed`: whether it had failed."""

    permissions: ClassVar[WritePermissions] = frozenset({ACTIONS})

    job_id: int
    run_id: int
    attempt: int
    name: str
    origin: PullOrigin
    failed: bool = False

    @property
    def effect_key(self) -> str:
        """The job."""
        return f"actions-job:{self.job_id}"

    async def apply(self, context: EffectContext) -> Applied:
        """Restart the job unless its workflow run was restarted already."""
        repository = context.repository.full_name
        url_vars = {"repo": repository, "run_id": str(self.run_id)}
        if no_op := _no_op_outcome(
            await _startable(context, url_vars, self.name, self.origin), self.attempt, self.name
        ):
            return no_op
        await self._check_job(context, repository)
        refused = await _post_or_refusal(context, f"{JOB}/rerun", {"repo": repository, "job_id": str(self.job_id)})
        if refused is None:
            page = workflow_run_on_github(self.run_id)
            return Applied(texts.RUN_RESTARTED.format(name=self.name), page=page)
        run = await _read_run(context, url_vars, self.name)
        if no_op := _no_op_outcome(run, self.attempt, self.name):
            return no_op
        raise refusal(run, self.name, time.time(), refused)

    async def _check_job(self, context: EffectContext, repository: str) -> None:
        """Raise `RefusedToPerson` unless the job belongs to the run that was checked.

        The job's ID comes from the link of a check run, and a workflow can create check runs with any link.
        """
        url_vars = {"repo": repository, "job_id": str(self.job_id)}
        try:
            job = Payload(await context.github.getitem(JOB, url_vars=url_vars), "job")
        except Exception as error:
            if is_not_found(error):
                raise UserError(texts.RUN_REMOVED.format(name=code(self.name))) from error
            raise
        if job.integer("run_id") != self.run_id:
            raise RefusedToPerson(texts.CANNOT_RESTART.format(name=code(self.name), reason=texts.OTHER_RUN))


@dataclass(frozen=True, slots=True)
class ApproveRun:
    """Approve a workflow run that waits for a maintainer, if it is the pull request's own and for this commit.

    https://docs.github.com/en/rest/actions/workflow-runs#approve-a-workflow-run-for-a-fork-pull-request
    """

    permissions: ClassVar[WritePermissions] = frozenset({ACTIONS})

    run_id: int
    sha: str
    name: str
    origin: PullOrigin

    @property
    def effect_key(self) -> str:
        """The workflow run's approval."""
        return f"actions-approval:{self.run_id}"

    async def apply(self, context: EffectContext) -> Applied:
        """Approve the run if it still waits. Raises `UserError` if it may not be approved."""
        url_vars = {"repo": context.repository.full_name, "run_id": str(self.run_id)}
        page = workflow_run_on_github(self.run_id)
        run = await _read_run(context, url_vars, self.name)
        reason = why_not_own(run, self.origin) or (texts.OTHER_COMMIT if run.text("head_sha") != self.sha else "")
        if reason:
            raise RefusedToPerson(texts.CANNOT_APPROVE.format(name=code(self.name), reason=reason))
        if run.text("conclusion") != ACTION_REQUIRED:
            return Applied(texts.NOT_AWAITING.format(name=self.name), changed=False, page=page)
        if (refused := await _post_or_refusal(context, f"{RUN}/approve", url_vars)) is not None:
            run = await _read_run(context, url_vars, self.name)
            if run.text("conclusion") == ACTION_REQUIRED:
                names = {"name": code(self.name), "url": run.text("html_url")}
                raise UserError(texts.APPROVAL_REFUSED.format(**names, reason=refusal_text(refused)))
        return Applied(texts.APPROVED.format(name=self.name), page=page)


Rerun = RerunWorkflow | RerunJob


def merge_reruns_by_run(effects: Sequence[Effect]) -> tuple[list[Effect], dict[str, str]]:
    """Merge the reruns of one workflow run into one effect: GitHub starts one attempt and refuses a second.

    Returns the effects, and a map from the key of each rerun to the key of the effect that replaces it.
    """
    groups: dict[int, list[Rerun]] = {}
    for effect in effects:
        if isinstance(effect, RerunWorkflow | RerunJob):
            groups.setdefault(effect.run_id, []).append(effect)
    joined = {run_id: _joined(reruns) for run_id, reruns in groups.items()}
    replacing_keys = {
        rerun.effect_key: joined[rerun.run_id].effect_key for reruns in groups.values() for rerun in reruns
    }
    not_yet_listed: dict[int, Effect] = dict(joined)
    listed: list[Effect] = []
    for effect in effects:
        if not isinstance(effect, RerunWorkflow | RerunJob):
            listed.append(effect)
        elif (rerun := not_yet_listed.pop(effect.run_id, None)) is not None:
            listed.append(rerun)
    return listed, replacing_keys


def _joined(reruns: Sequence[Rerun]) -> Rerun:
    """Return the smallest rerun that covers all of one workflow run: one job, all failed ones, or everything."""
    if len(set(reruns)) == 1:
        return reruns[0]
    workflow_reruns = [rerun for rerun in reruns if isinstance(rerun, RerunWorkflow)]
    failed_only = all(rerun.failed_only if isinstance(rerun, RerunWorkflow) else rerun.failed for rerun in reruns)
    name = workflow_reruns[-1].name if workflow_reruns else ", ".join(dict.fromkeys(rerun.name for rerun in reruns))
    return RerunWorkflow(reruns[0].run_id, reruns[-1].attempt, failed_only, name, reruns[0].origin)


async def _startable(context: EffectContext, url_vars: Mapping[str, str], name: str, origin: PullOrigin) -> Payload:
    """Return the current run. Raises `RefusedToPerson` if a command of this pull request must not start it."""
    run = await _read_run(context, url_vars, name)
    if reason := why_not_restart(run, origin):
        raise RefusedToPerson(texts.CANNOT_RESTART.format(name=code(name), reason=reason))
    return run


async def _read_run(context: EffectContext, url_vars: Mapping[str, str], name: str) -> Payload:
    try:
        return Payload(await context.github.getitem(RUN, url_vars=url_vars), "workflow run")
    except Exception as error:
        if is_not_found(error):
            raise RefusedToPerson(texts.RUN_REMOVED.format(name=code(name))) from error
        raise


def _no_op_outcome(run: Payload, attempt: int, name: str) -> Applied | None:
    """Return the outcome if there is nothing to do: a later attempt exists, or the run has not ended."""
    page = workflow_run_on_github(run.integer("id"))
    if run.has("run_attempt") and run.integer("run_attempt") > attempt:
        text = texts.RESTARTED_ALREADY.format(name=name, attempt=run.integer("run_attempt"))
        return Applied(text, changed=False, page=page)
    if run.text("status") != "completed":
        return Applied(texts.RUNNING_ALREADY.format(name=name), changed=False, page=page)
    return None


async def _post_or_refusal(context: EffectContext, url: str, url_vars: Mapping[str, str]) -> Exception | None:
    """Send a request without content; return the error if GitHub refuses it."""
    try:
        await context.github.post(url, url_vars=url_vars, data={})
    except Exception as error:
        # Somebody may have restarted the run meanwhile: the caller checks the run.
        if is_forbidden(error) or is_conflict(error) or is_unprocessable(error) or is_not_found(error):
            return error
        raise
    return None


def refusal(run: Payload, name: str, moment: float, refused: Exception | None) -> UserError:
    """Return why GitHub refuses to restart a run; `moment` is the current time in seconds since 1970.

    If the age of the run is not the reason, the text quotes GitHub's own reason, and the failure is logged.
    """
    quoted_name = code(name)
    began = run.text("created_at")
    if began and moment - datetime.fromisoformat(began).timestamp() > OLDEST_DAYS * 86_400:
        return RefusedToPerson(texts.RUN_TOO_OLD.format(name=quoted_name, days=OLDEST_DAYS))
    reason = refusal_text(refused) if refused is not None else ""
    return UserError(texts.RESTART_REFUSED.format(name=quoted_name, reason=reason, url=run.text("html_url")))
