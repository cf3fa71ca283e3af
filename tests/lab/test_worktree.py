"""Hostile commits, and jobs before them, with real git: nothing of theirs runs, and no checkout exceeds its bounds."""

from __future__ import annotations

import asyncio
import subprocess
import threading
from pathlib import Path

import pytest
from aiohttp import web
from nightjar_lab.worktree import FetchFailed, check_out, remove

from tests.lab.agent_rack import git
from tests.serving import served
from tests.waiting import DEADLINE

LONG = "n" * 240
SECRET = "the-token-of-the-lab"


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The home of a user of git whose environment has a secret."""
    folder = tmp_path / "home"
    folder.mkdir()
    monkeypatch.setenv("HOME", str(folder))
    monkeypatch.delenv("XDG_CONFIG_HOME", raising=False)
    for name in ("NIGHTJAR_LAB_TOKEN", "AWS_SECRET_ACCESS_KEY", "CIRCLE_TOKEN"):
        monkeypatch.setenv(name, SECRET)
    return folder


@pytest.fixture
def mirror(tmp_path: Path, home: Path) -> Path:
    folder = tmp_path / "mirror"
    folder.mkdir()
    git(folder, "init", "--quiet")
    git(folder, "config", "uploadpack.allowAnySHA1InWant", "true")
    return folder


@pytest.fixture
def cache(tmp_path: Path) -> Path:
    folder = tmp_path / "cache"
    folder.mkdir()
    return folder


def commit(mirror: Path, files: dict[str, str]) -> str:
    """Commit files; return the SHA."""
    for name, text in files.items():
        path = mirror / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    # A filter of the machine is not for who writes the commit.
    git(mirror, "-c", "core.attributesFile=/dev/null", "add", "--force", ".")
    git(mirror, "commit", "--quiet", "-m", "one")
    return git(mirror, "rev-parse", "HEAD")


FILTERS = """
[filter "leak"]
    smudge = env >> {leak}; cat
[filter "lfs"]
    smudge = cat .lfsconfig >> {leak}; env >> {leak}; cat
    process = sh -c 'env >> {leak}'
[core]
    attributesFile = {attributes}
    fsmonitor = env >> {leak}
    hooksPath = {hooks}
[credential]
    helper = "!env >> {leak}"
[uploadpack]
    packObjectsHook = env >> {leak}; exec
"""


def configure_filters(home: Path, leak: Path) -> None:
    """Configure the user's git with everything that starts programs."""
    hooks, attributes = home / "hooks", home / "attributes"
    hooks.mkdir()
    for name in ("post-checkout", "reference-transaction"):
        (hooks / name).write_text(f"#!/bin/sh\nenv >> {leak}\n")
        (hooks / name).chmod(0o755)
    attributes.write_text("*.txt filter=leak\n")
    (home / ".gitconfig").write_text(FILTERS.format(leak=leak, hooks=hooks, attributes=attributes))


@pytest.mark.parametrize(
    "files",
    [
        {"a.txt": "a"},
        {".gitattributes": "* filter=leak\n", "a": "a"},
        {"sub/.gitattributes": "a filter=leak\n", "sub/a": "a"},
        {".gitattributes": "[attr]m filter=leak\n* m\n", "a": "a"},
        {
            ".gitattributes": "* filter=lfs diff=lfs merge=lfs -text\n",
            ".lfsconfig": "[lfs]\nurl = http://x\n",
            "a": "a",
        },
    ],
)
def test_no_program_of_the_machines_git_sees_a_commit_or_a_secret(
    files: dict[str, str], mirror: Path, cache: Path, home: Path, tmp_path: Path
) -> None:
    leak, into = tmp_path / "leak", tmp_path / "source"
    sha = commit(mirror, files)
    configure_filters(home, leak)
    check_out(f"file://{mirror}", sha, cache, into)
    assert not leak.exists(), leak.read_text()
    assert {name: (into / name).read_text() for name in files} == files


def test_no_attribute_of_the_commit_changes_what_is_written(mirror: Path, cache: Path, tmp_path: Path) -> None:
    attributes = "* text eol=crlf ident working-tree-encoding=UTF-16\n"
    (mirror / ".git/info/attributes").write_text("* -text -working-tree-encoding\n")
    sha = commit(mirror, {".gitattributes": attributes, "a": "one\n$Id$\n"})
    check_out(f"file://{mirror}", sha, cache, tmp_path / "source")
    assert (tmp_path / "source/a").read_bytes() == b"one\n$Id$\n"


PLANTS = {
    "filter": "git config filter.leak.smudge 'env >> {leak}; cat'; "
    "mkdir -p info; echo '* filter=leak' > info/attributes",
    "process": "git config filter.leak.process 'env >> {leak}'; mkdir -p info; echo '* filter=leak' > info/attributes",
    "include": "printf '[filter \"leak\"]\\nsmudge = env >> {leak}; cat\\n' > more; git config include.path more",
    "worktree": "git config extensions.worktreeConfig true; "
    "git config -f config.worktree filter.leak.smudge 'env >> {leak}; cat'; "
    "mkdir -p info; echo '* filter=leak' > info/attributes",
    "command": "git config core.sshCommand 'env >> {leak}'; git config core.fsmonitor 'env >> {leak}'; "
    "git config core.gitProxy 'env >> {leak}'; git config core.alternateRefsCommand 'env >> {leak}'; "
    "mkdir -p objects/info; echo {mirror}/.git/objects > objects/info/alternates",
    "hooks": "mkdir -p hooks; for name in post-checkout reference-transaction; do "
    "printf '#!/bin/sh\\nenv >> {leak}' > hooks/$name; chmod +x hooks/$name; done; git config core.hooksPath hooks",
    "transport": "git config protocol.ext.allow always; git config url.ext::{leak}.insteadOf file://",
    "replacement": "git replace {blob} $(echo planted | git hash-object -w --stdin)",
    "link": "place=$PWD; cd ..; mv $place moved; cd moved; git config filter.leak.smudge 'env >> {leak}; cat'; "
    "mkdir -p info; echo '* filter=leak' > info/attributes; ln -s $PWD $place",
    "fetched": "rm FETCH_HEAD; ln -s {home}/notes FETCH_HEAD",
    "shallow": "rm shallow; ln -s {home}/notes shallow",
    "objects": "rm -r objects; ln -s {home} objects",
    "no folder": "rm -r ../cache.git; echo > $PWD; cd ..; rm -r *.git; touch $PWD/x",
    "permissions": "chmod -R a-w .",
}


@pytest.mark.parametrize("plant", PLANTS)
def test_a_job_plants_nothing_in_the_repository_for_the_next_one(
    plant: str, mirror: Path, cache: Path, home: Path, tmp_path: Path
) -> None:
    leak, notes = tmp_path / "leak", home / "notes"
    notes.write_text("of the lab")
    files = {".gitattributes": "*.py filter=leak\n", "a.py": "one\n"}
    sha = commit(mirror, files)
    blob = git(mirror, "rev-parse", "HEAD:a.py")
    url = f"file://{mirror}"
    check_out(url, sha, cache, tmp_path / "first")
    (bare,) = cache.iterdir()
    script = PLANTS[plant].format(leak=leak, mirror=mirror, blob=blob, home=home)
    subprocess.run(["bash", "-c", script], cwd=bare, check=False, capture_output=True)
    check_out(url, sha, cache, tmp_path / "next")
    assert {name: (tmp_path / "next" / name).read_text() for name in files} == files
    assert not leak.exists(), leak.read_text()
    assert notes.read_text() == "of the lab"
    assert [path.name for path in home.iterdir()] == ["notes"]


def test_a_job_that_replaces_its_git_folder_does_not_reach_the_next_one(
    mirror: Path, cache: Path, tmp_path: Path
) -> None:
    sha = commit(mirror, {"a": "a"})
    leak, evil, into = tmp_path / "leak", tmp_path / "evil", tmp_path / "source"
    for _ in range(2):
        check_out(f"file://{mirror}", sha, cache, into)
        remove(evil)
        evil.mkdir()
        git(evil, "init", "--quiet", "--bare")
        git(evil, "config", "core.fsmonitor", f"env >> {leak}")
        (into / ".git").write_text(f"gitdir: {evil}\n")
        remove(into)
    assert not leak.exists()


def nested(mirror: Path, entry: str, levels: int, width: int) -> str:
    """Commit a folder that has an entry `width` times, in a folder that has that folder as often, and so on."""
    for _ in range(levels):
        names = "".join(f"{entry}\t{LONG}{number}\n" for number in range(width))
        made = subprocess.run(
            ["git", "mktree", "--missing"], cwd=mirror, input=names, capture_output=True, text=True, check=True
        )
        entry = f"040000 tree {made.stdout.strip()}"
    return git(mirror, "commit-tree", "-m", "one", entry.split()[2])


@pytest.mark.parametrize(
    ("size", "levels", "width", "reason"),
    [
        (1 << 20, 1, 301, "its files take more than 64 MiB"),
        (1000, 6, 10, "its files take more than"),
        (0, 9, 10, "its files take more than"),
        (None, 10, 10, "its files take more than"),
        (1, 300, 1, "the path of one of its files is too long"),
    ],
)
def test_a_few_small_objects_that_stand_for_too_much_are_not_checked_out(
    size: int | None, levels: int, width: int, reason: str, mirror: Path, cache: Path, tmp_path: Path
) -> None:
    if size is None:
        made = subprocess.run(["git", "mktree"], cwd=mirror, input="", capture_output=True, text=True, check=True)
        entry = f"040000 tree {made.stdout.strip()}"
    else:
        (mirror / "x").write_text("x" * size)
        entry = f"100644 blob {git(mirror, 'hash-object', '-w', 'x')}"
    sha = nested(mirror, entry, levels, width)
    with pytest.raises(FetchFailed, match=reason):
        check_out(f"file://{mirror}", sha, cache, tmp_path / "source")
    assert not (tmp_path / "source").exists()


def test_many_small_files_of_an_honest_commit_are_checked_out(mirror: Path, cache: Path, tmp_path: Path) -> None:
    files = {f"folder-{number % 50}/{number}.py": f"print({number})\n" for number in range(2000)}
    sha = commit(mirror, files)
    check_out(f"file://{mirror}", sha, cache, tmp_path / "source")
    assert sum(path.is_file() for path in (tmp_path / "source").rglob("*.py")) == len(files)


async def test_git_ends_when_the_job_does(cache: Path, home: Path, tmp_path: Path) -> None:
    """A server that never answers must not hold the device for half an hour."""
    fetch_started, stopped = asyncio.Event(), threading.Event()

    async def hang(_: web.Request) -> web.Response:
        fetch_started.set()
        await asyncio.Event().wait()
        raise AssertionError

    app = web.Application()
    app.router.add_get("/{path:.*}", hang)
    async with served(app) as url:
        fetch = asyncio.create_task(
            asyncio.to_thread(check_out, f"{url}/x", "0" * 40, cache, tmp_path / "source", stopped=stopped)
        )
        await asyncio.wait_for(fetch_started.wait(), DEADLINE)
        stopped.set()
        with pytest.raises(FetchFailed, match="the agent was stopped"):
            await asyncio.wait_for(fetch, DEADLINE)


def test_git_ends_at_the_deadline_of_the_job(mirror: Path, cache: Path, tmp_path: Path) -> None:
    sha = commit(mirror, {"a": "a"})
    with pytest.raises(FetchFailed, match="git init: 0 s"):
        check_out(f"file://{mirror}", sha, cache, tmp_path / "source", seconds=0.0)
