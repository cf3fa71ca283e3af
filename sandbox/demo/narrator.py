"""Tell what happens in a repository, as it happens."""

from __future__ import annotations

import re
import textwrap
import time
from collections.abc import Iterator
from typing import TextIO

from bot.results.report.texts import ADVISORY
from sandbox.github import GitHubSandbox
from sandbox.model.checks import CheckRun
from sandbox.model.pulls import PullRequest
from sandbox.model.repository import Repository
from sandbox.page.check import address

EMOJI = {"eyes": "👀", "+1": "👍", "confused": "😕"}
STATE = {"success": "✔", "failure": "✘", "error": "✘", "pending": "…", "neutral": "■"}
NIGHTLY = "refs/heads/nightly"
WIDTH = 110
MOST_ANNOTATIONS = 3
INDENT = " " * 12

_HIDDEN = re.compile(r"<!--.*?-->\s*", re.DOTALL)
_NOTE = re.compile(r"^> (?:\[!NOTE\]\n> )?", re.MULTILINE)
_LINK = re.compile(r"\[([^\]]*)\]\([^)]*\)")


class Narrator:
    """Writes each new fact about a repository once, to a log file; with `verbose`, prints it too."""

    def __init__(self, github: GitHubSandbox, repository: Repository, log: TextIO, *, verbose: bool) -> None:
        self._log, self._verbose = log, verbose
        self._github = github
        self._repository = repository
        self._printed: set[str] = set()
        self._began = time.monotonic()

    def skip(self) -> None:
        """Leave out everything that has happened until now."""
        self._printed.update(key for key, _ in self._facts())

    def update(self) -> None:
        """Write what has happened since the last update."""
        for key, line in self._facts():
            if key not in self._printed:
                self._printed.add(key)
                self.say(line)

    def say(self, text: str) -> None:
        """Write a text with the time."""
        first, *rest = text.splitlines() or [""]
        lines = [f"{time.monotonic() - self._began:8.2f} s  {first}"]
        for line in rest:
            lines += [INDENT + part for part in textwrap.wrap(line, WIDTH, subsequent_indent="  ") or [""]]
        self.note("\n".join(lines))
        if self._verbose:
            print("\n".join(lines), flush=True)  # noqa: T201

    def note(self, line: str) -> None:
        """Write a line to the log file alone."""
        self._log.write(f"{line}\n")
        self._log.flush()

    def _facts(self) -> Iterator[tuple[str, str]]:
        for pull in self._repository.pulls:
            yield from _conversation(pull)
        for status in self._repository.all_statuses(self._repository.refs.get(NIGHTLY, "")):
            if status.context == "nightly":
                text = f"status {STATE[status.state]} nightly on {status.sha[:7]}: {status.description}"
                yield f"status {status.id}", text
        for run in self._repository.workflow_runs:
            state = run.conclusion or run.status.replace("_", " ")
            yield f"run {run.id} {run.attempt} {state}", f"workflow {run.name}, attempt {run.attempt}: {state}"
        for suite in self._repository.suites:
            for check in suite.runs if suite.app is not self._github.actions_app else ():
                text = "\n".join([_check(check), _why(check), f"{self._github.url}{address(check)}"])
                yield f"check {check.id} {text}", text


def _conversation(pull: PullRequest) -> Iterator[tuple[str, str]]:
    number = f"{pull.number}"
    yield f"opened {number}", f"@{pull.user.login} opens #{pull.number} {pull.title}\n{pull.body}"
    for user in pull.requested_reviewers:
        yield f"asked {number} {user.login}", f"@{user.login} is asked for a review"
    for reaction in pull.reactions():
        yield f"reaction {number} {reaction}", f"the bot reacts {EMOJI.get(reaction, reaction)} to the description"
    for comment in pull.comments:
        text = _LINK.sub(r"\1", _HIDDEN.sub("", comment.body))
        yield f"comment {comment.id} {comment.body}", f"@{comment.user.login} writes\n{text}"
        for name in pull.reactions(comment):
            first_line = comment.body.splitlines()[0]
            yield f"reaction {comment.id} {name}", f"the bot reacts {EMOJI.get(name, name)} to “{first_line}”"
    for status in reversed(pull.repository.all_statuses(pull.head_sha)):
        mark = STATE.get(status.state, status.state)
        yield f"status {status.id}", f"status {mark} {status.context}: {status.description}"


def _check(check: CheckRun) -> str:
    mark = STATE.get(check.conclusion or check.status, "…")
    lines = [f"check {mark} {check.name} on {check.head_sha[:7]}: {check.title}"]
    for annotation in check.annotations[:MOST_ANNOTATIONS]:
        message = annotation["message"].splitlines()[-1]
        lines.append(f"⚠ {annotation['path']}:{annotation['start_line']}: {message}")
    hidden = len(check.annotations) - MOST_ANNOTATIONS
    return "\n".join([*lines, *([f"⚠ and {hidden} more"] if hidden > 0 else [])])


def _why(check: CheckRun) -> str:
    """Return the reason of a check run, without Markdown and without the sentence that all have."""
    first = (check.summary or "").partition("\n\n")[0]
    plain = _LINK.sub(r"\1", _NOTE.sub("", first.removesuffix(ADVISORY))).replace("**", "").replace("`", "")
    return plain.removeprefix("### ")
