"""The pages that lead to the others: repositories, one repository, a commit."""

from __future__ import annotations

from collections.abc import Mapping
from html import escape
from typing import TYPE_CHECKING

from sandbox.git import Commit, changes
from sandbox.model.home import HEADS
from sandbox.model.issues import Issue
from sandbox.model.repository import Repository

from .check import check_run, marks
from .layout import frame, icon, moment, person, state_badge

if TYPE_CHECKING:
    from sandbox.state import GitHubState

COMMITS_SHOWN = 10
FILES_OPEN = 10
NO_FORM = "On GitHub, this is a form that you can change and submit."


def index_page(github: GitHubState) -> str:
    """Return the list of all repositories with their pull requests."""
    parts = [
        f'<h2><a href="/{repository.full_name}">{escape(repository.full_name)}</a></h2>{_issues(repository)}'
        for repository in github.repositories.values()
    ]
    return frame("Sandbox", [], "".join(parts) or "<p class=quiet>No repositories yet.</p>")


def repository_page(repository: Repository) -> str:
    """Return one repository: its pull requests and issues, branches, and newest commits."""
    branches = [
        f"<li><code>{escape(ref.removeprefix(HEADS))}</code> {_sha(repository, sha)} {marks(repository, sha)}</li>"
        for ref, sha in sorted(repository.refs.items())
        if ref.startswith(HEADS)
    ]
    history = repository.git.ancestry(repository.branch(repository.default_branch))[:COMMITS_SHOWN]
    commits = [_listed_commit(repository, commit) for commit in history]
    content = (
        f"<h1>{escape(repository.full_name)}</h1>{_issues(repository)}"
        f"<h2>Branches</h2><ul class=list>{''.join(branches)}</ul>"
        f"<h2>Commits on <code>{escape(repository.default_branch)}</code></h2><ul class=list>{''.join(commits)}</ul>"
    )
    return frame(repository.full_name, [(repository.full_name, f"/{repository.full_name}")], content)


def _issues(repository: Repository) -> str:
    rows = [_row(issue) for issue in reversed(repository.issues.values())]
    return f"<ul class=list>{''.join(rows) or '<li class=quiet>No pull requests yet.</li>'}</ul>"


def _row(issue: Issue) -> str:
    count = len(issue.comments)
    kind = "pull" if issue.event == "pull_request" else "issues"
    link = f"/{issue.repository.full_name}/{kind}/{issue.number}"
    return (
        f'<li>{state_badge(issue)} <a class="title" href="{link}">{escape(issue.title)}</a> '
        f"<span class=quiet>#{issue.number} by {person(issue.user)} · {count} comment{'s' * (count != 1)}</span></li>"
    )


def _sha(repository: Repository, sha: str) -> str:
    return f'<a href="/{repository.full_name}/commit/{sha}"><code>{sha[:7]}</code></a>'


def commit_page(repository: Repository, commit: Commit) -> str:
    """Return one commit: message, statuses and check runs, files."""
    parent_files = repository.git.commits[commit.parents[0]].files if commit.parents else {}
    states = [
        f'<div class="check">{icon(s.state)} <p><b>{escape(s.context)}</b> — {escape(s.description or "")}</p></div>'
        for s in repository.statuses(commit.sha)
    ]
    runs = [check_run(run) for run in repository.check_runs(commit.sha)]
    checked = f'<section class="checks">{"".join(states + runs)}</section>' if states or runs else ""
    content = (
        f"<h1>{escape(commit.message.splitlines()[0])}</h1><p class=subtitle>{person(commit.author)} · "
        f"<code>{commit.sha}</code> · {moment(commit.date)}</p>{checked}"
        f"{_changed_files(parent_files, commit)}"
    )
    crumbs = [(repository.full_name, f"/{repository.full_name}"), (commit.sha[:7], "")]
    return frame(commit.message.splitlines()[0], crumbs, content)


def _listed_commit(repository: Repository, commit: Commit) -> str:
    title = escape(commit.message.splitlines()[0])
    return f"<li>{_sha(repository, commit.sha)} {title} · {person(commit.author)} {marks(repository, commit.sha)}</li>"


def _changed_files(before: Mapping[str, str], commit: Commit) -> str:
    changed = changes(before, commit.files)
    return "".join(
        f'<details class="file"{" open" * (len(changed) <= FILES_OPEN)}><summary><code>{escape(change.path)}</code> '
        f"<i>+{change.additions} &minus;{change.deletions}</i></summary><pre>{escape(change.patch)}</pre></details>"
        for change in changed
    )


def compare_page(repository: Repository, commits: str) -> str:
    """Return the commits and the changed files of a range such as `BASE...HEAD`. Raises KeyError for others."""
    git = repository.git
    base, head = (git.commits[sha] for sha in commits.split("...", 1))
    known = {commit.sha for commit in git.ancestry(base.sha)}
    listed = [_listed_commit(repository, commit) for commit in git.ancestry(head.sha) if commit.sha not in known]
    name = f"{base.sha[:7]}...{head.sha[:7]}"
    content = f"<h1>{name}</h1><ul class=list>{''.join(listed)}</ul>{_changed_files(base.files, head)}"
    return frame(name, [(repository.full_name, f"/{repository.full_name}"), (name, "")], content)


def file_page(repository: Repository, sha: str, path: str) -> str:
    """Return a file at a commit. Raises KeyError if there is none."""
    text = repository.git.commits[sha].files[path]
    crumbs = [(repository.full_name, f"/{repository.full_name}"), (sha[:7], f"/{repository.full_name}/commit/{sha}")]
    return frame(path, crumbs, f"<h1><code>{escape(path)}</code></h1><pre>{escape(text)}</pre>")


def issue_form_page(repository: Repository, title: str, body: str) -> str:
    """Return what GitHub's form for a new issue would contain."""
    content = f"<h1>New issue: {escape(title)}</h1><pre>{escape(body)}</pre><p class=quiet>{NO_FORM}</p>"
    return frame("New issue", [(repository.full_name, f"/{repository.full_name}")], content)
