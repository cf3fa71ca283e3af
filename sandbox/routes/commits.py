"""Commits and comparisons.

https://docs.github.com/rest/commits/commits
"""

from __future__ import annotations

from typing import Any

from sandbox.errors import not_found
from sandbox.git import Commit, changes
from sandbox.model.repository import Repository
from sandbox.routing import ApiResponse, Call, route
from sandbox.views import repositories

from .issues import REPO

FILES_SHOWN = 300


@route("GET", f"{REPO}/commits", "contents")
def list_commits(call: Call) -> ApiResponse:
    """List a branch's history, newest first."""
    repository = call.repository
    start = repository.resolve(call.query.get("sha", repository.default_branch))
    if start is None:
        raise not_found()
    commits = repository.git.ancestry(start.sha)
    if "path" in call.query:
        commits = [commit for commit in commits if _touches(repository, commit, call.query["path"])]
    return call.page(commits, lambda commit: repositories.commit(repository, commit))


def _touches(repository: Repository, commit: Commit, path: str) -> bool:
    parent_files = _parent_files(repository, commit)
    changed = (change.path for change in changes(parent_files, commit.files))
    return any(name == path or name.startswith(path.rstrip("/") + "/") for name in changed)


def _parent_files(repository: Repository, commit: Commit) -> dict[str, str]:
    return dict(repository.git.commits[commit.parents[0]].files) if commit.parents else {}


@route("GET", f"{REPO}/commits/{{ref}}", "contents")
def get_commit(call: Call) -> ApiResponse:
    """Return one commit with its files."""
    repository, commit = call.repository, call.commit(call.path["ref"])
    if "sha" in call.accept:
        return ApiResponse(text=commit.sha)
    files = changes(_parent_files(repository, commit), commit.files)
    body: dict[str, Any] = repositories.commit(repository, commit)
    added, removed = sum(f.additions for f in files), sum(f.deletions for f in files)
    body["stats"] = {"additions": added, "deletions": removed, "total": added + removed}
    body["files"] = [repositories.change(repository, commit.sha, file) for file in files[:FILES_SHOWN]]
    return ApiResponse(body)


@route("GET", f"{REPO}/compare/{{basehead}}", "contents")
def compare(call: Call) -> ApiResponse:
    """Compare two commits, named as `base...head`; each may be `owner:branch`."""
    repository, git = call.repository, call.repository.git
    base_name, _, head_name = call.path["basehead"].partition("...")
    base, head = _end(call, base_name), _end(call, head_name)
    start = git.merge_base(base.sha, head.sha)
    if start is None:
        raise not_found()
    ahead, behind = git.between(base.sha, head.sha), git.between(head.sha, base.sha)
    words = {(False, False): "identical", (True, False): "ahead", (False, True): "behind", (True, True): "diverged"}
    api, page = str(call.url.with_query(None)), f"{repositories.page(repository)}/compare/{base_name}...{head_name}"
    page_of_commits = call.page(ahead, lambda commit: repositories.commit(repository, commit))
    files = changes(start.files, head.files)[:FILES_SHOWN] if call.query.get("page", 1) == 1 else []
    body = {
        "url": api,
        "html_url": page,
        "permalink_url": page,
        "diff_url": f"{page}.diff",
        "patch_url": f"{page}.patch",
        "base_commit": repositories.commit(repository, base),
        "merge_base_commit": repositories.commit(repository, start),
        "status": words[bool(ahead), bool(behind)],
        "ahead_by": len(ahead),
        "behind_by": len(behind),
        "total_commits": len(ahead),
        "commits": page_of_commits.body,
        "files": [repositories.change(repository, head.sha, file) for file in files],
    }
    return ApiResponse(body, headers=page_of_commits.headers)


def _end(call: Call, name: str) -> Commit:
    owner, _, ref = name.rpartition(":")
    home = call.repository if not owner else call.github.repositories.get(f"{owner}/{call.repository.name}".lower())
    commit = home.resolve(ref) if home else None
    if commit is None:
        raise not_found()
    return commit
