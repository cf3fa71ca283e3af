"""What git says of a checkout: its commit, its branch, and which files differ from the branch that it will change."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from nightjar_formats.items import first_of

from bot.cli.texts import CHANGES_UNREADABLE, NO_BASE_BRANCH, NO_BASE_COMMIT, NO_CHECKOUT, NO_COMMON_COMMIT, NO_GIT
from bot.core.errors import UserError
from handlers.changed_files.changes import ChangedFiles, Changes, UnknownChanges

BASES = tuple(f"{remote}/{branch}" for remote in ("upstream", "origin") for branch in ("HEAD", "main", "master"))
"""The branches to compare with, the first that exists. In a clone of a fork, `upstream` is usually the project."""
RENAMED = "R"


@dataclass(frozen=True, slots=True)
class Checkout:
    """A checkout: its top folder, the SHA of `HEAD`, the branch (empty for none), and the changes since `base`.

    `base` is what the changes are compared with, empty if there is nothing.
    """

    top: Path
    sha: str
    branch: str
    base: str
    changes: Changes


def read_checkout(folder: Path, base: str) -> Checkout:
    """Return the checkout that a folder is in; with an empty `base`, it is compared with the first of `BASES`.

    The changes are those of commits, of files that are not committed, and of new files that git does not ignore.
    Raises `UserError` without git, outside of a checkout, and for a `base` that does not exist.
    """
    top = Path(os.fsdecode(_output(folder, "rev-parse", "--show-toplevel")).removesuffix("\n"))
    sha = _output(top, "rev-parse", "--verify", "HEAD^{commit}").decode().strip()
    branch = _run(top, "symbolic-ref", "--quiet", "--short", "HEAD").stdout.decode(errors="replace").strip()
    if base and not _exists(top, base):
        raise UserError(NO_BASE_COMMIT.format(base=base))
    base = base or next((name for name in BASES if _exists(top, name)), "")
    changes = _changes(top, base) if base else UnknownChanges(NO_BASE_BRANCH)
    return Checkout(top, sha, branch, base, changes)


def _changes(top: Path, base: str) -> Changes:
    """Return the files that a pull request with all that is in the checkout would change."""
    common = _run(top, "merge-base", "--end-of-options", "HEAD", base)
    if common.returncode:
        return UnknownChanges(NO_COMMON_COMMIT.format(base=base))
    # The options win over a person's settings of git.
    compared = ("--no-ext-diff", "--find-renames", "--ignore-submodules=none", common.stdout.decode().strip())
    tracked = _run(top, "diff", "--name-status", "-z", *compared, "--")
    untracked = _run(top, "ls-files", "--others", "--exclude-standard", "-z")
    if tracked.returncode or untracked.returncode:
        return UnknownChanges(CHANGES_UNREADABLE)
    files = [*_changed_names(tracked.stdout), *((name,) for name in _fields(untracked.stdout))]
    return ChangedFiles(tuple(name for names in files for name in names), len(files))


def _changed_names(listing: bytes) -> Iterator[tuple[str, ...]]:
    """Yield the names of each changed file, both of a renamed one, from `M NUL a.py NUL R100 NUL old.py NUL new.py`."""
    fields = iter(_fields(listing))
    for status in fields:
        name = first_of(fields)
        yield (name, first_of(fields)) if status.startswith(RENAMED) else (name,)


def _fields(listing: bytes) -> list[str]:
    return listing.decode(errors="replace").split("\0")[:-1]


def _exists(top: Path, commit: str) -> bool:
    return not _run(top, "rev-parse", "--verify", "--quiet", "--end-of-options", f"{commit}^{{commit}}").returncode


def _output(folder: Path, *arguments: str) -> bytes:
    """Return what git prints. Raises `UserError` if it fails."""
    completed = _run(folder, *arguments)
    if completed.returncode:
        lines = completed.stderr.decode(errors="replace").strip().splitlines() or [""]
        raise UserError(NO_CHECKOUT.format(reason=lines[0].removeprefix("fatal: ")))
    return completed.stdout


def _run(folder: Path, *arguments: str) -> subprocess.CompletedProcess[bytes]:
    try:
        return subprocess.run(["git", *arguments], cwd=folder, capture_output=True, check=False)  # noqa: S603, S607
    except OSError as error:
        raise UserError(NO_GIT.format(reason=(error.strerror or "").lower())) from None
