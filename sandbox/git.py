"""Commits and their history: the part of git that GitHub's API shows.

A store is shared by a repository and its forks, as on GitHub. Each commit holds its whole tree; trees, diffs and
comparisons are derived from it.
"""

from __future__ import annotations

import difflib
import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from typing import TYPE_CHECKING

from sandbox.clock import iso

if TYPE_CHECKING:
    from sandbox.users import User

NO_COMMIT = "0" * 40


@dataclass(frozen=True, eq=False)
class Commit:
    """A commit: its whole tree as path → text, and who made it when."""

    sha: str
    parents: tuple[str, ...]
    files: Mapping[str, str]
    message: str
    author: User
    date: datetime
    tree_sha: str


@dataclass(frozen=True)
class Change:
    """The change of one file between two commits; `status` is GitHub's word for it.

    `previous` is the name that a renamed file had.
    """

    path: str
    status: str
    sha: str
    additions: int
    deletions: int
    patch: str
    previous: str | None = None


class GitStore:
    """Every commit of a repository and its forks."""

    def __init__(self) -> None:
        self.commits: dict[str, Commit] = {}
        self.trees: dict[str, Mapping[str, str]] = {}
        """Trees that were made without a commit."""

    def commit(
        self,
        parents: Iterable[str],
        files: Mapping[str, str],
        message: str,
        author: User,
        date: datetime,
        *,
        is_dated: bool = False,
    ) -> Commit:
        """Store a commit and return it; its SHA-1 depends on everything in it, as git's does.

        If it `is_dated` by whoever makes it, the same commit has the same SHA; otherwise each one has its own, as if
        the clock had moved on.
        """
        parents = tuple(parents)
        tree = tree_sha(files)
        lines = [f"tree {tree}", *(f"parent {p}" for p in parents), f"author {author.login} {iso(date)}", message]
        nonce = "" if is_dated else f"\n\nsandbox {len(self.commits)}"
        sha = hashlib.sha1(("\n".join(lines) + nonce).encode()).hexdigest()  # noqa: S324 # git's own hash
        self.commits[sha] = Commit(sha, parents, dict(files), message, author, date, tree)
        return self.commits[sha]

    def tree(self, sha: str) -> Mapping[str, str] | None:
        """Return the files of a tree, None if no tree has that SHA."""
        trees = (commit.files for commit in self.commits.values() if commit.tree_sha == sha)
        return self.trees.get(sha) or next(trees, None)

    def ancestry(self, sha: str) -> list[Commit]:
        """Return the commit and all its ancestors, children before their parents."""
        order: list[Commit] = []
        seen: set[str] = set()
        waiting: list[tuple[str, bool]] = [(sha, False)]
        while waiting:
            current, done = waiting.pop()
            if done:
                order.append(self.commits[current])
            elif current not in seen:
                seen.add(current)
                waiting.append((current, True))
                waiting.extend((parent, False) for parent in self.commits[current].parents)
        return order[::-1]

    def contains(self, sha: str, ancestor: str) -> bool:
        """Return whether `ancestor` is the commit itself or one of its ancestors."""
        return any(commit.sha == ancestor for commit in self.ancestry(sha))

    def merge_base(self, sha: str, other_sha: str) -> Commit | None:
        """Return the newest common ancestor, or None for unrelated histories."""
        other_ancestors = {commit.sha for commit in self.ancestry(other_sha)}
        return next((commit for commit in self.ancestry(sha) if commit.sha in other_ancestors), None)

    def merged_files(self, base: str, head: str) -> dict[str, str] | None:
        """Return the files of a merge of `head` into `base`; None if both changed a file since their merge base."""
        start, tip, other = self.merge_base(base, head), self.commits[base].files, self.commits[head].files
        before = start.files if start else {}
        files = dict(tip)
        for change in changes(before, other):
            mine, theirs = tip.get(change.path), other.get(change.path)
            if mine not in (before.get(change.path), theirs):
                return None
            files.pop(change.path, None)
            if theirs is not None:
                files[change.path] = theirs
        return files

    def between(self, base: str, head: str) -> list[Commit]:
        """Return the commits reachable from `head` and not from `base`, oldest first."""
        base_ancestors = {commit.sha for commit in self.ancestry(base)}
        return [commit for commit in self.ancestry(head)[::-1] if commit.sha not in base_ancestors]

    def find(self, prefix: str) -> Commit | None:
        """Return the one commit whose SHA starts with `prefix` (at least seven digits), or None."""
        if prefix in self.commits:
            return self.commits[prefix]
        matches = [commit for sha, commit in self.commits.items() if len(prefix) >= 7 and sha.startswith(prefix)]
        return matches[0] if len(matches) == 1 else None


def blob_sha(text: str) -> str:
    """Return git's SHA-1 of a file with this content."""
    content = text.encode()
    return hashlib.sha1(b"blob %d\0" % len(content) + content).hexdigest()  # noqa: S324 # git's own hash


def tree_sha(files: Mapping[str, str]) -> str:
    """Return an identifier of a tree that changes with any file in it."""
    listing = "".join(f"{blob_sha(text)} {path}\n" for path, text in sorted(files.items()))
    return hashlib.sha1(listing.encode()).hexdigest()  # noqa: S324 # git's own hash


def changes(old_files: Mapping[str, str], new_files: Mapping[str, str]) -> list[Change]:
    """Return the files that differ between two trees, by path."""
    changed = []
    for path in sorted(old_files.keys() | new_files.keys()):
        old, new = old_files.get(path), new_files.get(path)
        if old != new:
            status = "added" if old is None else "removed" if new is None else "modified"
            changed.append(_change(path, status, old or "", new or ""))
    return changed


def with_renames(file_changes: Iterable[Change]) -> list[Change]:
    """Return changes in which a removed and an added file with the same content become one renamed file.

    GitHub does more: it also detects a rename if less than half of the file was changed.
    """
    changed = list(file_changes)
    removed = {change.sha: change for change in changed if change.status == "removed"}
    changes: list[Change] = []
    for change in changed:
        old = removed.pop(change.sha, None) if change.status == "added" else None
        if old is not None:
            changes.append(replace(change, status="renamed", additions=0, deletions=0, patch="", previous=old.path))
        else:
            changes.append(change)
    renamed = {change.previous for change in changes}
    return [change for change in changes if change.status != "removed" or change.path not in renamed]


def _change(path: str, status: str, old: str, new: str) -> Change:
    lines = list(difflib.unified_diff(old.splitlines(), new.splitlines(), lineterm=""))[2:]
    added = sum(line.startswith("+") for line in lines)
    removed = sum(line.startswith("-") for line in lines)
    return Change(path, status, blob_sha(new or old), added, removed, "\n".join(lines))
