"""Pull requests: reading, changing, requesting reviews, merging.

https://docs.github.com/rest/pulls
"""

from __future__ import annotations

from sandbox.errors import ApiError, invalid, not_accessible, not_found, refused
from sandbox.git import with_renames
from sandbox.model import merge_checks
from sandbox.model.issues import Issue
from sandbox.model.pulls import PullRequest
from sandbox.routing import ApiResponse, Call, route, too_long
from sandbox.users import Team, User
from sandbox.views import issues, repositories, users
from sandbox.workflow_files import check_workflows

from .issues import BODY_LIMIT, REPO, change

PULL = f"{REPO}/pulls/{{pull_number}}"
HEAD_MOVED = "Head branch was modified. Review and try the merge again."
NOT_MERGEABLE = "Pull Request is not mergeable"
UNEXPECTED_HEAD = "expected head sha didn't match current head ref."
CONFLICT = "merge conflict between base and head"
NO_PUSH = "user doesn't have permission to update head repository"
STILL_DRAFT = "Pull Request is still a draft"
UNRESOLVED = "Could not resolve to a node with the global id of '{}'."
FROM_AUTHOR = "Review cannot be requested from pull request author."
NOT_COLLABORATORS = (
    "Reviews may only be requested from collaborators. One or more of the users or teams you specified "
    "is not a collaborator of the {} repository."
)


@route("GET", f"{REPO}/pulls", "pull_requests")
def list_pulls(call: Call) -> ApiResponse:
    """List pull requests, newest first unless asked otherwise."""
    query = call.query
    pulls = [pull for pull in call.repository.pulls if query.get("state", "open") in {"all", pull.state}]
    if "head" in query:
        head = query["head"]
        pulls = [p for p in pulls if head == f"{p.head_repository.owner.login}:{p.head_ref}"]
    if "base" in query:
        pulls = [pull for pull in pulls if pull.base_ref == query["base"]]
    if query.get("sort") == "updated":
        pulls.sort(key=lambda pull: pull.updated_at)
    if query.get("direction", "asc" if "sort" in query else "desc") == "desc":
        pulls.reverse()
    return call.page(pulls, issues.pull_simple)


@route("POST", f"{REPO}/pulls", "pull_requests")
def create_pull(call: Call) -> ApiResponse:
    """Open a pull request from one branch to another."""
    body, repository = call.body, call.repository
    owner, _, branch = str(body["head"]).rpartition(":")
    home = repository if owner in {"", repository.owner.login} else repository.fork(owner)
    for field, exists in (
        ("head", f"refs/heads/{branch}" in home.refs),
        ("base", f"refs/heads/{body['base']}" in repository.refs),
    ):
        if not exists:
            raise refused("Validation Failed", {"resource": "PullRequest", "field": field, "code": "invalid"})
    if any(p.state == "open" and p.head_ref == branch and p.base_ref == body["base"] for p in repository.pulls):
        message = f"A pull request already exists for {home.owner.login}:{branch}."
        raise refused("Validation Failed", {"resource": "PullRequest", "code": "custom", "message": message})
    made = repository.open_pull_request(
        call.actor.login,
        str(body.get("title") or branch),
        body.get("body"),
        draft=bool(body.get("draft")),
        branch=branch,
        base=body["base"],
        fork=home is not repository,
    )
    return ApiResponse(issues.pull(made), 201)


@route("GET", PULL, "pull_requests")
def get_pull(call: Call) -> ApiResponse:
    """Return one pull request; GitHub only starts to check for conflicts at the first request."""
    pull, body = call.pull, issues.pull(call.pull)
    if pull.undecided > 0:
        pull.undecided -= 1
        body |= {"mergeable": None, "rebaseable": None, "mergeable_state": "unknown"}
    return ApiResponse(body)


@route("PATCH", PULL, "pull_requests")
def update_pull(call: Call) -> ApiResponse:
    """Change title, body or state."""
    too_long("body", call.body.get("body") or "", BODY_LIMIT)
    change(call, call.pull)
    return ApiResponse(issues.pull(call.pull))


@route("GET", f"{PULL}/commits", "pull_requests")
def list_commits(call: Call) -> ApiResponse:
    """List the pull request's commits, oldest first; GitHub shows 250 at most."""
    return call.page(call.pull.commits[:250], lambda commit: repositories.commit(call.repository, commit))


@route("GET", f"{PULL}/files", "pull_requests")
def list_files(call: Call) -> ApiResponse:
    """List the changed files; GitHub shows 3000 at most."""
    pull = call.pull
    files = with_renames(pull.files)[:3000]
    return call.page(files, lambda change: repositories.change(call.repository, pull.head_sha, change))


@route("GET", f"{PULL}/merge", "pull_requests")
def is_merged(call: Call) -> ApiResponse:
    """Answer 204 if merged, else 404."""
    if call.pull.merged_at is None:
        raise not_found()
    return ApiResponse(status=204)


@route("PUT", f"{PULL}/merge", "contents")
def merge(call: Call) -> ApiResponse:
    """Merge, unless the head moved, there are conflicts, or the base branch's protection forbids it."""
    pull, body = call.pull, call.body
    if body.get("sha") not in {None, pull.head_sha}:
        raise ApiError(409, HEAD_MOVED)
    if pull.draft:
        raise ApiError(405, STILL_DRAFT)
    if pull.state != "open" or not pull.mergeable:
        raise ApiError(405, NOT_MERGEABLE)
    method = body.get("merge_method", "merge")
    merge_checks.check(pull, method)
    git = call.repository.git
    start = git.merge_base(pull.head_sha, pull.base_sha)
    check_workflows(call, start.files if start else {}, git.commits[pull.head_sha].files)
    sha = pull.merge(call.actor, method, body.get("commit_title"), body.get("commit_message"))
    return ApiResponse({"sha": sha, "merged": True, "message": "Pull Request successfully merged"})


@route("PUT", f"{PULL}/update-branch", "pull_requests")
def update_branch(call: Call) -> ApiResponse:
    """Merge the base into the head branch, if the caller may push to the head's repository."""
    pull = call.pull
    if call.body.get("expected_head_sha") not in {None, pull.head_sha}:
        raise refused(UNEXPECTED_HEAD)
    if call.token is not None and not call.token.may("contents", "write"):
        raise not_accessible(("contents",), "write")
    if pull.head_repository is not pull.repository and not pull.maintainers_may_push:
        raise ApiError(403, NO_PUSH)
    if pull.state != "open" or not pull.mergeable:
        raise refused(CONFLICT)
    git = call.repository.git
    head_files, tip = git.commits[pull.head_sha].files, git.commits[call.repository.branch(pull.base_ref)].files
    check_workflows(call, head_files, {**head_files, **tip})
    pull.update_branch(call.actor)
    return ApiResponse({"message": "Updating pull request branch.", "url": str(call.url)}, 202)


@route("GET", f"{PULL}/requested_reviewers", "pull_requests")
def list_requested(call: Call) -> ApiResponse:
    """List the requested reviewers who have not reviewed yet."""
    pull = call.pull
    people = [users.user(user) for user in pull.requested_reviewers]
    return ApiResponse({"users": people, "teams": [users.team(team) for team in pull.requested_teams]})


@route("POST", f"{PULL}/requested_reviewers", "pull_requests")
def request_reviewers(call: Call) -> ApiResponse:
    """Request reviews; one invalid name refuses the whole request."""
    pull = call.pull
    people, teams = _named(call, pull)
    if any(user is pull.user for user in people):
        raise refused(FROM_AUTHOR)
    pull.request_review(call.actor, *(user.login for user in people), *(_name(team) for team in teams))
    return ApiResponse(issues.pull_simple(pull), 201)


@route("DELETE", f"{PULL}/requested_reviewers", "pull_requests")
def remove_reviewers(call: Call) -> ApiResponse:
    """Withdraw review requests; ignore names that were not requested."""
    pull = call.pull
    people, teams = _named(call, pull)
    requested = [user.login for user in people if user in pull.requested_reviewers]
    requested += [_name(team) for team in teams if team in pull.requested_teams]
    pull.remove_review_request(call.actor, *requested)
    return ApiResponse(issues.pull_simple(pull))


def _name(team: Team) -> str:
    return f"{team.organization.login}/{team.slug}"


def _named(call: Call, pull: PullRequest) -> tuple[list[User], list[Team]]:
    """Return the people and teams that a body names, all of which must be collaborators."""
    logins, slugs = call.body.get("reviewers") or [], call.body.get("team_reviewers") or []
    if not logins and not slugs:
        raise invalid("reviewers", "neither reviewers nor team_reviewers name anybody", resource="PullRequest")
    repository = pull.repository
    people = [call.github.users.get(login.lower()) for login in logins]
    collaborators = [user for user in people if user is not None and repository.is_collaborator(user)]
    teams = [repository.teams[slug] for slug in slugs if slug in repository.teams]
    if teams and call.token is not None and not call.token.may("members", "read"):
        # GitHub then fails to validate the team, though its docs name no such permission:
        # https://github.com/github/docs/issues/35057
        raise refused("Validation Failed", UNRESOLVED.format(teams[0].node_id))
    authors = [user for user in people if user is pull.user and user is not None]
    if len(collaborators + [a for a in authors if a not in collaborators]) < len(logins) or len(teams) < len(slugs):
        raise refused(NOT_COLLABORATORS.format(repository.full_name))
    return collaborators + [author for author in authors if author not in collaborators], teams


@route("GET", f"{REPO}/commits/{{commit_sha}}/pulls", "pull_requests")
def list_pulls_of_commit(call: Call) -> ApiResponse:
    """List the pull requests with a commit: open ones, or the merged one that added it."""
    commit, repository = call.commit(call.path["commit_sha"]), call.repository
    pulls: list[Issue] = [
        pull
        for pull in repository.pulls
        if commit.sha in (pull.merge_commit_sha, *pull.rebased_shas)
        or (pull.head_repository is repository and any(c.sha == commit.sha for c in pull.commits))
    ]
    return call.page([p for p in pulls if isinstance(p, PullRequest)], issues.pull_simple)
