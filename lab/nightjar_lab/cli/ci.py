"""`nightjar-lab ci`: what a CI asks the bot, without the server's packages."""

from __future__ import annotations

import os
import re  # noqa: TID251
import sys
import threading
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import click

from nightjar_lab.ci import texts
from nightjar_lab.ci.ask_bot import CannotAsk, ask_bot, commit_path, pull_request_path
from nightjar_lab.ci.decision import CiDecision, run_everything
from nightjar_lab.ci.forms import FORMS, comments, explained
from nightjar_lab.cli.options import AS_WRITTEN, REPOSITORY, TextOfForm, TextType

DEADLINE = 25.0
"""Seconds to wait for an answer; then the decision is to run everything."""
# Jenkins writes `null` for a branch (TVM's `CHANGE_ID`).
NO_VALUE = ("", "null", "none", "false")
"""Values that CI systems write for a build without a pull request."""

# A class with bounds each, or alternatives of one length.
_NUMBER = re.compile(r"[1-9][0-9]{0,8}|1[0-9]{9}")  # noqa: TID251
_BRANCH = re.compile(r"(?!refs/heads/)[^\s\x00-\x20~^:?*\[\\\x7f]{1,244}")  # noqa: TID251
_COMMIT = re.compile(r"(?:[0-9a-f]{40}(?:[0-9a-f]{24})?)?")  # noqa: TID251


class OrNothing(TextOfForm):
    """A text of a certain form; empty for a build that has none."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """Return the text, or fail as click does."""
        text = str(value).strip()
        return "" if text.lower() in NO_VALUE else super().convert(text, param, ctx)


class WebAddress(TextType):
    """A web address, or nothing if a variable of CI is empty. Without a token, it need not be encrypted."""

    name = "url"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """Return the address without its last slash, or fail as click does."""
        text = str(value).strip().rstrip("/")
        try:
            parts = urlsplit(text)
            valid = not text or (parts.scheme in ("http", "https") and bool(parts.hostname) and "@" not in parts.netloc)
        except ValueError:
            valid = False
        if not valid:
            # Without the value, which may hold a password.
            self.fail(texts.ADDRESS_FORM, param, ctx)
        return text


form_option = click.option(
    "--format", "form", type=click.Choice(list(FORMS)), default="env", show_default=True, help="Output format."
)
json_form_option = click.option("--json", "form", flag_value="json", help="Same as --format json.")


@click.group()
def ci() -> None:
    """Decide for CI what to run."""


@ci.command(
    short_help="Print what CI should do for a pull request or a commit.",
    epilog=f"""{AS_WRITTEN}
    Examples (`nightjar ci decide` on a server can also ask GitHub):
      decided=$(nightjar-lab ci decide --pr "$PR" --repo octocat/compiler --api https://ci.example.org)
      eval "$decided"                      # SKIP_CI, SKIP_SLOW_TESTS, REBUILD_DOCKER: true or false
      nightjar-lab ci decide --pr "${{{{ github.event.number }}}}" --format github     # in a step of a workflow
      nightjar-lab ci decide --branch main --sha "$GIT_COMMIT" --repo octocat/compiler
    """,
)
@click.option(
    "--pr",
    "number",
    type=OrNothing(_NUMBER, texts.PULL_REQUEST_FORM),
    help="The pull request; empty for other builds.",
)
@click.option(
    "--branch",
    type=OrNothing(_BRANCH, texts.BRANCH_FORM),
    help="The branch, for a build without a pull request: --sha is compared with its parent.",
)
@click.option(
    "--repo",
    "repository",
    type=REPOSITORY,
    envvar=["NIGHTJAR_REPOSITORY", "GITHUB_REPOSITORY"],
    show_envvar=True,
    help="OWNER/NAME.",
)
@click.option(
    "--sha",
    type=TextOfForm(_COMMIT, texts.COMMIT_FORM),
    default="",
    help="The commit of the build; if it is not the head, nothing is skipped.",
)
@form_option
@json_form_option
@click.option("--api", type=WebAddress(), envvar="NIGHTJAR_URL", show_envvar=True, help="Address of the bot.")
def decide(
    number: str | None, branch: str | None, repository: str | None, sha: str, form: str, api: str | None
) -> None:
    """Print what CI should do for a pull request or a commit: skip CI, run slow tests, rebuild Docker images.

    Asks the bot at --api or NIGHTJAR_URL; NIGHTJAR_TOKEN is for private repositories. Values go to standard output, or
    with --format github to the file GITHUB_OUTPUT; reasons go to standard error, as comments. On any failure the answer
    is to run everything, and the reason says that this is a fallback. So the exit status is 0, except for bad usage
    (2).
    """
    if not is_open(number, branch, sha, form):
        return
    if not repository:
        raise click.UsageError(texts.NO_REPOSITORY)
    path = pull_request_path(repository, int(number), sha) if number else commit_path(repository, sha, branch or "")
    write_decision(_decide_in_time(api or "", path, sha), form)


def is_open(number: str | int | None, branch: str | None, sha: str, form: str) -> bool:
    """Return whether somebody must be asked about a build; write the decision for one without pull request and branch.

    Raises `click.UsageError` if no build is named.
    """
    if number is None and branch is None:
        raise click.UsageError(texts.NO_BUILD_NAMED)
    if not number and branch and not sha:
        raise click.UsageError(texts.NO_COMMIT)
    if not number and not branch:
        write_decision(run_everything("", sha, texts.NO_PULL_REQUEST), form)
        return False
    return True


def _decide_in_time(url: str, path: str, sha: str) -> CiDecision:
    """Return a decision in any case, after `DEADLINE` at the latest."""
    decisions: list[CiDecision] = []

    def ask() -> None:
        try:
            if not url:
                raise CannotAsk(texts.NO_ADDRESS)  # noqa: TRY301
            decisions.append(ask_bot(url, path, os.environ.get("NIGHTJAR_TOKEN", "").strip()))
        except CannotAsk as error:
            decisions.append(run_everything(str(error), sha))
        except Exception as error:
            # Without an answer, CI must run everything, not fail: so this catches every error.
            decisions.append(run_everything(texts.UNEXPECTED_ERROR.format(kind=type(error).__name__), sha))

    # A daemon, for which the process does not wait: to resolve a host's name may take longer than a step of CI should.
    thread = threading.Thread(target=ask, daemon=True)
    thread.start()
    thread.join(DEADLINE)
    return decisions[0] if decisions else run_everything(texts.NO_ANSWER_IN_TIME.format(seconds=DEADLINE), sha)


def write_decision(decision: CiDecision, form: str) -> None:
    """Print the values first: a shell that evaluates both streams has them before the first comment."""
    text, reasons = FORMS[form](decision), explained(decision)
    output = os.environ.get("GITHUB_OUTPUT") if form == "github" else None
    if output:
        try:
            with Path(output).open("a", encoding="utf-8") as file:
                file.write(text)
        except OSError as error:
            reasons += comments([texts.OUTPUT_NOT_WRITTEN.format(problem=error.strerror)])
            output = None
    if not output:
        click.echo(text, nl=False)
        sys.stdout.flush()
    for line in reasons:
        click.echo(line, err=True)
