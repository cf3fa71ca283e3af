"""The lab's git mirror: a real repository, because the sandbox has GitHub's API but no git protocol."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from sandbox.model.home import HEADS
from sandbox.model.repository import Repository
from sandbox.processes import inherited

AUTHOR = "octo-friend"
PERSON = {"NAME": AUTHOR, "EMAIL": f"{AUTHOR}@example.org"}


class Mirror:
    """A git repository in a folder, which must exist."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._git("init", "--quiet", "--initial-branch", "main")

    def commit(self, files: Mapping[str, str], message: str) -> str:
        """Commit files and return the SHA."""
        for path, text in files.items():
            file = self.folder / path
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text, encoding="utf-8")
        self._git("add", ".")
        self._git("commit", "--quiet", "--message", message)
        return self._git("rev-parse", "HEAD").strip()

    def _git(self, *arguments: str) -> str:
        identity = {f"GIT_{role}_{field}": text for role in ("AUTHOR", "COMMITTER") for field, text in PERSON.items()}
        done = subprocess.run(  # noqa: S603  # no argument comes from outside
            ["git", *arguments],  # noqa: S607
            cwd=self.folder,
            env={**inherited(), **identity, "GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1"},
            check=True,
            capture_output=True,
            text=True,
        )
        return done.stdout


def push_to_fork(repo: Repository, mirror: Mirror, branch: str, files: Mapping[str, str], message: str) -> str:
    """Push a commit to a contributor's fork with the same SHA as in the mirror; return the SHA."""
    base = repo.git.commits[repo.branch(repo.default_branch)]
    tree = {**base.files, **files}
    author, moment = repo.github.user(AUTHOR), repo.github.clock.now()
    made = repo.git.commit([base.sha], tree, message, author, moment)
    sha = mirror.commit(tree, message)
    repo.git.commits[sha] = replace(repo.git.commits.pop(made.sha), sha=sha)
    repo.fork(AUTHOR).refs[HEADS + branch] = sha
    return sha
