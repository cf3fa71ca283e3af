"""Check out one commit of a stranger into a clean worktree.

Neither the commit nor an earlier job may start a program through git, or see what the agent knows: the repository is a
new one for each job, git gets none of our variables that may hold a secret, and no attribute of the commit counts.
After the test has run, git is never started inside the worktree, because a stranger's code may have changed it.

An earlier agent had one bare repository for each address, and linked a worktree to it for each job. A job runs a
stranger's code as the agent's user, so it could write filters, attributes, hooks, replaced objects or links into that
repository, and the next job's git followed them. To rewrite its configuration and attributes would not be enough:
replacements, alternates, `shallow`, `FETCH_HEAD`, links and packs remain, and git does not hash the objects of a pack
again when it reads them. To keep only the objects saved nothing: a fetch with `--depth 1` offers the server only
commits that a reference names, and the repository has no references, so each fetch got all objects again.

So no job shares objects with an earlier one, and a lab that wants short fetches uses a mirror in its own network
(`--clone-url`). Of the configuration files, only the fetch reads one: `/etc/gitconfig`. Credentials and
`safe.directory` in `~/.gitconfig` do not count.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import stat
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from nightjar_lab import texts
from nightjar_lab.command import PROXIES, SupervisedCommand, clean_environment

FETCH_SECONDS = 1800.0
MOST_REASON = 400
MOST_FILES = 1_000_000
"""The most files and folders of a checkout; Chromium has about half as many."""
MOST_BYTES = 8 << 30
"""The most bytes of a checkout; LLVM takes about 3 GiB."""
MOST_RATIO = 1000
"""The most bytes of a checkout for each byte that was fetched; source code has about 10."""
RATIO_FREE_BYTES = 64 << 20
"""The bytes of a checkout up to which the ratio does not matter."""
BLOCK = 4096
"""The bytes that each file and folder takes besides its content, so that many small files count too."""
MOST_RECORD = 1 << 16
"""The most bytes that git prints about one file; a path may have 4 KiB."""

# Settings that could start a program or write outside of the worktree; here, so that no file can set them.
CAREFUL = (
    "-c",
    "core.hooksPath=/dev/null",
    "-c",
    "core.attributesFile=/dev/null",
    "-c",
    "core.fsmonitor=false",
    "-c",
    "core.protectHFS=true",
    "-c",
    "core.protectNTFS=true",
    "-c",
    "protocol.ext.allow=never",
    "-c",
    "submodule.recurse=false",
    "-c",
    "fetch.recurseSubmodules=false",
    "-c",
    "gc.auto=0",
    "-c",
    "maintenance.auto=false",
)
ATTRIBUTES = ("filter", "ident", "text", "eol", "working-tree-encoding")
"""All attributes that change what git writes to the disk: https://git-scm.com/docs/gitattributes."""
SETTINGS = {
    "GIT_TERMINAL_PROMPT": "0",
    "GIT_CONFIG_GLOBAL": os.devnull,
    "GIT_ATTR_NOSYSTEM": "1",
    "GIT_NO_REPLACE_OBJECTS": "1",
    "GIT_LFS_SKIP_SMUDGE": "1",
}
"""The user's configuration is not read, because a job can write it."""
LOCAL = {"GIT_CONFIG_NOSYSTEM": "1", "HOME": os.devnull, "XDG_CONFIG_HOME": os.devnull}
"""For calls that need no network. Git before 2.32 does not know `GIT_CONFIG_GLOBAL`, but where its file is."""
REMOTE = (*PROXIES, "SSH_AUTH_SOCK")
"""Variables for calls that need the network; nothing of the commit runs in them."""


class FetchFailed(Exception):
    """The commit does not exist, is too large, or could not be fetched; the text is the reason."""


def check_out(
    url: str,
    sha: str,
    cache: Path,
    into: Path,
    *,
    seconds: float = FETCH_SECONDS,
    stopped: threading.Event | None = None,
) -> None:
    """Fetch a commit into a new repository in the folder `cache`, and check it out.

    Git is killed after `seconds`, or when `stopped` is set. Raises `FetchFailed`, and OSError if the disk fails.
    """
    git = _Git(cache / f"{hashlib.sha256(url.encode()).hexdigest()[:16]}.git", seconds, stopped or threading.Event())
    git.create()
    git.run("fetch", "--quiet", "--no-tags", "--depth", "1", "--end-of-options", url, sha, remote=True)
    if git.run("rev-parse", "--verify", "FETCH_HEAD^{commit}").split()[-1:] != [sha]:
        raise FetchFailed(texts.OTHER_COMMIT)
    fetched = sum(file.lstat().st_size for file in (git.folder / "objects").rglob("*"))
    free = shutil.disk_usage(into.parent).free
    git.measure(sha, min(MOST_BYTES, free, max(RATIO_FREE_BYTES, MOST_RATIO * fetched)))
    git.run("worktree", "add", "--quiet", "--force", "--detach", str(into), sha)


class _Git:
    """Runs git in one bare repository, for a limited time."""

    def __init__(self, folder: Path, seconds: float, stopped: threading.Event) -> None:
        self.folder = folder
        self._until = time.monotonic() + min(seconds, FETCH_SECONDS)
        self._seconds = seconds
        self._stopped = stopped

    def create(self) -> None:
        """Create the repository, without anything that an earlier job may have left in its place."""
        self.folder.parent.mkdir(exist_ok=True)
        remove(self.folder)
        self.run("init", "--quiet", "--bare", "--template=", str(self.folder))
        (self.folder / "info").mkdir()
        # This file overrides those of the commit.
        no_attributes = " ".join(f"-{name}" for name in ATTRIBUTES)
        (self.folder / "info" / "attributes").write_text(f"* {no_attributes}\n", encoding="ascii")

    def run(self, *arguments: str, remote: bool = False) -> str:
        """Run git and return the end of its output. Raises `FetchFailed`."""
        command = SupervisedCommand(self._words(arguments), self.folder.parent, self._environment(remote))
        self._finish(command, arguments[0])
        return command.tail.decode(errors="replace")

    def measure(self, sha: str, most: float) -> None:
        """Raise `FetchFailed` if the files of a commit take more than `most` bytes, or are too many."""
        # `-t` lists folders too: there may be many without any file.
        arguments = ("ls-tree", "-r", "-t", "-l", "-z", sha)
        command = _TreeSize(self._words(arguments), self.folder.parent, self._environment(remote=False), most)
        self._finish(command, arguments[0])

    def _words(self, arguments: Sequence[str]) -> list[str]:
        # Named, so that git looks for no repository around the current folder.
        place = [] if arguments[0] == "init" else [f"--git-dir={self.folder}"]
        return ["git", *CAREFUL, *place, *arguments]

    @staticmethod
    def _environment(remote: bool) -> dict[str, str]:
        settings = SETTINGS if remote else {**SETTINGS, **LOCAL}
        return clean_environment(settings, REMOTE if remote else ())

    def _finish(self, command: SupervisedCommand, name: str) -> None:
        status = command.wait(max(0.0, self._until - time.monotonic()), self._stopped)
        if isinstance(command, _TreeSize) and command.excess:
            raise FetchFailed(command.excess)
        if status is None:
            stopped = self._stopped.is_set()
            raise FetchFailed(texts.STOPPED if stopped else f"git {name}: {min(self._seconds, FETCH_SECONDS):.0f} s")
        if status:
            raise FetchFailed(f"git {name}: {command.tail.decode(errors='replace').strip()[-MOST_REASON:]}")


class _TreeSize(SupervisedCommand):
    """A `git ls-tree` that is killed as soon as its output exceeds a limit; `excess` then says which.

    A few small folders that contain each other can stand for any number of files, so not even the list is complete.
    """

    def __init__(self, command: Sequence[str], folder: Path, environment: dict[str, str], most: float) -> None:
        self.excess = ""
        self._most = most
        super().__init__(command, folder, environment)

    def _consume(self) -> None:
        # `100644 blob 4b825dc… 12\ta/b.txt\0`; a folder or a submodule has the size `-`.
        entries, size, rest = 0, 0, b""
        for chunk in self._chunks():
            *records, rest = (rest + chunk).split(b"\0")
            entries += len(records)
            size += BLOCK * len(records) + sum(map(_size_of, records))
            if entries > MOST_FILES:
                self.excess = texts.TOO_MANY_TO_CHECK_OUT.format(most=MOST_FILES)
            elif size > self._most:
                self.excess = texts.TOO_LARGE_TO_CHECK_OUT.format(most=int(self._most) >> 20)
            elif len(rest) > MOST_RECORD:
                self.excess = texts.TOO_DEEP_TO_CHECK_OUT
            if self.excess:
                self.kill()
                break


def _size_of(record: bytes) -> int:
    size = record.partition(b"\t")[0].split()[-1:]
    return int(size[0]) if size and size[0].isdigit() else 0


def remove(folder: Path) -> None:
    """Remove a folder, even if the permissions of its files forbid it. If it is a link, remove only the link."""

    def allow(function: Callable[[str], object], path: str, _: object) -> None:
        for entry in (Path(path).parent, Path(path)):
            if not entry.is_symlink() and entry.exists():
                entry.chmod(entry.stat().st_mode | stat.S_IRWXU)
        try:
            function(path)
        except OSError:
            if not Path(path).is_symlink() and Path(path).is_dir():
                shutil.rmtree(path, ignore_errors=True)

    if folder.is_symlink() or folder.is_file():
        folder.unlink()
    elif folder.exists():
        shutil.rmtree(folder, onerror=allow)
