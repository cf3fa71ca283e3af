"""Repositories, commits, refs and comparisons as JSON."""

from __future__ import annotations

import base64
from datetime import UTC
from typing import Any
from urllib.parse import quote

from sandbox.clock import iso
from sandbox.git import Change, Commit, blob_sha
from sandbox.model.activities import Activity
from sandbox.model.home import Home
from sandbox.model.labels import Label
from sandbox.users import User

from . import users

Json = dict[str, Any]
# name in JSON → end of the address below the repository's own
_LINKS = {
    "archive_url": "{archive_format}{/ref}",
    "assignees_url": "assignees{/user}",
    "blobs_url": "git/blobs{/sha}",
    "branches_url": "branches{/branch}",
    "collaborators_url": "collaborators{/collaborator}",
    "comments_url": "comments{/number}",
    "commits_url": "commits{/sha}",
    "compare_url": "compare/{base}...{head}",
    "contents_url": "contents/{+path}",
    "contributors_url": "contributors",
    "deployments_url": "deployments",
    "downloads_url": "downloads",
    "events_url": "events",
    "forks_url": "forks",
    "git_commits_url": "git/commits{/sha}",
    "git_refs_url": "git/refs{/sha}",
    "git_tags_url": "git/tags{/sha}",
    "hooks_url": "hooks",
    "issue_comment_url": "issues/comments{/number}",
    "issue_events_url": "issues/events{/number}",
    "issues_url": "issues{/number}",
    "keys_url": "keys{/key_id}",
    "labels_url": "labels{/name}",
    "languages_url": "languages",
    "merges_url": "merges",
    "milestones_url": "milestones{/number}",
    "notifications_url": "notifications{?since,all,participating}",
    "pulls_url": "pulls{/number}",
    "releases_url": "releases{/id}",
    "stargazers_url": "stargazers",
    "statuses_url": "statuses/{sha}",
    "subscribers_url": "subscribers",
    "subscription_url": "subscription",
    "tags_url": "tags",
    "teams_url": "teams",
    "trees_url": "git/trees{/sha}",
}
_COUNTS = ("forks", "forks_count", "stargazers_count", "watchers", "watchers_count", "size")
_FEATURES = ("has_issues", "has_projects", "has_wiki", "has_downloads")


def url(repository: Home) -> str:
    """Return the API address of a repository."""
    return f"{repository.github.url}/repos/{repository.full_name}"


def page(repository: Home) -> str:
    """Return the address of a repository's page."""
    return f"{repository.github.url}/{repository.full_name}"


def repository(found: Home) -> Json:
    """Return a body that is a `repository`, `minimal-repository` and `repository-webhooks` at once."""
    api, html = url(found), page(found)
    opened = sum(issue.state == "open" for issue in found.issues.values())
    return {
        "id": found.id,
        "node_id": found.node_id,
        "name": found.name,
        "full_name": found.full_name,
        "private": found.private,
        "visibility": "private" if found.private else "public",
        "owner": users.user(found.owner),
        "html_url": html,
        "description": None,
        "fork": found.parent is not None,
        "url": api,
        **{name: f"{api}/{end}" for name, end in _LINKS.items()},
        "git_url": html.replace("http:", "git:") + ".git",
        "ssh_url": f"git@127.0.0.1:{found.full_name}.git",
        "clone_url": html + ".git",
        "svn_url": html,
        "mirror_url": None,
        "homepage": None,
        "language": None,
        "license": None,
        "topics": [],
        "default_branch": found.default_branch,
        "open_issues": opened,
        "open_issues_count": opened,
        **dict.fromkeys(_COUNTS, 0),
        **dict.fromkeys(_FEATURES, True),
        "has_pages": False,
        "has_discussions": False,
        "archived": found.archived,
        "disabled": False,
        "is_template": False,
        "allow_forking": True,
        "web_commit_signoff_required": False,
        "created_at": iso(found.created_at),
        "pushed_at": iso(found.pushed_at),
        "updated_at": iso(found.pushed_at),
    }


def full_repository(found: Home) -> Json:
    """Return a `full-repository`."""
    return repository(found) | {"subscribers_count": 0, "network_count": 0}


def email(who: User) -> str:
    """Return somebody's no-reply address, which GitHub uses in commits."""
    return f"{who.id}+{who.login.replace('[bot]', '')}@users.noreply.example.org"


def person(who: User, commit: Commit) -> Json:
    """Return a git author or committer."""
    return {
        "name": who.login,
        "email": email(who),
        "date": iso(commit.date),
    }


def commit(repo: Home, found: Commit) -> Json:
    """Return a `commit` without its files."""
    api, html = url(repo), page(repo)
    who = person(found.author, found)
    unsigned = dict.fromkeys(("signature", "payload", "verified_at"))
    return {
        "url": f"{api}/commits/{found.sha}",
        "sha": found.sha,
        "node_id": _commit_node_id(repo, found),
        "html_url": f"{html}/commit/{found.sha}",
        "comments_url": f"{api}/commits/{found.sha}/comments",
        "commit": {
            "url": f"{api}/git/commits/{found.sha}",
            "author": who,
            "committer": who,
            "message": found.message,
            "comment_count": 0,
            "tree": {"sha": found.tree_sha, "url": f"{api}/git/trees/{found.tree_sha}"},
            "verification": {"verified": False, "reason": "unsigned", **unsigned},
        },
        "author": users.user(found.author),
        "committer": users.user(found.author),
        "parents": _parents(repo, found),
    }


def git_commit(repo: Home, found: Commit) -> Json:
    """Return a `git-commit`, which `GET git/commits/{sha}` answers."""
    whole = commit(repo, found)
    inner = {name: whole["commit"][name] for name in ("author", "committer", "message", "tree", "verification")}
    outer = {name: whole[name] for name in ("sha", "node_id", "html_url", "parents")}
    return {**inner, **outer, "url": whole["commit"]["url"]}


def activity(repo: Home, one: Activity) -> Json:
    """Return an `activity`."""
    return {
        "id": one.id,
        "node_id": base64.urlsafe_b64encode(f"PSH:{repo.id}:{one.id}".encode()).decode().rstrip("="),
        "before": one.before,
        "after": one.after,
        "ref": one.ref,
        "timestamp": iso(one.at),
        "activity_type": one.kind,
        "actor": users.user(one.by),
    }


def simple_commit(repo: Home, found: Commit) -> Json:
    """Return a `simple-commit` in the fuller form that push webhooks use."""
    who = person(found.author, found)
    author = {"name": who["name"], "email": who["email"], "username": who["name"]}
    return {
        "id": found.sha,
        "tree_id": found.tree_sha,
        "distinct": True,
        "message": found.message,
        "timestamp": iso(found.date.astimezone(UTC)),
        "url": f"{page(repo)}/commit/{found.sha}",
        "author": author,
        "committer": author,
        "added": [],
        "removed": [],
        "modified": [],
    }


def _parents(repo: Home, found: Commit) -> list[Json]:
    api, html = url(repo), page(repo)
    return [{"sha": sha, "url": f"{api}/commits/{sha}", "html_url": f"{html}/commit/{sha}"} for sha in found.parents]


def _commit_node_id(repo: Home, found: Commit) -> str:
    return "C_" + base64.urlsafe_b64encode(f"{repo.id}:{found.sha}".encode()).decode().rstrip("=")


def change(repo: Home, sha: str, found: Change) -> Json:
    """Return a `diff-entry`."""
    path = quote(found.path)
    return {
        "sha": found.sha,
        "filename": found.path,
        "status": found.status,
        "additions": found.additions,
        "deletions": found.deletions,
        "changes": found.additions + found.deletions,
        "blob_url": f"{page(repo)}/blob/{sha}/{path}",
        "raw_url": f"{page(repo)}/raw/{sha}/{path}",
        "contents_url": f"{url(repo)}/contents/{path}?ref={sha}",
        "patch": found.patch,
        **({"previous_filename": found.previous} if found.previous else {}),
    }


def ref(repo: Home, name: str) -> Json:
    """Return a `git-ref`; `name` begins with `refs/`."""
    sha = repo.refs[name]
    return {
        "ref": name,
        "node_id": "REF_" + base64.urlsafe_b64encode(f"{repo.id}:{name}".encode()).decode().rstrip("="),
        "url": f"{url(repo)}/git/{name}",
        "object": {"type": "commit", "sha": sha, "url": f"{url(repo)}/git/commits/{sha}"},
    }


def label(repo: Home, found: Label) -> Json:
    """Return a `label`."""
    return {
        "id": found.id,
        "node_id": found.node_id,
        "url": f"{url(repo)}/labels/{found.name.replace(' ', '%20')}",
        "name": found.name,
        "description": "",
        "color": found.color,
        "default": False,
    }


def file(repo: Home, at: str, path: str, text: str | None, tree: str = "") -> Json:
    """Return a file, or a folder with its `tree` if there is no text, as `GET contents` lists it, without content."""
    kind = "dir" if text is None else "file"
    api = f"{url(repo)}/contents/{path}?ref={at}"
    html = f"{page(repo)}/{'tree' if text is None else 'blob'}/{at}/{path}"
    sha = tree if text is None else blob_sha(text)
    git = f"{url(repo)}/git/{'trees' if text is None else 'blobs'}/{sha}"
    return {
        "type": kind,
        "size": 0 if text is None else len(text.encode()),
        "name": path.rpartition("/")[2],
        "path": path,
        "sha": sha,
        "url": api,
        "git_url": git,
        "html_url": html,
        "download_url": None if text is None else f"{page(repo)}/raw/{at}/{path}",
        "_links": {"git": git, "html": html, "self": api},
    }
