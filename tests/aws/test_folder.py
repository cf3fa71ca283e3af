"""A local folder as a source of runs, without access to anything outside."""

from __future__ import annotations

import hashlib
import io
import os
from pathlib import Path

import pytest
from nightjar_formats.refused import TooMuch

from bot.aws.bucket import Arrival, Bucket, NotThere, ObjectHead, Source
from bot.aws.folder import LocalFolder
from bot.core.errors import UserError
from tests.bucket import World

RUN = "octocat/compiler/example-lab/adreno/run"


async def listed(source: Source, prefix: str = "") -> list[Arrival]:
    return [arrival async for page in source.manifests(prefix) for arrival in page]


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """Return a folder with one run, next to a file that must not be read."""
    folder = tmp_path / "results"
    (folder / RUN).mkdir(parents=True)
    (folder / RUN / "manifest.json").write_bytes(b'{"schema": 1}')
    (folder / RUN / "te.xml").write_bytes(b"<xml/>")
    (tmp_path / "secret").mkdir()
    (tmp_path / "secret" / "manifest.json").write_bytes(b"secret")
    return folder


async def test_a_folder_and_a_bucket_with_the_same_content_give_the_same(root: Path, aws_world: World) -> None:
    folder, bucket = LocalFolder(root), Bucket(aws_world.aws, aws_world.name)
    for name in ("manifest.json", "te.xml"):
        aws_world.put(f"{RUN}/{name}", (root / RUN / name).read_bytes())
    answers: list[object] = []
    for source in (folder, bucket):
        into = io.BytesIO()
        answers.append(
            [
                [(arrival.key, arrival.version) for arrival in await listed(source, "octocat/")],
                await source.folders(""),
                await source.folders("octocat/"),
                await source.folders("nobody/"),
                await source.head(f"{RUN}/te.xml"),
                await source.read_small(f"{RUN}/manifest.json", 100),
                await source.download(f"{RUN}/te.xml", into, limit=100),
                into.getvalue(),
            ]
        )
    assert answers[0] == answers[1]


async def test_a_folder_is_listed_in_pages(root: Path) -> None:
    for number in range(1001):
        (root / f"{number:04}").mkdir()
        (root / f"{number:04}" / "manifest.json").touch()
    pages = [page async for page in LocalFolder(root).manifests("")]
    assert [len(page) for page in pages] == [1000, 2]
    assert [page async for page in LocalFolder(root).manifests("octocat/llvm")] == []


async def test_a_file_beyond_the_limit_is_not_read(root: Path) -> None:
    into = io.BytesIO()
    with pytest.raises(TooMuch, match=r"te\.xml has 6 bytes; at most 5 are read"):
        await LocalFolder(root).download(f"{RUN}/te.xml", into, limit=5)
    assert into.getvalue() == b""


@pytest.mark.parametrize("key", ["../secret/manifest.json", "a/../../secret/manifest.json", "link/manifest.json"])
async def test_nothing_outside_the_folder_is_read(root: Path, key: str) -> None:
    (root / "link").symlink_to(root.parent / "secret")
    with pytest.raises(UserError, match="is outside"):
        await LocalFolder(root).read_small(key, 100)


async def test_an_absolute_path_is_no_key(root: Path) -> None:
    with pytest.raises(UserError, match="is outside"):
        await LocalFolder(root).head(str(root.parent / "secret" / "manifest.json"))


async def test_a_manifest_that_links_outside_is_not_listed(root: Path) -> None:
    (root / "run").mkdir()
    (root / "run" / "manifest.json").symlink_to(root.parent / "secret" / "manifest.json")
    (root / "link").symlink_to(root.parent / "secret")
    assert [arrival.key for arrival in await listed(LocalFolder(root))] == [f"{RUN}/manifest.json"]


async def test_a_link_within_the_folder_works_like_its_target(root: Path) -> None:
    (root / "te.xml").symlink_to(root / RUN / "te.xml")
    assert await LocalFolder(root).head("te.xml") == ObjectHead(6, hashlib.md5(b"<xml/>").hexdigest())


@pytest.mark.parametrize("key", ["none", "none/te.xml", f"{RUN}/te.xml/more"])
async def test_a_missing_file_is_reported(root: Path, key: str) -> None:
    with pytest.raises(NotThere):
        await LocalFolder(root).head(key)


async def test_a_pipe_or_a_folder_is_no_file(root: Path) -> None:
    os.mkfifo(root / "pipe")
    for key in ("pipe", RUN):
        with pytest.raises(UserError, match="is not a file"):
            await LocalFolder(root).head(key)


@pytest.mark.parametrize("key", ["circle", "a\0b", "x" * 5000])
async def test_a_file_that_no_system_can_open_is_reported(root: Path, key: str) -> None:
    (root / "circle").symlink_to(root / "circle")
    with pytest.raises(UserError, match="cannot be read"):
        await LocalFolder(root).head(key)


def test_a_path_that_is_no_folder_is_reported_at_once(root: Path) -> None:
    with pytest.raises(UserError, match="is not a folder"):
        LocalFolder(root / RUN / "te.xml")
