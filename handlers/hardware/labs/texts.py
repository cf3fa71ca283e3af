"""Every sentence that labs are answered with."""

from __future__ import annotations

# Who asks
NO_TOKEN = (
    "Send your token: Authorization: Bearer TOKEN. The operator of the bot creates a token with "  # noqa: S105
    "`nightjar lab token create LAB`, or names a workflow below labs.LAB.identity in app.yaml."
)
INVALID_TOKEN = (
    "The token is unknown, revoked or expired, or was not issued for this bot and this lab. For a lab's token ask "  # noqa: S105
    "the operator of the bot for a new one. A token of a workflow must be requested for the audience {audience} not "
    "more than a few minutes ago."
)
NO_PUBLIC_URL = "public_url in app.yaml"
OTHER_LAB = (
    "The token is valid, but it is not for this lab. Use the name of your own lab in the address; nightjar-lab takes "
    "it from NIGHTJAR_LAB."
)
WRONG_CLAIM = (
    "The token is valid, but its claim {claim} is not what labs.{lab}.identity in app.yaml names. Run the workflow "
    "there, or have the maintainers correct app.yaml."
)
ISSUER_AWAY = "We cannot read the keys of the token's issuer at the moment. Send the same request again later."

# How often
TOO_MANY_CALLS = "The lab {lab} makes too many calls. Try again in {seconds} s, and let a claim wait (`wait`: 60)."
TOO_MANY_REFUSED = "Too many tokens from your address were refused. Try again in {seconds} s."
TOO_MANY_WAIT = (
    "{count} claims of the lab {lab} already wait. Claim for several targets at once, or from fewer machines."
)
TOO_MANY_IN_ALL = "Too many labs wait for work at the same time. Try again in {seconds} s."

# What is asked
BAD_BODY = "The body is invalid: {faults}. /api/v1/openapi.json describes it."
NOT_A_LAB = "There is no lab of this name."
UNKNOWN_TARGET = "The lab {lab} has no target {target} in app.yaml; it has {known}."
UNKNOWN_JOB = "There is no such job of this lab. Stop, and claim another one."
LEASE_LOST = (
    "The lease is not valid any more: it expired, was given back, or the job was cancelled. Stop the test, upload "
    "nothing more, and claim again."
)
UNAVAILABLE = "The database cannot be reached. Send the same request again: it is safe to repeat."

# Webhooks to labs
NO_WEBHOOK_SECRET = (
    "{name} is not set, or has fewer than {least} characters; it is the secret of a lab's webhook in app.yaml"  # noqa: S105
)
JOBS_ANNOUNCED = "{count} jobs announced to labs"
JOB_NOT_WAITING = "the job does not wait any more"
WEBHOOK_SENT = "notified the lab {lab} that the job {job} waits"
WEBHOOK_PRIVATE = (
    "the webhook's host {host} has an address that is not public; correct webhook.url, or set webhook.allow_private"
)
WEBHOOK_UNREACHABLE = "the lab's webhook at {host} cannot be reached ({reason})"
WEBHOOK_BUSY = "the lab's webhook at {host} answered {status}"
WEBHOOK_MOVED = "the lab's webhook at {host} redirects ({status}), which is not followed; name the final address"
WEBHOOK_REFUSED = "the lab's webhook at {host} refused the message ({status}); correct webhook.url or its secret"

# Workflows of labs
WORKFLOW_STARTED = "started {file} in {repository} for the job {job}"
WORKFLOW_REMOVED = "app.yaml no longer names a workflow of the lab"
WORKFLOW_OTHER_REPOSITORY = (
    "{repository} has the ID {found}, but labs.{lab}.identity.github_oidc.repository_id in app.yaml is {wanted}; "
    "correct one of them"
)
WORKFLOW_MISSING = (
    "GitHub finds no workflow {file} on the default branch of {repository}; correct labs.{lab}.workflow in app.yaml, "
    "or add the file"
)
WORKFLOW_REFUSED = (
    "GitHub refused to start {file} in {repository}: {reason}. It needs `on: workflow_dispatch` with the inputs "
    "{inputs} on the branch {branch}, and the App needs the permission {permission} there"
)
