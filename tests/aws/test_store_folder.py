"""The folder beside the database: whole files or none, nothing overwritten, nothing outside, old files removed."""

from __future__ import annotations

import asyncio
import hashlib
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from bot.aws.bucket import MANIFEST, Bucket, NoSpace, NotThere, OtherContent, RunStore
from bot.aws.store_folder import ABANDONED_DAYS, DAY, INCOMING, STORED_DAYS, StoreFolder
from bot.config.types import STORE_FOLDER
from bot.core.errors import UserError
from tests.bucket import World

RUN = "results/octocat/compiler/example-lab/adreno/0123456789012345678901234567890123456789/run-1"


async def put(store: RunStore, key: str, content: bytes) -> bool:
    with store.temporary_file() as file:
        file.write(content)
        return await store.put_once(key, file, sha256=hashlib.sha256(content).hexdigest())


@pytest.fixture
def folder(tmp_path: Path) -> StoreFolder:
    return StoreFolder(tmp_path / "store")


@pytest.mark.parametrize("kind", ["folder", "bucket"])
async def test_an_object_is_written_once_in_a_folder_as_in_a_bucket(
    folder: StoreFolder, aws_world: World, kind: str
) -> None:
    store: RunStore = folder if kind == "folder" else Bucket(aws_world.aws, aws_world.name)
    key = f"{RUN}/te.xml"
    assert [await put(store, key, b"<xml/>") for _ in range(2)] == [True, False]
    for other in (b"<xml>", b"<", b"<xml>more</xml>"):
        with pytest.raises(OtherContent, match="another run ID"):
            await put(store, key, other)
    assert (await store.read_small(key, 100)).body == b"<xml/>"
    await put(store, f"{RUN}/{MANIFEST}", b"{}")
    arrivals = [arrival async for page in store.manifests("results/octocat/") for arrival in page]
    assert [(arrival.key, arrival.bucket) for arrival in arrivals] == [(f"{RUN}/{MANIFEST}", store.name)]
    assert arrivals[0].version == (await store.head(f"{RUN}/{MANIFEST}")).version
    assert await store.folders("results/") == ["results/octocat/"]
    assert await store.write_over("results/octocat/compiler/nightly.json", b"{}", content_type="application/json")
    assert not await store.write_over("results/octocat/compiler/nightly.json", b"{}", content_type="application/json")
    assert await store.write_over("results/octocat/compiler/nightly.json", b"[]", content_type="application/json")


async def test_of_many_writers_at_once_one_writes(folder: StoreFolder) -> None:
    outcomes = await asyncio.gather(
        *(put(folder, f"{RUN}/te.xml", str(number % 2).encode()) for number in range(20)), return_exceptions=True
    )
    assert outcomes.count(True) == 1
    assert sum(isinstance(outcome, OtherContent) for outcome in outcomes) == 10


@pytest.mark.parametrize("key", ["../outside.xml", "a/../../outside.xml", "/outside.xml", "link/outside.xml", "a\0b"])
async def test_nothing_is_written_outside(folder: StoreFolder, tmp_path: Path, key: str) -> None:
    (tmp_path / "store/link").symlink_to(tmp_path)
    with pytest.raises(UserError):
        await put(folder, key, b"<xml/>")
    assert sorted(os.listdir(tmp_path)) == ["store"]  # noqa: PTH208


def kill_while_writing(root: Path) -> None:
    """Kill a process that has written a part of a file."""
    program = f"""
from pathlib import Path
from bot.aws.store_folder import StoreFolder
with StoreFolder(Path({str(root)!r})).temporary_file() as file:
    file.write(b"x" * (1 << 20))
    file.flush()
    print("written", flush=True)
    input()
"""
    with subprocess.Popen([sys.executable, "-c", program], stdin=-1, stdout=-1) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"written\n"
        process.send_signal(signal.SIGKILL)


async def test_a_killed_process_leaves_no_part_of_a_file_under_its_name(tmp_path: Path) -> None:
    await asyncio.to_thread(kill_while_writing, tmp_path / "store")
    store = StoreFolder(tmp_path / "store")
    with pytest.raises(NotThere):
        await store.head(f"{RUN}/te.xml")
    assert len(list((tmp_path / "store" / INCOMING).iterdir())) == 1
    later = StoreFolder(tmp_path / "store", clock=lambda: time.time() + (ABANDONED_DAYS + 1) * DAY)
    await later.remove_old("results/")
    assert list((tmp_path / "store" / INCOMING).iterdir()) == []


async def test_old_runs_and_abandoned_uploads_are_removed_and_nothing_else(tmp_path: Path) -> None:
    now = time.time()
    store = StoreFolder(tmp_path / "store", clock=lambda: now)
    unfinished = RUN.replace("run-1", "run-2")
    await put(store, f"{RUN}/{MANIFEST}", b"{}")
    await put(store, f"{unfinished}/te.xml", b"<xml/>")
    await store.write_over("results/octocat/compiler/nightly.json", b"{}", content_type="application/json")
    assert await store.remove_old("results/") == 0
    now += (ABANDONED_DAYS + 1) * DAY
    assert await store.remove_old("results/") == 1
    with pytest.raises(NotThere):
        await store.head(f"{unfinished}/te.xml")
    await store.head(f"{RUN}/{MANIFEST}")
    now += STORED_DAYS * DAY
    assert await store.remove_old("results/", {"octocat/compiler": 100 * DAY}) == 0
    assert await store.remove_old("results/", {"octocat/other": DAY}) == 1
    await store.head("results/octocat/compiler/nightly.json")


def test_a_nearly_full_disk_is_refused_with_what_to_do(tmp_path: Path) -> None:
    store = StoreFolder(tmp_path / "store")
    store.check_space(1)
    with pytest.raises(NoSpace, match=r"must leave 1,024 MB.*results\.bucket"):
        store.check_space(1 << 60)
    assert store.name == STORE_FOLDER


def test_a_folder_that_cannot_be_created_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(UserError, match="cannot be written"):
        StoreFolder(tmp_path / "file/store")
