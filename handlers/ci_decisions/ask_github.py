"""Decide what CI should do without the bot, from GitHub's API alone, with the CI's own token.

The bot's records are out of reach here, but its commit status shows whether slow tests are off.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

import aiohttp
from gidgethub import HTTPException
from nightjar_lab.ci.ask_bot import CannotAsk
from nightjar_lab.ci.decision import CiDecision, CiVerdict, run_everything
from nightjar_lab.ci.forms import LATER_LEVELS

from bot.config.faults import ConfigError
from bot.config.model import RepositoryConfig
from bot.config.own_file import REPOSITORY_FILE
from bot.config.repository_file import parse_repository_file
from bot.config.shared import PATH, overlaid
from bot.core.errors import TryAgain
from bot.core.events import Payload
from bot.core.http import open_session
from bot.github.client import GitHub, Wire
from bot.github.commits.contents import FILE, found_at
from bot.github.errors import is_forbidden, is_not_found, message_of, status_of
from bot.github.forbidden import is_generic
from bot.github.limits.governor import Governor
from handlers.changed_files.changes import (
    NOT_NEEDED,
    SHOWN_OF_SHA,
    Changes,
    ProposedChange,
    UnknownChanges,
    changes_of_other_commit,
    read_changes,
    read_proposed,
)
from handlers.changed_files.commits import no_base, read_compared, read_parent, read_pushes
from handlers.ci_decisions import texts
from handlers.ci_decisions.decide import commit_needs_files, decide_for_commit, needs_files
from handlers.rebuild_docker.config import REBUILD_DOCKER
from handlers.rebuild_docker.decide import rebuild_docker
from handlers.skip_ci.config import SKIP_CI
from handlers.skip_ci.decide import docs_only, skip_ci
from handlers.slow_tests.config import SLOW_TESTS
from handlers.slow_tests.texts import LEVEL_PREFIX, OFF_PREFIX

if TYPE_CHECKING:
    from bot.config.keys import Keys

TIMEOUT = aiohttp.ClientTimeout(total=7, sock_connect=4)
"""Seconds for one try of one request."""


@dataclass(frozen=True, slots=True)
class TokenCredentials:
    """A token that CI passed to us; it cannot be renewed."""

    token: str
    name: str = "token"
    refusal: str = "GitHub does not accept the token: {reason}"

    async def authorization(self) -> str:
        """Return the Authorization header."""
        return f"Bearer {self.token}"

    def rejected(self, authorization: str, status: int) -> bool:
        """Return False: another try would fail as well, because there is no other token."""
        return False

    def paused(self) -> None:
        """Return None: the token may be a person's."""


async def ask_github(
    api_url: str,
    token: str,
    repository: str,
    number: int,
    sha: str,
    model: type[RepositoryConfig],
    app_settings: RepositoryConfig | None,
) -> CiDecision:
    """Return what CI should do for a pull request of `owner/name`, in about five requests; raises `CannotAsk`.

    `model` has the keys of all features. `app_settings` are the repository's settings in app.yaml. They are None
    without an app.yaml: then the repository's own file on its default branch decides. The file in a checkout of the
    pull request never counts, as its author can edit it.
    """
    async with _client(api_url, token) as github:
        try:
            config = await _settings(github, repository, model, app_settings)
            proposed = await read_proposed(github, repository, number)
        except (TryAgain, HTTPException) as error:
            raise CannotAsk(_failure_reason(error)) from None
        title, changes = await _read_changes(github, repository, proposed, sha, config)
        slow_tests = await _slow_tests(github, repository, proposed, config)
        return CiDecision(
            sha=proposed.pull.head_sha,
            run_slow_tests=slow_tests,
            later_level=_later_level(slow_tests),
            skip_ci=skip_ci(config.of(SKIP_CI), title, changes),
            docs_only=docs_only(config.of(SKIP_CI), title, changes),
            rebuild_docker=rebuild_docker(config.of(REBUILD_DOCKER), changes),
        )


async def ask_github_about_commit(
    api_url: str,
    token: str,
    repository: str,
    sha: str,
    branch: str,
    model: type[RepositoryConfig],
    app_settings: RepositoryConfig | None,
) -> CiDecision:
    """Return what CI should do for a commit of a branch of `owner/name`, in four requests; raises `CannotAsk`.

    `model` and `app_settings` are as for `ask_github`.
    """
    async with _client(api_url, token) as github:
        try:
            config = await _settings(github, repository, model, app_settings)
            parent = await read_parent(github, repository, sha)
        except (TryAgain, HTTPException) as error:
            raise CannotAsk(texts.COMMIT_NOT_SHOWN if is_not_found(error) else _failure_reason(error)) from None
        changes: Changes = NOT_NEEDED
        if commit_needs_files(config):
            try:
                pushes = await read_pushes(github, repository, branch)
                changes = no_base(sha, parent, pushes) or await read_compared(github, repository, parent, sha)
            except (TryAgain, HTTPException) as error:
                changes = UnknownChanges(texts.GITHUB_NOT_REACHED if is_not_found(error) else _failure_reason(error))
        return decide_for_commit(config, sha, changes, branch)


@asynccontextmanager
async def _client(api_url: str, token: str) -> AsyncIterator[GitHub]:
    async with open_session() as session:
        wire = Wire(session, api_url, Governor(), timeout=TIMEOUT)
        yield GitHub(wire, TokenCredentials(token))


def alone(keys: Keys, model: type[RepositoryConfig]) -> RepositoryConfig:
    """Return the settings of a repository's own file alone. Every feature that the file names is on."""
    enabled: dict[str, object] = {
        name: {} for name in map(str, (SKIP_CI, REBUILD_DOCKER)) if name in keys.model_fields_set
    }
    return overlaid(model.model_validate(enabled), keys)


async def _settings(
    github: GitHub, repository: str, model: type[RepositoryConfig], app_settings: RepositoryConfig | None
) -> RepositoryConfig:
    if app_settings is not None and not app_settings.of(REPOSITORY_FILE):
        return app_settings
    file = await found_at(github, repository, PATH)
    if file is not None and file.kind != FILE:
        raise CannotAsk(texts.FILE_INVALID.format(path=PATH))
    try:
        keys = parse_repository_file(file.raw if file else b"", model)
    except ConfigError:
        raise CannotAsk(texts.FILE_INVALID.format(path=PATH)) from None
    return alone(keys, model) if app_settings is None else overlaid(app_settings, keys)


async def _read_changes(
    github: GitHub, repository: str, proposed: ProposedChange, sha: str, config: RepositoryConfig
) -> tuple[str, Changes]:
    """Return the title and the changes of a pull request, or why they do not describe the commit that CI builds."""
    pull = proposed.pull
    if sha not in ("", pull.head_sha):
        return "", changes_of_other_commit(sha, pull.head_sha)
    if not needs_files(config, pull.title):
        return pull.title, NOT_NEEDED
    try:
        return pull.title, await read_changes(github, repository, proposed)
    except (TryAgain, HTTPException) as error:
        return pull.title, UnknownChanges(_failure_reason(error))


async def _slow_tests(github: GitHub, repository: str, proposed: ProposedChange, config: RepositoryConfig) -> CiVerdict:
    slow_tests = config.of(SLOW_TESTS)
    if slow_tests is None:
        return CiVerdict(True, texts.SLOW_TESTS_NOT_ON)
    head, context = proposed.pull.head_sha, slow_tests.status
    reason = texts.NO_STATUS.format(context=context, sha=head[:SHOWN_OF_SHA])
    try:
        statuses = github.getiter(
            # Unlike `/statuses`, only the newest of each context:
            # https://docs.github.com/rest/commits/statuses#get-the-combined-status-for-a-specific-reference
            "/repos/{+repo}/commits/{sha}/status",
            url_vars={"repo": repository, "sha": head},
            iterable_key="statuses",
        )
        async for item in statuses:
            status = Payload(item, "status")
            if status.string("context") == context:
                description = status.text("description")
                return CiVerdict(not description.startswith(OFF_PREFIX), description)
    except (TryAgain, HTTPException) as error:
        reason = _failure_reason(error)
    return run_everything(reason).run_slow_tests


def _later_level(slow_tests: CiVerdict) -> str:
    """Return the level that the bot's status names if it comes after `main`, otherwise empty."""
    prefixes = {level: f"{LEVEL_PREFIX}{level}:" for level in LATER_LEVELS}
    return next((level for level, prefix in prefixes.items() if slow_tests.reason.startswith(prefix)), "")


def _failure_reason(error: Exception) -> str:
    if status_of(error) == 401:
        return texts.INVALID_CREDENTIALS
    if is_forbidden(error):
        message = message_of(error)
        return texts.MISSING_PERMISSION if is_generic(message) else texts.GITHUB_REFUSED.format(message=message)
    # GitHub answers 404, not 403, for a private repository that the token may not see:
    # https://docs.github.com/rest/using-the-rest-api/troubleshooting-the-rest-api#404-not-found-for-an-existing-resource
    return texts.PULL_NOT_SHOWN if is_not_found(error) else texts.GITHUB_NOT_REACHED
