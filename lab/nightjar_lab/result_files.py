"""Find the files that a command wrote as its results, and never follow a link on the way.

The command runs the commit that is tested. A link in its folders could lead to any file of the lab, so links are named
and not uploaded: docs/labs-security.md.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from nightjar_formats.items import counted
from nightjar_formats.model import MANIFEST
from nightjar_lab import texts
from nightjar_lab.glob_parts import GlobPart

MOST_LEVELS = 16
"""The most levels of subfolders of NIGHTJAR_RESULTS that are searched; each takes a file descriptor."""
MOST_NAMED = 10
"""The most files that are named because they are not uploaded."""


@dataclass
class ResultPaths:
    """The result files of a folder with what `os.stat` says about them, and why other files are left out."""

    files: list[tuple[Path, os.stat_result]] = field(default_factory=list)
    left_out: list[str] = field(default_factory=list)


def result_paths(folder: Path) -> ResultPaths:
    """Return the result files in a folder and its subfolders, sorted. Raises OSError if the folder itself is a link."""
    result = ResultPaths()
    for path, path_stat in sorted(_entries(folder), key=lambda entry: entry[0].parts):
        if reason := _not_a_result(path.name, path_stat, len(path.parts) - len(folder.parts)):
            result.left_out.append(texts.LEFT_OUT.format(path=path.relative_to(folder), reason=reason))
        else:
            result.files.append((path, path_stat))
    return result


def _entries(folder: Path) -> Iterator[tuple[Path, os.stat_result]]:
    """Yield everything below a folder but the folders that are searched themselves."""
    if os.open not in os.supports_dir_fd:  # Windows
        for parent, folders, names in os.walk(folder):
            paths = [Path(parent, name) for name in names]
            yield from ((path, path.lstat()) for path in paths + _pruned(folder, Path(parent), folders))
        return
    # Relative to the folder that was opened, whatever its path leads to by now.
    folder_fd = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    try:
        for parent, folders, names, parent_fd in os.fwalk(".", dir_fd=folder_fd):
            place = folder / parent
            links = [name for name in folders if stat.S_ISLNK(os.lstat(name, dir_fd=parent_fd).st_mode)]
            deep = [path.name for path in _pruned(folder, place, folders)]
            for name in {*names, *links, *deep}:
                yield place / name, os.lstat(name, dir_fd=parent_fd)
    finally:
        os.close(folder_fd)


def _pruned(folder: Path, parent: Path, folders: list[str]) -> list[Path]:
    """Remove subfolders that are too deep from a list; return their paths."""
    if len(parent.parts) - len(folder.parts) < MOST_LEVELS:
        return []
    deep = [parent / name for name in folders]
    folders.clear()
    return deep


def _not_a_result(name: str, path_stat: os.stat_result, level: int) -> str:
    """Return why a file is not uploaded; empty if it is."""
    if stat.S_ISLNK(path_stat.st_mode):
        return texts.IS_LINK
    if stat.S_ISDIR(path_stat.st_mode):
        return texts.TOO_DEEP.format(most=MOST_LEVELS)
    if not stat.S_ISREG(path_stat.st_mode):
        return texts.NOT_REGULAR
    if path_stat.st_nlink != 1:
        return texts.HAS_LINKS
    if not path_stat.st_size:
        return texts.IS_EMPTY
    if name.startswith("."):
        return texts.IS_HIDDEN
    return texts.IS_MANIFEST if name == MANIFEST and level == 1 else ""


def named_lines(lines: Sequence[str]) -> list[str]:
    """Return at most `MOST_NAMED` lines, and how many more there are."""
    more = len(lines) - MOST_NAMED
    return [*lines[:MOST_NAMED], *([texts.MORE_LEFT_OUT.format(files=counted(more, "more file"))] if more > 0 else [])]


@dataclass
class PatternFiles:
    """The files that match a pattern; `stale` are older than the run, and `links` are not followed."""

    pattern: str
    files: list[Path] = field(default_factory=list)
    stale: list[Path] = field(default_factory=list)
    links: list[Path] = field(default_factory=list)


class ReportPattern:
    """A pattern for reports outside of NIGHTJAR_RESULTS: `*`, `?` and `[…]` in every part of its path, and `**`.

    Below the current folder no link is followed. A pattern elsewhere starts at the deepest of its folders that exists
    before the command runs, so that only links of the lab itself count. The folder `outside`, which has no links in its
    path, is not searched.
    """

    def __init__(self, pattern: str, outside: Path, *, is_literal: bool = False) -> None:
        self.pattern = pattern
        self._outside = outside
        current = Path.cwd()
        whole = Path(os.path.abspath(current / pattern))  # noqa: PTH100  # `resolve` follows links
        parts = [GlobPart(part, is_literal=is_literal) for part in whole.parts]
        if whole.parts[: len(current.parts)] == current.parts:
            self._root, self._parts = current, parts[len(current.parts) :]
        else:
            self._root, self._parts = Path(whole.anchor), parts[1:]
            while len(self._parts) > 1 and self._parts[0].is_literal and (self._root / self._parts[0].text).is_dir():
                self._root /= self._parts.pop(0).text
            self._root = self._root.resolve()

    def matches(self, since: float) -> PatternFiles:
        """Return the files that match now; `since` is the start of the command in seconds since 1970."""
        result = PatternFiles(self.pattern)
        folders = [(self._root, self._closed({0}))]
        while folders:
            folder, states = folders.pop()
            for entry in _scanned(folder):
                next_states = self._closed(
                    {
                        state if self._parts[state].is_any_folders else state + 1
                        for state in states
                        if state < len(self._parts) and self._parts[state].matches(entry.name)
                    }
                )
                if not next_states:
                    continue
                is_match = len(self._parts) in next_states
                if entry.is_symlink():
                    # Not the links that only `**` leads to: folders of packages have thousands.
                    if is_match or not all(self._parts[state].is_any_folders for state in states):
                        result.links.append(Path(entry.path))
                elif entry.is_dir():
                    if Path(entry.path) != self._outside:
                        folders.append((Path(entry.path), next_states))
                elif is_match and entry.is_file():
                    _add(result, Path(entry.path), entry.stat(), since)
        for paths in (result.files, result.stale, result.links):
            paths.sort()
        return result

    def _closed(self, states: set[int]) -> set[int]:
        """Return the states with those that `**` reaches without a folder."""
        closed = set(states)
        for state in range(len(self._parts)):
            if state in closed and self._parts[state].is_any_folders:
                closed.add(state + 1)
        return closed


def _scanned(folder: Path) -> list[os.DirEntry[str]]:
    """Return what is in a folder; nothing if it is not there or cannot be read."""
    try:
        with os.scandir(folder) as entries:
            return list(entries)
    except OSError:
        return []


def _add(result: PatternFiles, path: Path, path_stat: os.stat_result, since: float) -> None:
    if path.lstat().st_nlink != 1:  # on Windows, only `lstat` knows it
        result.links.append(path)
    elif path_stat.st_mtime < since - 2:  # some file systems store times in steps of one or two seconds
        result.stale.append(path)
    else:
        result.files.append(path)
