"""Apply a repository's own settings, `.github/nightjar.yaml`, from its default branch, and check changes to them.

The settings on the default branch are in force if they have no errors; otherwise, the last good ones are. A commit that
changes the file gets a check run, `nightjar/config`, with the errors or the effect of the change.
"""

from __future__ import annotations

import time
from datetime import datetime
from typing import TYPE_CHECKING

from bot.config.own_file import REPOSITORY_FILE
from bot.config.shared import PATH
from bot.core.errors import TryAgain
from bot.effects.checks import CHECK_RUN, PutCheckRun
from bot.github.commits.contents import FoundFile, found_at, knows_commit
from bot.github.commits.pushed_files import may_change_on_default
from bot.github.commits.refs import merge_base
from bot.github.pull_heads import pulls_with_head
from bot.github.repositories.in_force import StoredFile, name_of, read_found, stored_file_of, with_file
from bot.plan.effect import Effect
from bot.plan.handler import NOTHING, Context, Plan, Router
from bot.plan.page_links import pull_page_url
from handlers.repository_file.effects import StoreRepositoryFile
from handlers.repository_file.report import NAME as CHECK
from handlers.repository_file.report import CheckedFile, config_report
from handlers.repository_file.sweep import FILE_FOUND
from handlers.repository_file.texts import ERRORS, NO_ERRORS, NO_FILE, NOT_TOUCHED, NOT_VISIBLE_YET, SAME_AS_DEFAULT

if TYPE_CHECKING:
    from bot.config import RepositoryConfig
    from bot.core.events import Delivery, Payload

NAME, CHECK_NAME, AGAIN_NAME = "repository-file", "repository-file-check", "repository-file-again"

router = Router()


def _changes_file(delivery: Delivery, config: RepositoryConfig) -> bool:
    return config.of(REPOSITORY_FILE) and may_change_on_default(delivery.payload, PATH)


@router.on("push", name=NAME, accepts=_changes_file)
@router.on(FILE_FOUND.name, name=NAME, accepts=_changes_file)
async def apply_file(context: Context) -> Plan:
    """Apply the file of a push to the default branch; if it has errors, report them in a check run on its commit."""
    as_of, payload = time.time(), context.delivery.payload
    sha, branch = payload.string("after"), payload.text("repository", "default_branch")
    stored_file = await stored_file_of(context.records, context.repository.full_name)
    file = await _read_file(context, sha, stored_file)
    text, faults = await read_found(file, _app_settings(context))
    store = StoreRepositoryFile(
        sha=name_of(file),
        commit=sha,
        before=payload.text("before"),
        pushed_at=pushed_at(payload),
        text=text,
        faults=len(faults),
    )
    if not faults:
        return Plan((store,), why=NO_ERRORS if file else NO_FILE)
    checked = CheckedFile(faults, context.config, context.config, stored_file.good.commit, branch)
    check = PutCheckRun(CHECK, sha, store.sha, config_report(checked), as_of)
    return Plan((store, check), why=ERRORS.format(count=len(faults)))


def _may_edit(delivery: Delivery, config: RepositoryConfig) -> bool:
    pull = delivery.payload.at("pull_request")
    changes = not pull.has("changed_files") or pull.integer("changed_files") > 0
    return config.of(REPOSITORY_FILE) and changes and pull.text("state") == "open"


@router.on("pull_request", "opened", "reopened", "synchronize", name=CHECK_NAME, accepts=_may_edit)
async def check(context: Context) -> Plan:
    """Report the errors or the effect of the file on a pull request's head, if the pull request changes the file.

    If it does not, this usually takes one request: the head has the same file as the default branch.
    """
    as_of, pull = time.time(), context.delivery.payload.at("pull_request")
    repository, head = context.repository.full_name, pull.string("head", "sha")
    stored_file = await stored_file_of(context.records, repository)
    file = await _read_file(context, head, stored_file)
    # The name is git's hash of the content, so equal names mean equal files.
    if name_of(file) == stored_file.seen:
        return Plan(why=SAME_AS_DEFAULT)
    # The head may be behind the default branch: only its own changes count.
    base = await merge_base(context.github, repository, pull.string("base", "sha"), head)
    if base is not None and file == await found_at(context.github, repository, PATH, base):
        return Plan(why=NOT_TOUCHED)
    return await _put_check(context, head, file, stored_file, as_of)


def _is_rerun_request(delivery: Delivery, config: RepositoryConfig) -> bool:
    is_suite = delivery.event == "check_suite"
    return config.of(REPOSITORY_FILE) and (is_suite or delivery.payload.text("check_run", "name") == CHECK)


@router.on("check_run", "rerequested", name=AGAIN_NAME, accepts=_is_rerun_request)
@router.on("check_suite", "rerequested", name=AGAIN_NAME, accepts=_is_rerun_request)
async def check_again(context: Context) -> Plan:
    """Check the file of a commit again, because somebody asked to rerun this check or all checks of the commit."""
    as_of, event = time.time(), context.delivery.event
    rerun = context.delivery.payload.at(event)
    sha = rerun.string("head_sha")
    is_own = rerun.integer("app", "id") == context.me.app_id
    if not is_own or not await context.records.get(CHECK_RUN.of(context.repository.id, sha, CHECK)):
        return NOTHING
    stored_file = await stored_file_of(context.records, context.repository.full_name)
    return await _put_check(
        context, sha, await _read_file(context, sha, stored_file), stored_file, as_of, is_rerun=True
    )


def pushed_at(payload: Payload) -> int:
    """Return when the last push was, in whole seconds since 1970: `push` has a number, everything else ISO 8601."""
    pushed = payload.at("repository").raw.get("pushed_at")
    if isinstance(pushed, str):
        return int(datetime.fromisoformat(pushed).timestamp())
    return pushed if isinstance(pushed, int) else 0


async def _read_file(context: Context, sha: str, stored_file: StoredFile) -> FoundFile | None:
    """Return the file at a commit. A missing file counts as removed only if GitHub already shows the commit."""
    repository = context.repository.full_name
    file = await found_at(context.github, repository, PATH, sha)
    if file is None and stored_file.seen and not await knows_commit(context.github, repository, sha):
        raise TryAgain(NOT_VISIBLE_YET)
    return file


async def _put_check(
    context: Context, sha: str, file: FoundFile | None, stored_file: StoredFile, as_of: float, *, is_rerun: bool = False
) -> Plan:
    app_settings = _app_settings(context)
    text, faults = await read_found(file, app_settings)
    checked = CheckedFile(
        faults=faults,
        current=context.config,
        proposed=await with_file(app_settings, text),
        commit=stored_file.good.commit,
        branch=context.delivery.payload.text("repository", "default_branch"),
        removed=file is None,
    )
    content, page = config_report(checked), await _page(context, sha)
    check_run: Effect = PutCheckRun(CHECK, sha, name_of(file), content, as_of, is_rerun, page)
    return Plan((check_run,), why=content.title)


async def _page(context: Context, sha: str) -> str:
    """Return the page of the pull request whose head a commit is; empty without one."""
    payload = context.delivery.payload
    pull_numbers = [payload.integer("pull_request", "number")] if payload.has("pull_request") else []
    numbers = pull_numbers or await pulls_with_head(context.records, context.repository.id, sha)
    return pull_page_url(context, numbers[-1]) if numbers else ""


def _app_settings(context: Context) -> RepositoryConfig:
    """Return what app.yaml says about the repository."""
    app_settings = context.app_config.repository(context.repository.full_name)
    assert app_settings is not None, "a handler runs only where app.yaml has the repository"
    return app_settings
