"""Tells a pull request's conversation on the terminal, as it happens."""

from __future__ import annotations

import re
import textwrap
import time
from collections.abc import Iterator

from sandbox.github import GitHubSandbox
from sandbox.pulls import PullRequest

EMOJI = {"eyes": "👀", "+1": "👍", "confused": "😕"}
STATE = {"success": "✔", "failure": "✘", "error": "✘", "pending": "…"}
WIDTH = 110
INDENT = " " * 12

_HIDDEN = re.compile(r"<!--.*?-->\s*", re.DOTALL)
_LINK = re.compile(r"\[([^\]]*)\]\([^)]*\)")


class Narrator:
    """Prints what is new on a pull request each time it looks; what was told is not told again."""

    def __init__(self, github: GitHubSandbox, pull: PullRequest) -> None:
        self._github = github
        self._pull = pull
        self._told: set[str] = set()
        self._began = time.monotonic()

    def look(self) -> None:
        """Tell what has happened since the last look."""
        for key, line in self._facts():
            if key not in self._told:
                self._told.add(key)
                self._say(line)

    def aside(self, text: str) -> None:
        """Tell something that is not on the pull request."""
        self._say(text)

    def _say(self, text: str) -> None:
        first, *rest = text.splitlines() or [""]
        print(f"{time.monotonic() - self._began:8.2f} s  {first}", flush=True)  # noqa: T201
        for line in rest:
            for part in textwrap.wrap(line, WIDTH, subsequent_indent="  ") or [""]:
                print(f"{INDENT}{part}", flush=True)  # noqa: T201

    def _facts(self) -> Iterator[tuple[str, str]]:
        pull = self._pull
        yield "opened", f"@{pull.user.login} opens #{pull.number} {pull.title}\n{pull.body}"
        for user in pull.requested_reviewers:
            yield f"asked {user.login}", f"@{user.login} is asked for a review"
        for reaction in pull.reactions():
            yield f"reaction {reaction}", f"the bot reacts {EMOJI.get(reaction, reaction)} to the description"
        for comment in pull.comments:
            text = _LINK.sub(r"\1", _HIDDEN.sub("", comment.body))
            yield f"comment {comment.id} {comment.body}", f"@{comment.user.login} writes\n{text}"
            for name in pull.reactions(comment):
                said = comment.body.splitlines()[0]
                yield f"reaction {comment.id} {name}", f"the bot reacts {EMOJI.get(name, name)} to “{said}”"
        for status in reversed(pull.repository.all_statuses(pull.head_sha)):
            mark = STATE.get(status.state, status.state)
            yield f"status {status.id}", f"status {mark} {status.context}: {status.description}"
        for run in pull.repository.workflow_runs:
            now = run.conclusion or run.status.replace("_", " ")
            yield f"run {run.id} {run.attempt} {now}", f"workflow {run.name}, attempt {run.attempt}: {now}"
