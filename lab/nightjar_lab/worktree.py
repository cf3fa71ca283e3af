"""Check out one commit into a clean worktree, from a bare repository that caches what the agent has fetched.

After the test has run, git is never started inside the worktree, because a stranger's code may have changed it.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import stat
import subprocess
from collections.abc import Callable
from pathlib import Path

from nightjar_lab import texts

FETCH_SECONDS = 1800.0
MOST_REASON = 400

CAREFUL = (
    "-c",
    "core.hooksPath=/dev/null",
    "-c",
    "protocol.ext.allow=never",
    "-c",
    "submodule.recurse=false",
    "-c",
    "gc.auto=0",
    "-c",
    "core.fsmonitor=false",
)


class FetchFailed(Exception):
    """The commit does not exist, or could not be fetched; the text is the reason."""


def check_out(url: str, sha: str, cache: Path, into: Path) -> None:
    """Fetch a commit and check it out. Raises `FetchFailed`, and OSError if the disk fails."""
    bare = cache / f"{hashlib.sha256(url.encode()).hexdigest()[:16]}.git"
    # Only this agent uses the cache, so a lock in it is left over from a git that was killed or lost its power.
    for lock in [*bare.glob("*.lock"), *(bare / "refs").rglob("*.lock"), *(bare / "worktrees").rglob("*.lock")]:
        lock.unlink()
    # Also if the folder exists: an init that was killed leaves a part of a repository, and another one completes it.
    _git(cache, "init", "--quiet", "--bare", str(bare))
    # Those of a killed agent, whose folders are removed already.
    _git(bare, "worktree", "prune")
    _git(bare, "fetch", "--quiet", "--no-tags", "--depth", "1", "--end-of-options", url, sha)
    if _git(bare, "rev-parse", "--verify", "FETCH_HEAD^{commit}").strip() != sha:
        raise FetchFailed(texts.OTHER_COMMIT)
    _git(bare, "worktree", "add", "--quiet", "--force", "--detach", str(into), sha)


def _git(folder: Path, *arguments: str) -> str:
    environment = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    try:
        done = subprocess.run(  # noqa: S603  # the arguments were checked
            ["git", *CAREFUL, *arguments],  # noqa: S607
            cwd=folder,
            env={**environment, "GIT_TERMINAL_PROMPT": "0"},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=FETCH_SECONDS,
            text=True,
            errors="replace",
        )
    except subprocess.TimeoutExpired:
        raise FetchFailed(f"git {arguments[0]}: {FETCH_SECONDS:.0f} s") from None
    if done.returncode:
        raise FetchFailed(f"git {arguments[0]}: {done.stderr.strip()[-MOST_REASON:]}")
    return done.stdout


def remove(folder: Path) -> None:
    """Remove a folder, even if its files have lost the permission for that."""

    def allow(function: Callable[[str], object], path: str, _: object) -> None:
        for one in (Path(path).parent, Path(path)):
            if not one.is_symlink() and one.exists():
                one.chmod(one.stat().st_mode | stat.S_IRWXU)
        try:
            function(path)
        except OSError:
            if not Path(path).is_symlink() and Path(path).is_dir():
                shutil.rmtree(path, ignore_errors=True)

    if folder.exists():
        shutil.rmtree(folder, onerror=allow)
