"""Pages that show pull requests as a person would see them on GitHub."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import TYPE_CHECKING

from aiohttp import web

from sandbox.model.checks import CheckRun

from .check import address, check_run_page, newest, workflow_run_page
from .layout import picture
from .lists import commit_page, compare_page, file_page, index_page, issue_form_page, repository_page
from .pull import issue_page
from .registration import add_registration_routes

if TYPE_CHECKING:
    from sandbox.model.issues import Issue
    from sandbox.model.repository import Repository
    from sandbox.model.workflows import WorkflowRun
    from sandbox.state import GitHubState

ANSWERS_WITHIN, REACTS_WITHIN = 5.0, 1.0
NO_COMMENT = "Nobody here has that name, or the comment is empty."
NO_BUTTON = "Nobody here has that name, or the check run has no such button."
WORKFLOW_RUN = "/{owner}/{repo}/actions/runs/{number}", "/{owner}/{repo}/actions/runs/{number}/job/{job}"
"""The addresses of a workflow run and of one of its jobs, which have one page here."""
Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


def add_routes(application: web.Application, github: GitHubState, unknown: Handler) -> None:
    """Add the pages to the server; `unknown` handles all other addresses."""
    pages: dict[str, Callable[[web.Request], str]] = {
        "/": lambda request: index_page(github),
        "/{owner}/{repo}": lambda request: repository_page(_repository(github, request)),
        "/{owner}/{repo}/pull/{number}": lambda request: issue_page(_issue(github, request)),
        "/{owner}/{repo}/issues/new": lambda request: issue_form_page(
            _repository(github, request), request.query.get("title", ""), request.query.get("body", "")
        ),
        "/{owner}/{repo}/issues/{number}": lambda request: issue_page(_issue(github, request)),
        "/{owner}/{repo}/commit/{sha}": lambda request: _commit(github, request),
        "/{owner}/{repo}/commit/{sha}/checks": lambda request: _commit(github, request),
        "/{owner}/{repo}/compare/{commits}": lambda request: compare_page(
            _repository(github, request), request.match_info["commits"]
        ),
        "/{owner}/{repo}/blob/{sha}/{path:.+}": lambda request: file_page(
            _repository(github, request), request.match_info["sha"], request.match_info["path"]
        ),
        "/{owner}/{repo}/runs/{number}": lambda request: check_run_page(_check_run(github, request)),
        **dict.fromkeys(WORKFLOW_RUN, lambda request: workflow_run_page(_workflow_run(github, request))),
    }
    for path, page in pages.items():
        application.router.add_get(path, _handler(page, "text/html", unknown))
    application.router.add_post("/{owner}/{repo}/runs/{number}", _presses(github, unknown))
    for kind in ("pull", "issues"):
        application.router.add_post(f"/{{owner}}/{{repo}}/{kind}/{{number}}", _comments(github, unknown))
    add_registration_routes(application, github, unknown)
    application.router.add_get("/avatars/{number}", _handler(lambda r: _avatar(github, r), "image/svg+xml", unknown))


def _handler(page: Callable[[web.Request], str], content_type: str, unknown: Handler) -> Handler:
    async def handle(request: web.Request) -> web.StreamResponse:
        try:
            text = page(request)
        except (LookupError, ValueError):
            return await unknown(request)
        return web.Response(text=text, content_type=content_type, charset="utf-8")

    return handle


def _repository(github: GitHubState, request: web.Request) -> Repository:
    return github.repositories["{owner}/{repo}".format_map(request.match_info).lower()]


def _issue(github: GitHubState, request: web.Request) -> Issue:
    return _repository(github, request).issues[int(request.match_info["number"])]


def _commit(github: GitHubState, request: web.Request) -> str:
    repository = _repository(github, request)
    return commit_page(repository, repository.git.commits[request.match_info["sha"]])


def _check_run(github: GitHubState, request: web.Request) -> CheckRun:
    runs = {run.id: run for suite in _repository(github, request).suites for run in suite.runs}
    return runs[int(request.match_info["number"])]


def _workflow_run(github: GitHubState, request: web.Request) -> WorkflowRun:
    runs = {run.id: run for run in _repository(github, request).workflow_runs}
    return runs[int(request.match_info["number"])]


def _presses(github: GitHubState, unknown: Handler) -> Handler:
    """Return the handler that presses a button of a check run as the person in the form, and shows the result."""

    async def press(request: web.Request) -> web.StreamResponse:
        form = await request.post()
        login, action = str(form.get("by")), str(form.get("action"))
        try:
            run = _check_run(github, request)
        except (LookupError, ValueError):
            return await unknown(request)
        if login.lower() not in github.users or action not in {button["identifier"] for button in run.actions}:
            return web.Response(status=422, text=NO_BUTTON)
        shown_before = _shown(run)
        run.press(login, action)
        with suppress(AssertionError):  # the bot may have nothing to change
            await github.until(lambda: _shown(run) != shown_before, timeout=ANSWERS_WITHIN)
        raise web.HTTPSeeOther(address(newest(run)))

    return press


def _comments(github: GitHubState, unknown: Handler) -> Handler:
    """Return the handler that writes a comment as the person in the form, and shows it with what the bot did at once.

    What the bot does later is there after a reload.
    """

    async def write(request: web.Request) -> web.StreamResponse:
        form = await request.post()
        login, body = str(form.get("by")), str(form.get("body", "")).strip()
        try:
            issue = _issue(github, request)
        except (LookupError, ValueError):
            return await unknown(request)
        if login.lower() not in github.users or not body:
            return web.Response(status=422, text=NO_COMMENT)
        comment = issue.comment(login, body)
        with suppress(AssertionError):  # the bot ignores most comments
            await github.until(lambda: issue.reactions(comment), timeout=REACTS_WITHIN)
        raise web.HTTPSeeOther(f"{request.path}#issuecomment-{comment.id}")

    return write


def _shown(run: CheckRun) -> tuple[object, ...]:
    newest_run = newest(run)
    return newest_run.id, newest_run.conclusion, newest_run.title, newest_run.summary, newest_run.text


def _avatar(github: GitHubState, request: web.Request) -> str:
    people = {user.id: user for user in github.users.values()}
    return picture(people[int(request.match_info["number"])])
