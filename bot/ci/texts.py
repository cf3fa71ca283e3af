"""What people read about runs of a CI and restarting them."""

from __future__ import annotations

from collections.abc import Sequence

from bot.plan.failure_text import GRANT

CANNOT_SEE = f"I can't see all CI results: the App needs {{permissions}}. {GRANT}"

NOT_SHOWN = "I can't see all CI results. {reason}"
"""GitHub named the reason itself, so it is no missing permission."""

CANNOT_RESTART = "I can't restart {name}: {reason}."
"""`reason` is one of the texts below; its subject is the run."""
OTHER_CI = "it comes from a CI that I don't control"
OTHER_APP = "it belongs to another app. *Re-run* on the pull request's Checks tab asks that app"
OTHER_JENKINS_JOB = "it links to a Jenkins job that doesn't belong to this pull request"
OTHER_EVENT = "it was started by {event}, and I restart only runs that a pull request started"
OTHER_BRANCH = "it belongs to branch {branch}, not to this pull request"
OTHER_RUN = "that job belongs to another workflow run"
NO_FORK = "the fork that it belongs to was deleted"
AWAITS_APPROVAL = "it waits for approval by someone with write access"

CANNOT_APPROVE = "I can't approve {name}: {reason}."
OTHER_COMMIT = "it ran on another commit"

RUN_REMOVED = "The workflow run {name} no longer exists: someone deleted it."
RUN_TOO_OLD = "GitHub restarts a run only within {days} days, and {name} is older. Push a commit to start a new one."
RESTART_REFUSED = "GitHub didn't restart {name}. {reason} [The run's page]({url}) may say more."
"""`reason` quotes GitHub: `bot.plan.failure_text.refusal_text`."""
APPROVAL_REFUSED = (
    "GitHub didn't approve {name}. {reason} Someone with write access can approve it on [the run's page]({url})."
)

JENKINS_NOT_CONFIGURED = "I didn't start {name}: add its server to `rerun: jenkins:` in `app.yaml`."
JENKINS_NO_CREDENTIALS = (
    "I can't start {name}: `JENKINS_USER` and `JENKINS_TOKEN` aren't set. The bot's operator sets them to a Jenkins "
    "user who may build the job and an API token of that user."
)
JENKINS_NO_JOB = (
    "Jenkins has no job for {name} (404). The job was renamed or removed, or `JENKINS_USER` isn't allowed to see it."
)
JENKINS_NOT_SCANNED = (
    "Jenkins has no job for this pull request in {name} (404), so nothing was started. Jenkins hasn't scanned the pull "
    "request yet, or `JENKINS_USER` isn't allowed to see the job. Push a commit, or ask someone to start *Scan "
    "Repository Now* for {name} in Jenkins."
)
JENKINS_REFUSED = (
    "Jenkins refused to start {name} ({status}). `JENKINS_USER` needs *Job/Read* and *Job/Build* on it, and "
    "`JENKINS_TOKEN` must be a valid API token of that user. The bot's operator can check both."
)
JENKINS_DISABLED = "I didn't start {name}: the job is disabled in Jenkins."
JENKINS_ANSWERED = "Jenkins answered {status} for {name}"
JENKINS_NO_ANSWER = "Jenkins didn't answer for {name} ({problem})"
JENKINS_ODD_STATUS = (
    "Jenkins answered {status} when asked to start {name}. Check that its address in `app.yaml` is the *Jenkins URL* "
    "in Jenkins' own settings."
)
JENKINS_NOT_JSON = (
    "I didn't start {name}: Jenkins didn't answer with JSON. Check that its address in `app.yaml` is the *Jenkins URL* "
    "in Jenkins' own settings."
)

# Outcomes in the audit log
RUN_RESTARTED, JOBS_RESTARTED = "restarted {name}", "restarted the failed jobs of {name}"
RESTARTED_ALREADY = "{name} was already restarted: attempt {attempt}"
RUNNING_ALREADY = "{name} is already running"
APPROVED, NOT_AWAITING = "approved {name}", "{name} does not wait for approval"
JENKINS_STARTED = "started {name} in Jenkins"
JENKINS_IN_QUEUE = "{name} is already in Jenkins' queue"
JENKINS_BUILDING = "Jenkins is already building {name}: build {build}"
JENKINS_BUILT = "Jenkins already built {name} again: build {build}"


def cannot_see(permissions: Sequence[str]) -> str:
    """Return the one text for all lists that GitHub doesn't show, by the permissions that they need."""
    return CANNOT_SEE.format(permissions=" and ".join(f"*{name}*" for name in permissions))
