"""`nightjar ci decide`: what CI should do for a pull request or commit, asked of the bot or found on GitHub."""

from __future__ import annotations

import asyncio
import logging
import os
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click
from nightjar_formats.terminal import quoted_text
from nightjar_lab.ci.ask_bot import CannotAsk, ask_bot, commit_path, pull_request_path
from nightjar_lab.ci.decision import CiDecision, run_everything
from nightjar_lab.ci.texts import (
    NO_ANSWER_IN_TIME,
    UNEXPECTED_ERROR,
)
from nightjar_lab.cli.ci import DEADLINE, NO_VALUE, form_option, is_open, json_form_option, write_decision

from bot.app.load import app_repository_model, load_config
from bot.cli.support import AS_WRITTEN, REPOSITORY, Matching, config_option
from bot.cli.texts import (
    BAD_GITHUB_URL,
    INVALID_CONFIG,
    NO_REPOSITORY_NAMED,
    NO_SOURCE,
    NOT_A_BRANCH,
    NOT_A_PULL_REQUEST,
    NOT_A_REF,
    REPOSITORY_NOT_LISTED,
)
from bot.config import ConfigError, RepositoryConfig
from bot.config.repositories import is_pattern
from bot.config.texts import WHOLE_REF
from bot.config.types import BRANCH, HEADS
from bot.core.patterns import Pattern
from bot.core.urls import encrypted_url, http_url
from handlers.ci_decisions.ask_github import ask_github, ask_github_about_commit

GITHUB = "https://api.github.com"


_IS_BRANCH = Pattern(BRANCH)


class PullRequestNumber(click.ParamType[int]):
    """The number of a pull request; 0 for a build without one."""

    name = "number"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        """Return the number, or fail as click does."""
        text = str(value).strip()
        if text.lower() in NO_VALUE:
            return 0
        # Eleven digits are enough to know that a number is too large, and int() raises for more than 4,300.
        if text.isascii() and text.isdecimal() and 1 <= int(text[:11]) < 2**31:
            return int(text)
        self.fail(NOT_A_PULL_REQUEST.format(value=quoted_text(str(value))), param, ctx)


class BranchOrNothing(click.ParamType[str]):
    """The name of a branch; empty for a build without one."""

    name = "branch"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """Return the name, or fail as click does."""
        text = str(value).strip()
        if text.lower() in NO_VALUE:
            return ""
        if text.startswith(HEADS):
            self.fail(NOT_A_REF.format(value=quoted_text(str(value)), problem=WHOLE_REF), param, ctx)
        if not _IS_BRANCH.fullmatch(text):
            self.fail(NOT_A_BRANCH.format(value=quoted_text(str(value))), param, ctx)
        return text


class AddressOrNothing(click.ParamType[str]):
    """A web address, or nothing if a variable of CI is empty."""

    name = "url"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """Return the address without its last slash, or fail as click does."""
        try:
            return http_url(str(value).strip()) if str(value).strip() else ""
        except ValueError as error:
            self.fail(str(error), param, ctx)


repository_option = click.option(
    "--repo",
    "repository",
    type=REPOSITORY,
    envvar=["NIGHTJAR_REPOSITORY", "GITHUB_REPOSITORY"],
    show_envvar=True,
    help="OWNER/NAME; default: the only one in app.yaml.",
)

SHA = Matching(r"(?:[0-9a-f]{40}(?:[0-9a-f]{24})?)?", "the full SHA of a commit, in lower case")


@click.command(
    short_help="Print what CI should do for a pull request or a commit.",
    epilog=f"""{AS_WRITTEN}
    Examples:
      decided=$(nightjar ci decide --pr "$PR" --repo octocat/compiler --api https://ci.example.org)
      eval "$decided"                      # SKIP_CI, SKIP_SLOW_TESTS, REBUILD_DOCKER: true or false
      nightjar ci decide --pr "${{{{ github.event.number }}}}" --format github     # in a step of a workflow
      GITHUB_TOKEN=... nightjar ci decide --pr 42 --repo octocat/compiler --format json
      nightjar ci decide --branch main --sha "$GIT_COMMIT" --repo octocat/compiler     # compared with its parent
    """,
)
@click.option("--pr", "number", type=PullRequestNumber(), help="The pull request; empty for other builds.")
@click.option(
    "--branch",
    type=BranchOrNothing(),
    help="The branch, for a build without a pull request: --sha is compared with its parent.",
)
@repository_option
@click.option("--sha", type=SHA, default="", help="The commit of the build; if it is not the head, nothing is skipped.")
@form_option
@json_form_option
@click.option("--api", type=AddressOrNothing(), envvar="NIGHTJAR_URL", show_envvar=True, help="Address of the bot.")
@config_option
@click.pass_context
def decide(
    ctx: click.Context,
    number: int | None,
    branch: str | None,
    repository: str | None,
    sha: str,
    form: str,
    api: str | None,
    config_path: Path,
) -> None:
    """Print what CI should do for a pull request or a commit: skip CI, run slow tests, rebuild Docker images.

    Asks the bot at --api or NIGHTJAR_URL. Without these, and with GITHUB_TOKEN, asks GitHub: reads from the bot's
    status whether slow tests are off, and decides the rest here, by .github/nightjar.yaml on the default branch and,
    with --config, by app.yaml. Without a token either, asks the bot at public_url of app.yaml.

    Values go to standard output, or with --format github to the file GITHUB_OUTPUT; reasons go to standard error, as
    comments. On any failure the answer is to run everything, and the reason says that this is a fallback. So the exit
    status is 0, except for bad usage (2).
    """
    if not is_open(number, branch, sha, form):
        return
    named = ctx.get_parameter_source("config_path") is not click.core.ParameterSource.DEFAULT
    repository = repository or only_repository(config_path)
    question = DecisionQuery(number or 0, branch or "", repository, sha, api, config_path, named)
    # Standard error holds the reasons: a shell that evaluates it must read nothing but comments.
    logging.disable(logging.CRITICAL)
    with asyncio.Runner() as runner:
        decision, late = runner.run(_decide_in_time(question))
        write_decision(decision, form)
        if late:
            # A normal exit waits for threads that resolve host names, which may take longer than a step of CI should.
            sys.stdout.flush()
            os._exit(0)


@dataclass(frozen=True, slots=True)
class DecisionQuery:
    """A build to decide about. `branch` counts only if `number` is 0; `named` says whether --config names app.yaml."""

    number: int
    branch: str
    repository: str
    sha: str
    api: str | None
    config_path: Path
    named: bool

    @property
    def path(self) -> str:
        """Return the path of the bot's API that answers the question."""
        if self.number:
            return pull_request_path(self.repository, self.number, self.sha)
        return commit_path(self.repository, self.sha, self.branch)

    async def decide_by_github(self, url: str, token: str, config: RepositoryConfig | None) -> CiDecision:
        """Decide without the bot, by GitHub's answers. Raises `CannotAsk`."""
        model = app_repository_model()
        if self.number:
            return await ask_github(url, token, self.repository, self.number, self.sha, model, config)
        return await ask_github_about_commit(url, token, self.repository, self.sha, self.branch, model, config)


def only_repository(path: Path) -> str:
    """Return the only repository of app.yaml; if there is none or more than one, fail as bad usage."""
    try:
        names = list(load_config(path).configured.entries)
    except ConfigError:
        names = []
    if len(names) != 1 or is_pattern(names[0]):
        raise click.UsageError(NO_REPOSITORY_NAMED)
    return names[0]


async def _decide_in_time(question: DecisionQuery) -> tuple[CiDecision, bool]:
    """Return a decision in any case, and whether a request is still running."""
    try:
        async with asyncio.timeout(DEADLINE):
            return await _decide(question), False
    except TimeoutError:
        return run_everything(NO_ANSWER_IN_TIME.format(seconds=DEADLINE), question.sha), True
    except CannotAsk as error:
        reason = str(error)
    except ConfigError as error:
        reason = INVALID_CONFIG.format(fault=error.faults[0])
    except Exception as error:
        # Without an answer, CI must run everything, not fail: so this catches every error.
        reason = UNEXPECTED_ERROR.format(kind=type(error).__name__)
    return run_everything(reason, question.sha), False


async def _decide(question: DecisionQuery) -> CiDecision:
    bot_token = os.environ.get("NIGHTJAR_TOKEN", "").strip()
    if question.api:
        return await asyncio.to_thread(ask_bot, question.api, question.path, bot_token)
    config = load_config(question.config_path) if question.named else None
    if token := os.environ.get("GITHUB_TOKEN", "").strip():
        repository_config = config.configured.settings_if_installed(question.repository) if config else None
        if config and not repository_config:
            raise CannotAsk(REPOSITORY_NOT_LISTED.format(path=question.config_path, repository=question.repository))
        return await question.decide_by_github(_github_url(), token, repository_config)
    if config is None and question.config_path.exists():
        config = load_config(question.config_path)
    if config is None or not config.public_url:
        raise CannotAsk(NO_SOURCE)
    # An app.yaml that was not named may come from the pull request: never send our token to its address.
    return await asyncio.to_thread(ask_bot, config.public_url, question.path, bot_token if question.named else "")


def _github_url() -> str:
    try:
        return encrypted_url(os.environ.get("GITHUB_API_URL", "").strip() or GITHUB)
    except ValueError as error:
        raise CannotAsk(BAD_GITHUB_URL.format(problem=error)) from None
