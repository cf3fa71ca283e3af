"""Commit statuses.

https://docs.github.com/rest/commits/statuses
"""

from __future__ import annotations

from sandbox.errors import refused
from sandbox.routing import ApiResponse, Call, route, too_long, without_four_bytes
from sandbox.views import checks

from .issues import REPO

DESCRIPTION_LIMIT = 140
STATUSES_LIMIT = 1000


@route("POST", f"{REPO}/statuses/{{sha}}", "statuses")
def create_status(call: Call) -> ApiResponse:
    """Set a commit status, up to a thousand times per commit and context."""
    repository, body = call.repository, call.body
    sha = call.full_sha("sha", call.path["sha"])
    too_long("description", body.get("description") or "", DESCRIPTION_LIMIT)
    without_four_bytes("description", body.get("description") or "", resource="Status")
    context = body.get("context", "default")
    if sum(s.context == context for s in repository.all_statuses(sha)) >= STATUSES_LIMIT:
        raise refused("Validation Failed", "This SHA and context has reached the maximum number of statuses.")
    made = repository.set_status(
        call.actor, sha, context, body["state"], body.get("description"), body.get("target_url")
    )
    return ApiResponse(checks.status(repository, made), 201)


@route("GET", f"{REPO}/commits/{{ref}}/statuses", "statuses")
def list_statuses(call: Call) -> ApiResponse:
    """List every status of a commit, newest first."""
    repository = call.repository
    statuses = repository.all_statuses(call.commit(call.path["ref"]).sha)
    return call.page(statuses, lambda status: checks.status(repository, status))


@route("GET", f"{REPO}/commits/{{ref}}/status", "statuses")
def get_combined_status(call: Call) -> ApiResponse:
    """Return the combined status of a commit."""
    repository, sha = call.repository, call.commit(call.path["ref"]).sha
    page = call.page(repository.statuses(sha), lambda status: {"status": status})
    assert isinstance(page.body, list)
    statuses = [entry["status"] for entry in page.body]
    return ApiResponse(checks.combined_status(repository, sha, statuses), headers=page.headers)
