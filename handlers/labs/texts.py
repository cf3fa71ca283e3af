"""Every sentence that labs are answered with."""

from __future__ import annotations

# Who asks
NO_TOKEN = (
    "Send your token: Authorization: Bearer TOKEN. The operator of the bot creates a token with "  # noqa: S105
    "`nightjar lab token create LAB`, or names a workflow below labs.LAB.identity in app.yaml."
)
INVALID_TOKEN = (
    "The token is unknown, revoked or expired, or was not issued for this bot and this lab. To replace a lab's token, "  # noqa: S105
    "ask the operator of the bot. A workflow must request its token for the audience {audience}, at most a few minutes "
    "before it sends it."
)
NO_PUBLIC_URL = "public_url in app.yaml"
OTHER_LAB = (
    "The token is valid, but for another lab. Use your own lab's name in the address; nightjar-lab takes "
    "it from NIGHTJAR_LAB."
)
WRONG_CLAIM = (
    "The token is valid, but its claim {claim} differs from labs.{lab}.identity in app.yaml. Run the workflow that "
    "app.yaml names, or ask the maintainers to correct app.yaml."
)
ISSUER_AWAY = "We cannot fetch the keys of the token's issuer right now. Send the same request again later."

# How often
TOO_MANY_CALLS = (
    "The lab {lab} sends too many requests. Try again in {seconds} s, and let each claim wait for a job (`wait`: 60)."
)
TOO_MANY_FILES = "The lab {lab} sends too many files. Try again in {seconds} s."
TOO_MANY_REFUSED = "Too many tokens from your address were refused. Try again in {seconds} s."
TOO_MANY_WAIT = (
    "The lab {lab} already has {count} claims waiting. Claim for several targets at once, or from fewer machines."
)
TOO_MANY_IN_ALL = "Too many labs are waiting for work. Try again in {seconds} s."

# What is asked
BAD_BODY = "The body is invalid: {faults}. /api/v1/openapi.json describes it."
UNKNOWN_TARGET = "The lab {lab} has no target {target} in app.yaml. Available: {known}."
UNKNOWN_JOB = "This lab has no such job. Stop, and claim another one."
LEASE_LOST = (
    "The lease is no longer valid: it expired or was returned, or the job was cancelled. Stop the test, upload nothing "
    "more, and claim again."
)
UNAVAILABLE = "We cannot reach the database. Send the same request again: it is safe to repeat."

GITHUB_UNAVAILABLE = (
    "We cannot ask GitHub about the commit right now. Send the same request again: it is safe to repeat."
)

# Uploads
UNKNOWN_REPOSITORY = "app.yaml has no lab {lab} for {repository}, or this token is not for it. Available: {known}."
UNKNOWN_UPLOAD = (
    "This lab has no such upload, or it has expired. Begin it again with the same run ID: what has arrived stays."
)
UNDECLARED_FILE = "The upload was begun without a file {name}. Begin it with all files of the run."
NAMED_TWICE = "The file {name} is named twice."
OTHER_LENGTH = "{name} was announced with {bytes} bytes, and the body has {length}."
OTHER_DIGEST = "{name} was announced with the SHA-256 {expected}, and the body has {found}. Send the file again."
TOO_MANY_ARRIVE = "Too many files are arriving at the same time. Send this one again in {seconds} s."
FILE_TOO_SLOW = "No byte of the file arrived within {seconds:.0f} s. Send it again."
FILES_MISSING = "The manifest names files that have not arrived as announced: {names}. Send them first."

# Webhooks to labs
NO_WEBHOOK_SECRET = (
    "{name}, the secret of a lab's webhook in app.yaml, is not set or has fewer than {least} characters; set it to "  # noqa: S105
    "a longer one that the lab has too"
)
JOBS_ANNOUNCED = "{jobs} announced to labs"
JOB_NOT_WAITING = "the job is no longer queued"
WEBHOOK_SENT = "notified the lab {lab} that the job {job} is queued"
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
    "GitHub refused to start {file} in {repository}: {reason}. The file needs `on: workflow_dispatch` with the inputs "
    "{inputs} on the branch {branch}, and the App needs the permission {permission} in that repository"
)
