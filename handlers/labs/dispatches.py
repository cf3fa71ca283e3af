"""Start the workflow of a lab when a job waits for it: for labs whose devices are runners of GitHub Actions.

The workflow's inputs hold no lease. The workflow claims the job with its OIDC token, so that a run that starts twice or
late does no harm. https://docs.github.com/en/rest/actions/workflows#create-a-workflow-dispatch-event
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from bot.core.errors import UserError
from bot.github.access import ACTIONS, WRITE, WritePermissions, permission_title
from bot.github.errors import is_forbidden, is_not_found, is_unprocessable, message_of
from bot.github.text.markdown import truncate
from bot.plan.effect import Applied, EffectContext
from handlers.device_tests.model import DeviceJob, DeviceJobState
from handlers.device_tests.store import JOBS, JobStore, UnknownJob
from handlers.labs import texts
from handlers.labs.calls import LAB_CALLS
from handlers.results.config import labs_of

if TYPE_CHECKING:
    from bot.results.settings.lab_workflow import LabWorkflow
    from bot.results.settings.results import Lab

DISPATCHES = "/repos/{+repo}/actions/workflows/{workflow}/dispatches"
INPUTS = ("job", "target", "repository", "sha")
"""The inputs of the workflow. GitHub refuses an input that the workflow does not declare."""
MOST_REASON = 200


async def waiting_job(store: JobStore, lab: str, job_id: str, attempt: int) -> DeviceJob | None:
    """Return a job if it still waits to be claimed for this attempt, otherwise None."""
    try:
        job = await store.find(lab, job_id)
    except UnknownJob:
        return None
    # Until it is handed out, a job has the number of its last attempt.
    return job if job.state is DeviceJobState.QUEUED and job.attempt + 1 == attempt else None


@dataclass(frozen=True, slots=True)
class StartLabWorkflow:
    """Start the workflow of a lab for a job, if it still waits."""

    permissions: ClassVar[WritePermissions] = frozenset({ACTIONS})

    lab: str
    job: str
    attempt: int

    @property
    def effect_key(self) -> str:
        """The job and its attempt."""
        return f"lab-workflow:{self.job}:{self.attempt}"

    async def apply(self, context: EffectContext) -> Applied:
        """Start it.

        Raises `NotInstalled`, and `UserError` if the repository differs from app.yaml or refuses the workflow.
        """
        job = await waiting_job(context.part(JOBS), self.lab, self.job, self.attempt)
        if job is None:
            return Applied(texts.JOB_NOT_WAITING, changed=False)
        settings = labs_of(context.config).get(self.lab)
        if settings is None or settings.workflow is None:
            return Applied(texts.WORKFLOW_REMOVED, changed=False)
        calls = context.part(LAB_CALLS)
        try:
            await self._start(context, settings, settings.workflow, job)
        except UserError:
            calls.count(self.lab, "workflow", "refused")
            raise
        calls.count(self.lab, "workflow", "sent")
        workflow = settings.workflow
        return Applied(texts.WORKFLOW_STARTED.format(file=workflow.file, repository=workflow.repository, job=job.id))

    async def _start(self, context: EffectContext, settings: Lab, workflow: LabWorkflow, job: DeviceJob) -> None:
        repository_id, github = await context.elsewhere(workflow.repository)
        oidc = settings.identity.github_oidc if settings.identity else None
        # If somebody takes over the name of a repository, its ID differs, and its workflow could claim no job.
        if oidc is not None and oidc.repository_id != repository_id:
            raise UserError(
                texts.WORKFLOW_OTHER_REPOSITORY.format(
                    repository=workflow.repository, found=repository_id, lab=self.lab, wanted=oidc.repository_id
                )
            )
        values = (job.id, job.target, job.repository, job.sha)
        data = {"ref": workflow.branch, "inputs": dict(zip(INPUTS, values, strict=True))}
        try:
            await github.post(DISPATCHES, url_vars={"repo": workflow.repository, "workflow": workflow.file}, data=data)
        except Exception as error:
            names = {"file": workflow.file, "repository": workflow.repository, "lab": self.lab}
            if is_not_found(error):
                raise UserError(texts.WORKFLOW_MISSING.format(**names)) from error
            if is_forbidden(error) or is_unprocessable(error):
                raise UserError(
                    texts.WORKFLOW_REFUSED.format(
                        **names,
                        reason=truncate(message_of(error), MOST_REASON),
                        inputs=", ".join(INPUTS),
                        branch=workflow.branch,
                        permission=permission_title(ACTIONS, WRITE),
                    )
                ) from error
            raise
