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


def repository(home: Home) -> Json:
    """Return a body that is a `repository`, `minimal-repository` and `repository-webhooks` at once."""
    api, html = url(home), page(home)
    opened = sum(issue.state == "open" for issue in home.issues.values())
    return {
        "id": home.id,
        "node_id": home.node_id,
        "name": home.name,
        "full_name": home.full_name,
        "private": home.private,
        "visibility": "private" if home.private else "public",
        "owner": users.user(home.owner),
        "html_url": html,
        "description": None,
        "fork": home.parent is not None,
        "url": api,
        **{name: f"{api}/{end}" for name, end in _LINKS.items()},
        "git_url": html.replace("http:", "git:") + ".git",
        "ssh_url": f"git@127.0.0.1:{home.full_name}.git",
        "clone_url": html + ".git",
        "svn_url": html,
        "mirror_url": None,
        "homepage": None,
        "language": None,
        "license": None,
        "topics": [],
        "default_branch": home.default_branch,
        "open_issues": opened,
        "open_issues_count": opened,
        **dict.fromkeys(_COUNTS, 0),
        **dict.fromkeys(_FEATURES, True),
        "has_pages": False,
        "has_discussions": False,
        "archived": home.archived,
        "disabled": False,
        "is_template": False,
        "allow_forking": True,
        "web_commit_signoff_required": False,
        "created_at": iso(home.created_at),
        "pushed_at": iso(home.pushed_at),
        "updated_at": iso(home.pushed_at),
    }


def full_repository(home: Home) -> Json:
    """Return a `full-repository`."""
    return repository(home) | {"subscribers_count": 0, "network_count": 0}


def email(account: User) -> str:
    """Return somebody's no-reply address, which GitHub uses in commits."""
    return f"{account.id}+{account.login.replace('[bot]', '')}@users.noreply.example.org"


def person(account: User, commit: Commit) -> Json:
    """Return a git author or committer."""
    return {
        "name": account.login,
        "email": email(account),
        "date": iso(commit.date),
    }


def commit(repo: Home, revision: Commit) -> Json:
    """Return a `commit` without its files."""
    api, html = url(repo), page(repo)
    author = person(revision.author, revision)
    unsigned = dict.fromkeys(("signature", "payload", "verified_at"))
    return {
        "url": f"{api}/commits/{revision.sha}",
        "sha": revision.sha,
        "node_id": _commit_node_id(repo, revision),
        "html_url": f"{html}/commit/{revision.sha}",
        "comments_url": f"{api}/commits/{revision.sha}/comments",
        "commit": {
            "url": f"{api}/git/commits/{revision.sha}",
            "author": author,
            "committer": author,
            "message": revision.message,
            "comment_count": 0,
            "tree": {"sha": revision.tree_sha, "url": f"{api}/git/trees/{revision.tree_sha}"},
            "verification": {"verified": False, "reason": "unsigned", **unsigned},
        },
        "author": users.user(revision.author),
        "committer": users.user(revision.author),
        "parents": _parents(repo, revision),
    }


def git_commit(repo: Home, revision: Commit) -> Json:
    """Return a `git-commit`, which `GET git/commits/{sha}` answers."""
    full_commit = commit(repo, revision)
    inner = {name: full_commit["commit"][name] for name in ("author", "committer", "message", "tree", "verification")}
    outer = {name: full_commit[name] for name in ("sha", "node_id", "html_url", "parents")}
    return {**inner, **outer, "url": full_commit["commit"]["url"]}


def activity(repo: Home, activity: Activity) -> Json:
    """Return an `activity`."""
    return {
        "id": activity.id,
        "node_id": base64.urlsafe_b64encode(f"PSH:{repo.id}:{activity.id}".encode()).decode().rstrip("="),
        "before": activity.old_sha,
        "after": activity.new_sha,
        "ref": activity.ref,
        "timestamp": iso(activity.moment),
        "activity_type": activity.kind,
        "actor": users.user(activity.actor),
    }


def simple_commit(repo: Home, revision: Commit) -> Json:
    """Return a `simple-commit` in the fuller form that push webhooks use."""
    person_fields = person(revision.author, revision)
    author = {"name": person_fields["name"], "email": person_fields["email"], "username": person_fields["name"]}
    return {
        "id": revision.sha,
        "tree_id": revision.tree_sha,
        "distinct": True,
        "message": revision.message,
        "timestamp": iso(revision.date.astimezone(UTC)),
        "url": f"{page(repo)}/commit/{revision.sha}",
        "author": author,
        "committer": author,
        "added": [],
        "removed": [],
        "modified": [],
    }


def _parents(repo: Home, revision: Commit) -> list[Json]:
    api, html = url(repo), page(repo)
    return [{"sha": sha, "url": f"{api}/commits/{sha}", "html_url": f"{html}/commit/{sha}"} for sha in revision.parents]


def _commit_node_id(repo: Home, revision: Commit) -> str:
    return "C_" + base64.urlsafe_b64encode(f"{repo.id}:{revision.sha}".encode()).decode().rstrip("=")


def change(repo: Home, sha: str, change: Change) -> Json:
    """Return a `diff-entry`."""
    path = quote(change.path)
    return {
        "sha": change.sha,
        "filename": change.path,
        "status": change.status,
        "additions": change.additions,
        "deletions": change.deletions,
        "changes": change.additions + change.deletions,
        "blob_url": f"{page(repo)}/blob/{sha}/{path}",
        "raw_url": f"{page(repo)}/raw/{sha}/{path}",
        "contents_url": f"{url(repo)}/contents/{path}?ref={sha}",
        "patch": change.patch,
        **({"previous_filename": change.previous} if change.previous else {}),
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


def label(repo: Home, label: Label) -> Json:
    """Return a `label`."""
    return {
        "id": label.id,
        "node_id": label.node_id,
        "url": f"{url(repo)}/labels/{label.name.replace(' ', '%20')}",
        "name": label.name,
        "description": "",
        "color": label.color,
        "default": False,
    }


def file(repo: Home, ref: str, path: str, text: str | None, tree: str = "") -> Json:
    """Return a file, or a folder with its `tree` if there is no text, as `GET contents` lists it, without content."""
    kind = "dir" if text is None else "file"
    api = f"{url(repo)}/contents/{path}?ref={ref}"
    html = f"{page(repo)}/{'tree' if text is None else 'blob'}/{ref}/{path}"
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
        "download_url": None if text is None else f"{page(repo)}/raw/{ref}/{path}",
        "_links": {"git": git, "html": html, "self": api},
    }
