"""`nightjar ci decide`: what a step of a CI does for a pull request, asked of the bot or found out on GitHub."""

from __future__ import annotations

import asyncio
import logging
import os
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click

from bot.cli.support import AS_WRITTEN, REPOSITORY, Matching, config_option
from bot.config import ConfigError, RepositoryConfig, load_config
from bot.config.types import BRANCH, HEADS, WHOLE_REF
from bot.core.patterns import Pattern
from bot.core.urls import encrypted_url, http_url
from handlers.ci_decisions.ask_bot import CannotAsk, ask_bot, commit_path, pull_request_path
from handlers.ci_decisions.ask_github import ask_github, ask_github_about_commit
from handlers.ci_decisions.decide import Decision, run_everything
from handlers.ci_decisions.forms import FORMS, comments, explained

DEADLINE = 25.0
"""Seconds after which everything runs, whoever was asked."""
GITHUB = "https://api.github.com"

NO_PULL_REQUEST = "This build is of no pull request, so {what}."
NOTHING_NAMED = "say what is built: --pr NUMBER, or --branch BRANCH and --sha SHA"
NO_COMMIT = "--branch needs --sha SHA, the commit that is built"
NOBODY_TO_ASK = "neither --api, NIGHTJAR_URL, GITHUB_TOKEN nor public_url of app.yaml says whom to ask"
NOT_IN_TIME = f"there was no answer within {DEADLINE:.0f} s"
UNFORESEEN = "something unforeseen went wrong ({kind})"
BAD_CONFIG = "app.yaml could not be read ({fault})"
NOT_NAMED = "{path} does not name {repository}"
WHICH_REPOSITORY = "say which repository: --repo OWNER/NAME"
NOT_WRITTEN = "the values could not be appended to GITHUB_OUTPUT ({problem})"

_IS_BRANCH = Pattern(BRANCH)
NONE = ("", "null", "none", "false")
"""What CIs write where a build is of no pull request."""


class PullRequestNumber(click.ParamType[int]):
    """The number of a pull request; 0 where a CI says that there is none."""

    name = "number"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        """Return the number, or fail as click does."""
        text = str(value).strip()
        if text.lower() in NONE:
            return 0
        if text.isascii() and text.isdecimal() and 1 <= int(text[:11]) < 2**31:
            return int(text)
        self.fail(f"{value!r} must be the number of a pull request, or nothing for a build of none", param, ctx)


class Branch(click.ParamType[str]):
    """The name of a branch, empty where a CI says that there is none."""

    name = "branch"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """Return the name, or fail as click does."""
        text = str(value).strip()
        if text.lower() in NONE:
            return ""
        if text.startswith(HEADS):
            self.fail(f"{value!r} {WHOLE_REF}", param, ctx)
        if not _IS_BRANCH.fullmatch(text):
            self.fail(f"{value!r} must be the name of a branch, as in main", param, ctx)
        return text


class Address(click.ParamType[str]):
    """A web address, or nothing: what a CI has in no variable."""

    name = "url"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """Return the address without its last slash, or fail as click does."""
        try:
            return http_url(str(value).strip()) if str(value).strip() else ""
        except ValueError as error:
            self.fail(str(error), param, ctx)


SHA = Matching(r"(?:[0-9a-f]{40}(?:[0-9a-f]{24})?)?", "the whole SHA of a commit, in small letters")


@click.command(
    short_help="Say what CI should do for a pull request or a commit.",
    epilog=f"""{AS_WRITTEN}
    Examples:
      decided=$(nightjar ci decide --pr "$PR" --repo octocat/compiler --api https://ci.example.org)
      eval "$decided"                      # SKIP_CI, SKIP_SLOW_TESTS, REBUILD_DOCKER: true or false
      nightjar ci decide --pr "${{{{ github.event.number }}}}" --format github     # in a step of a workflow
      GITHUB_TOKEN=... nightjar ci decide --pr 42 --repo octocat/compiler --format json
      nightjar ci decide --branch main --sha "$GIT_COMMIT" --repo octocat/compiler     # compared with its parent
    """,
)
@click.option("--pr", "number", type=PullRequestNumber(), help="The pull request; empty for a build of none.")
@click.option(
    "--branch", type=Branch(), help="The branch, for a build of no pull request: --sha is compared with its parent."
)
@click.option(
    "--repo",
    "repository",
    type=REPOSITORY,
    envvar=["NIGHTJAR_REPOSITORY", "GITHUB_REPOSITORY"],
    show_envvar=True,
    help="OWNER/NAME; left out: the only one in app.yaml.",
)
@click.option(
    "--sha", type=SHA, default="", help="The commit that is built: nothing is skipped where it is not the head."
)
@click.option(
    "--format", "form", type=click.Choice(list(FORMS)), default="env", show_default=True, help="How it is printed."
)
@click.option("--json", "form", flag_value="json", help="The same as --format json.")
@click.option("--api", type=Address(), envvar="NIGHTJAR_URL", show_envvar=True, help="Where the bot is.")
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
    """Say what CI should do for a pull request or a commit of a branch: skip CI, run slow tests, build Docker images.

    The bot is asked, at --api or NIGHTJAR_URL. Without these, and with GITHUB_TOKEN, GitHub is asked instead: whether
    slow tests are off is then read from the bot's status, and all else is decided here, by .github/nightjar.yaml on
    the default branch and, if --config names one, app.yaml. Without a token either, the bot is looked for at public_url
    of app.yaml.

    The values go to standard output, or for --format github to the file GITHUB_OUTPUT where there is one; the reasons
    go to standard error, as comments. Whatever goes wrong, everything runs, and the reason says that this is a
    fallback: the exit status is 0 but for bad usage (2).
    """
    if number is None and branch is None:
        raise click.UsageError(NOTHING_NAMED)
    if not number and branch and not sha:
        raise click.UsageError(NO_COMMIT)
    if not number and not branch:
        _print(run_everything("", sha, NO_PULL_REQUEST), form)
        return
    named = ctx.get_parameter_source("config_path") is not click.core.ParameterSource.DEFAULT
    repository = repository or _only_repository(config_path)
    question = Question(number or 0, branch or "", repository, sha, api, config_path, named)
    # Standard error is for the reasons: what a shell reads of it must be comments.
    logging.disable(logging.CRITICAL)
    with asyncio.Runner() as runner:
        decision, late = runner.run(_answered(question))
        _print(decision, form)
        if late:
            # The end waits for threads that look up names of hosts, which may take longer than a step of CI should.
            sys.stdout.flush()
            os._exit(0)


@dataclass(frozen=True, slots=True)
class Question:
    """What is asked; `named` says whether somebody named app.yaml, rather than that it is there.

    `branch` counts where `number` is 0.
    """

    number: int
    branch: str
    repository: str
    sha: str
    api: str | None
    config_path: Path
    named: bool

    @property
    def path(self) -> str:
        """Return where the bot's API answers it."""
        if self.number:
            return pull_request_path(self.repository, self.number, self.sha)
        return commit_path(self.repository, self.sha, self.branch)

    async def of_github(self, url: str, token: str, given: RepositoryConfig | None) -> Decision:
        """Find the answer out without the bot; raises `CannotAsk`."""
        if self.number:
            return await ask_github(url, token, self.repository, self.number, self.sha, given)
        return await ask_github_about_commit(url, token, self.repository, self.sha, self.branch, given)


def _only_repository(path: Path) -> str:
    """Return the one repository that app.yaml has; anything else is bad usage."""
    try:
        names = list(load_config(path).repositories)
    except ConfigError:
        names = []
    if len(names) != 1:
        raise click.UsageError(WHICH_REPOSITORY)
    return names[0]


async def _answered(question: Question) -> tuple[Decision, bool]:
    """Return an answer in any case, and whether somebody is still being waited for."""
    try:
        async with asyncio.timeout(DEADLINE):
            return await _asked(question), False
    except TimeoutError:
        return run_everything(NOT_IN_TIME, question.sha), True
    except CannotAsk as error:
        why = str(error)
    except ConfigError as error:
        why = BAD_CONFIG.format(fault=error.faults[0])
    except Exception as error:
        why = UNFORESEEN.format(kind=type(error).__name__)
    return run_everything(why, question.sha), False


async def _asked(question: Question) -> Decision:
    ours = os.environ.get("NIGHTJAR_TOKEN", "").strip()
    if question.api:
        return await ask_bot(question.api, question.path, ours)
    config = load_config(question.config_path) if question.named else None
    if token := os.environ.get("GITHUB_TOKEN", "").strip():
        given = config.repository(question.repository) if config else None
        if config and not given:
            raise CannotAsk(NOT_NAMED.format(path=question.config_path, repository=question.repository))
        return await question.of_github(_github_url(), token, given)
    if config is None and question.config_path.exists():
        config = load_config(question.config_path)
    if config is None or not config.public_url:
        raise CannotAsk(NOBODY_TO_ASK)
    # An app.yaml that only lies here is the pull request's own: whose address that is, nobody knows.
    return await ask_bot(config.public_url, question.path, ours if question.named else "")


def _github_url() -> str:
    try:
        return encrypted_url(os.environ.get("GITHUB_API_URL", "").strip() or GITHUB)
    except ValueError as error:
        raise CannotAsk(f"GITHUB_API_URL {error}") from None


def _print(decision: Decision, form: str) -> None:
    """Print the values first: whoever evaluates everything together has them before the first comment."""
    text, told = FORMS[form](decision), explained(decision)
    output = os.environ.get("GITHUB_OUTPUT") if form == "github" else None
    if output:
        try:
            with Path(output).open("a", encoding="utf-8") as file:
                file.write(text)
        except OSError as error:
            told += comments([NOT_WRITTEN.format(problem=error.strerror)])
            output = None
    if not output:
        click.echo(text, nl=False)
    for line in told:
        click.echo(line, err=True)
