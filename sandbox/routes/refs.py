"""Branches and git references.

https://docs.github.com/rest/git/refs and https://docs.github.com/rest/branches/branches
"""

from __future__ import annotations

from typing import Any

from sandbox.errors import ApiError, invalid, not_found, refused
from sandbox.model import rules
from sandbox.model.home import HEADS
from sandbox.model.repository import Repository
from sandbox.routing import ApiResponse, Call, route
from sandbox.views import repositories
from sandbox.workflow_files import check_workflows

from .issues import REPO

EXISTS = "Reference already exists"
MISSING = "Reference does not exist"
NO_OBJECT = "Object does not exist"
NOT_FAST_FORWARD = "Update is not a fast forward"
PROTECTED = "Cannot force-push to this branch"


@route("GET", f"{REPO}/git/ref/{{ref}}", "contents")
def get_ref(call: Call) -> ApiResponse:
    """Return one reference, named without `refs/`."""
    name = f"refs/{call.path['ref']}"
    if name not in call.repository.refs:
        raise not_found()
    return ApiResponse(repositories.ref(call.repository, name))


@route("GET", f"{REPO}/git/matching-refs/{{ref}}", "contents")
def list_matching_refs(call: Call) -> ApiResponse:
    """List the references that begin with a name."""
    names = sorted(name for name in call.repository.refs if name.startswith(f"refs/{call.path['ref']}"))
    return ApiResponse([repositories.ref(call.repository, name) for name in names])


@route("POST", f"{REPO}/git/refs", "contents")
def create_ref(call: Call) -> ApiResponse:
    """Create a branch or tag."""
    repository, name, sha = call.repository, str(call.body["ref"]), str(call.body["sha"])
    if not name.startswith("refs/") or name.count("/") < 2:
        raise invalid("ref", f"{name!r} does not begin with 'refs' and have at least two slashes")
    if sha not in repository.git.commits:
        raise refused(NO_OBJECT)
    if name in repository.refs:
        raise refused(EXISTS)
    check_workflows(call, {}, repository.git.commits[sha].files)
    repository.move(name, sha, call.actor)
    return ApiResponse(repositories.ref(repository, name), 201)


@route("PATCH", f"{REPO}/git/refs/{{ref}}", "contents")
def update_ref(call: Call) -> ApiResponse:
    """Move a reference. Anything but a fast-forward needs `force`."""
    repository, name, sha = call.repository, f"refs/{call.path['ref']}", str(call.body["sha"])
    if name not in repository.refs:
        raise refused(MISSING)
    if sha not in repository.git.commits:
        raise refused(NO_OBJECT)
    if not repository.git.contains(sha, repository.refs[name]):
        if not call.body.get("force"):
            raise refused(NOT_FAST_FORWARD)
        if name.removeprefix(HEADS) in repository.protected:
            raise refused(PROTECTED)
    if repository.refs[name] != sha:
        check_workflows(call, repository.git.commits[repository.refs[name]].files, repository.git.commits[sha].files)
        repository.move(name, sha, call.actor)
    return ApiResponse(repositories.ref(repository, name))


@route("DELETE", f"{REPO}/git/refs/{{ref}}", "contents")
def delete_ref(call: Call) -> ApiResponse:
    """Delete a reference."""
    name = f"refs/{call.path['ref']}"
    if name not in call.repository.refs:
        raise refused(MISSING)
    call.repository.move(name, None, call.actor)
    return ApiResponse(status=204)


@route("GET", f"{REPO}/branches", "contents")
def list_branches(call: Call) -> ApiResponse:
    """List branches by name; `protected` selects protected or other branches."""
    repository = call.repository
    names = sorted(ref.removeprefix(HEADS) for ref in repository.refs if ref.startswith(HEADS))
    if "protected" in call.query:
        names = [name for name in names if (name in repository.protected) == call.query["protected"]]
    return call.page(names, lambda name: _branch(repository, name))


@route("GET", f"{REPO}/branches/{{branch}}", "contents")
def get_branch(call: Call) -> ApiResponse:
    """Return one branch with its commit and protection."""
    repository, name = call.repository, call.path["branch"]
    if HEADS + name not in repository.refs:
        raise ApiError(404, "Branch not found")
    short = _branch(repository, name)
    commit = repositories.commit(repository, repository.git.commits[repository.branch(name)])
    links = {"html": f"{repositories.page(repository)}/tree/{name}", "self": str(call.url)}
    return ApiResponse(short | {"commit": commit, "_links": links})


@route("POST", f"{REPO}/merges", "contents")
def merge_branch(call: Call) -> ApiResponse:
    """Merge a branch or a commit into a branch, with a merge commit; 204 if the branch contains it already."""
    repository, git, base = call.repository, call.repository.git, str(call.body["base"])
    head = repository.resolve(str(call.body["head"]))
    if HEADS + base not in repository.refs or head is None:
        raise ApiError(404, "Head does not exist" if head is None else "Base does not exist")
    tip = repository.branch(base)
    if git.contains(tip, head.sha):
        return ApiResponse(status=204)
    files = git.merged_files(tip, head.sha)
    if files is None:
        raise ApiError(409, "Merge conflict")
    check_workflows(call, git.commits[tip].files, files)
    message = str(call.body.get("commit_message") or f"Merge {head.sha} into {base}")
    made = git.commit((tip, head.sha), files, message, call.actor, call.github.clock.now())
    repository.move(HEADS + base, made.sha, call.actor)
    return ApiResponse(repositories.commit(repository, made), 201)


@route("GET", f"{REPO}/rules/branches/{{branch}}", "metadata")
def list_rules(call: Call) -> ApiResponse:
    """List the rules for a branch, even if it does not exist; classic protection is not included."""
    branch_rules = rules.as_json(
        call.repository.rules.get(call.path["branch"], rules.Rules()), call.repository.full_name
    )
    return call.page(branch_rules, lambda rule: rule)


def _branch(repository: Repository, name: str) -> dict[str, Any]:
    sha, required = repository.branch(name), repository.protected.get(name)
    url = f"{repositories.url(repository)}/branches/{name}/protection"
    checks = {
        "enforcement_level": "non_admins" if required else "off",
        "contexts": list(required or ()),
        "checks": [{"context": context, "app_id": None} for context in required or ()],
    }
    return {
        "name": name,
        "commit": {"sha": sha, "url": f"{repositories.url(repository)}/commits/{sha}"},
        "protected": required is not None,
        "protection": {"enabled": required is not None, "required_status_checks": checks},
        "protection_url": url,
    }
