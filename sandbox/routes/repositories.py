"""Repositories and their people.

https://docs.github.com/rest/repos and https://docs.github.com/rest/collaborators/collaborators
"""

from __future__ import annotations

from sandbox.errors import not_found
from sandbox.model.home import HEADS
from sandbox.routing import ApiResponse, Call, route
from sandbox.users import LEGACY_PERMISSION, User
from sandbox.views import repositories, users

from .issues import REPO

ROLES = ("pull", "triage", "push", "maintain", "admin")
RANK = {"none": 0, "read": 1, "triage": 2, "write": 3, "maintain": 4, "admin": 5}


@route("GET", REPO, "metadata")
def get_repository(call: Call) -> ApiResponse:
    """Return one repository."""
    return ApiResponse(repositories.full_repository(call.repository))


@route("GET", f"{REPO}/activity", "contents")
def list_activities(call: Call) -> ApiResponse:
    """List pushes and created or deleted branches, newest first."""
    repository, query = call.repository, call.query
    ref = query.get("ref", "")
    wanted_ref = ref if ref.startswith(HEADS) else HEADS + ref
    activities = [
        activity
        for activity in reversed(repository.activities)
        if (not ref or activity.ref == wanted_ref) and query.get("activity_type", activity.kind) == activity.kind
    ]
    return call.page(activities, lambda activity: repositories.activity(repository, activity))


@route("GET", f"{REPO}/collaborators/{{username}}/permission", "metadata")
def get_permission(call: Call) -> ApiResponse:
    """Return a person's permission: at least `read` in a public repository."""
    repository, account = call.repository, call.github.users.get(call.path["username"].lower())
    if account is None:
        raise not_found()
    role = repository.role(account)
    permissions = {name: RANK[role] > number for number, name in enumerate(ROLES)}
    return ApiResponse(
        {
            "permission": LEGACY_PERMISSION.get(role, role),
            "role_name": role,
            "user": users.user(account) | {"permissions": permissions, "role_name": role},
        }
    )


@route("GET", f"{REPO}/collaborators/{{username}}", "metadata")
def check_collaborator(call: Call) -> ApiResponse:
    """Answer 204 for a collaborator, else 404."""
    account = call.github.users.get(call.path["username"].lower())
    if account is None or not call.repository.is_collaborator(account):
        raise not_found()
    return ApiResponse(status=204)


@route("GET", f"{REPO}/collaborators", "metadata")
def list_collaborators(call: Call) -> ApiResponse:
    """List everyone who was granted access."""
    repository = call.repository
    people = [repository.owner, *repository.roles]
    collaborators = [account for account in dict.fromkeys(people) if account.type == "User"]

    def view(account: User) -> users.Json:
        role = repository.role(account)
        permissions = {name: RANK[role] > number for number, name in enumerate(ROLES)}
        return users.user(account) | {"permissions": permissions, "role_name": role}

    return call.page(collaborators, view)


@route("GET", "/orgs/{org}/teams/{team_slug}/members", "members")
def list_team_members(call: Call) -> ApiResponse:
    """List the members of a team."""
    for repository in call.github.repositories.values():
        team = repository.teams.get(call.path["team_slug"])
        if team and team.organization.login.lower() == call.path["org"].lower():
            return call.page(team.members, users.user)
    raise not_found()
