"""Result files that a stranger's code wrote: bounded before they are read, and sent from the file."""

from __future__ import annotations

import asyncio
import os
import re
import subprocess
import tracemalloc
from pathlib import Path

import pytest
from aiohttp import web
from nightjar_formats.limits import MAX_FILE_BYTES, MAX_FILES, MAX_RUN_BYTES
from nightjar_formats.model import Claims, RunKey
from nightjar_formats.runs.file_names import is_file_name
from nightjar_formats.runs.upload import pack
from nightjar_lab.upload import ResultFile, UploadFailed, copy_files, result_files, send_permitted

from tests.serving import served

KEY = RunKey("octocat/compiler", "example-lab", "adreno", "a" * 40, "run-1")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """The folder of results."""
    made = tmp_path / "results"
    made.mkdir()
    return made


def sparse(folder: Path, name: str, size: int) -> Path:
    """Create a file that takes no space on the disk."""
    path = folder / name
    path.touch()
    os.truncate(path, size)
    return path


def upload(url: str, files: list[ResultFile]) -> None:
    """Upload files as the agent does."""
    packed_run = pack(KEY, "results/", [file.upload_file for file in files], Claims(suite="tests"))
    send_permitted({"url": url, "fields": {"policy": "p"}}, packed_run, files)


@pytest.mark.parametrize(
    ("count", "size", "reason"),
    [
        (MAX_FILES + 1, 1, "more than 256 result files"),
        (1, MAX_FILE_BYTES + 1, "0.xml has more than 67108864 bytes"),
        (200, MAX_FILE_BYTES, "more than 536870912 bytes together"),
        (9, MAX_RUN_BYTES // 9 + 1, "more than 536870912 bytes together"),
    ],
)
def test_too_many_or_too_large_files_are_refused_without_reading_them(
    count: int, size: int, reason: str, folder: Path
) -> None:
    for number in range(count):
        sparse(folder, f"{number}.xml", size)
    tracemalloc.start()
    try:
        with pytest.raises(UploadFailed, match=reason):
            result_files(folder)
        assert tracemalloc.get_traced_memory()[1] < 4 << 20
    finally:
        tracemalloc.stop()


async def test_a_large_file_is_sent_from_the_disk_as_it_is(folder: Path) -> None:
    sparse(folder, "large.xml", 40 << 20)
    (folder / "small.xml").write_text("<testsuites/>")
    received: list[tuple[str, int, str]] = []

    async def receive(request: web.Request) -> web.Response:
        assert request.headers["Content-Length"]
        form = await request.post()
        file = form["file"]
        assert isinstance(file, web.FileField)
        received.append((str(form["key"]), file.file.seek(0, os.SEEK_END), str(form["policy"])))
        return web.Response(status=204)

    app = web.Application(client_max_size=1 << 30)
    app.router.add_post("/", receive)
    async with served(app) as url:
        tracemalloc.start()
        try:
            files = await asyncio.to_thread(result_files, folder)
            await asyncio.to_thread(upload, f"{url}/", files)
            peak = tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()
    names = [(key.rpartition("/")[2], size) for key, size, _ in received]
    assert names[:2] == [("large.xml", 40 << 20), ("small.xml", 13)]
    assert [name for name, _ in names] == ["large.xml", "small.xml", "manifest.json"]
    assert {policy for *_, policy in received} == {"p"}
    assert peak < 20 << 20


CHANGES = {
    "other text": "printf '<testsuitez/>' > te.xml",
    "shorter": "printf '<' > te.xml",
    "longer": "printf '<testsuites></testsuites>' > te.xml",
    "another file": "mv te.xml x; cp x te.xml",
    "link": "mv te.xml x; ln -s x te.xml",
    "pipe": "rm te.xml; mkfifo te.xml",
    "nothing": "rm te.xml",
}


@pytest.mark.parametrize("change", CHANGES)
async def test_a_file_that_changes_after_the_test_ended_is_neither_copied_nor_uploaded(
    change: str, folder: Path, tmp_path: Path
) -> None:
    uploads: list[str] = []
    interrupted = asyncio.Event()

    async def receive(request: web.Request) -> web.Response:
        try:
            uploads.append((await request.read()).decode())
        finally:
            interrupted.set()
        return web.Response(status=204)

    (folder / "te.xml").write_text("<testsuites/>")
    files = result_files(folder)
    await asyncio.to_thread(subprocess.run, ["sh", "-c", CHANGES[change]], cwd=folder, check=True)
    (tmp_path / "copy").mkdir()
    with pytest.raises(UploadFailed):
        copy_files(files, tmp_path / "copy")
    app = web.Application()
    app.router.add_post("/", receive)
    async with served(app) as url:
        with pytest.raises(UploadFailed):
            await asyncio.to_thread(upload, f"{url}/", files)
        # A server that stops before it accepts the connection would leave it open.
        await interrupted.wait()
    assert uploads == []


def test_only_regular_files_with_one_name_are_results(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("of the lab")
    (folder / "a.xml").symlink_to(tmp_path / "secret")
    os.link(tmp_path / "secret", folder / "b.xml")
    os.mkfifo(folder / "c.xml")
    (folder / "d.xml").mkdir()
    (folder / "e.xml").touch()
    (folder / "manifest.json").write_text("{}")
    (folder / ".hidden").write_text("x")
    (folder / "te.xml").write_text("<testsuites/>")
    lines: list[str] = []
    assert [(file.name, file.size) for file in result_files(folder, named=lines.append)] == [("te.xml", 13)]
    assert lines == [
        ".hidden is not uploaded: its name begins with a dot",
        "a.xml is not uploaded: it is a link; write the file itself",
        "b.xml is not uploaded: it has a second name (a hard link); write a copy",
        "c.xml is not uploaded: it is not a regular file",
        "e.xml is not uploaded: it is empty",
        "manifest.json is not uploaded: only nightjar-lab writes manifest.json",
    ]
    (tmp_path / "linked").symlink_to(folder)
    with pytest.raises(OSError, match="Not a directory"):
        result_files(tmp_path / "linked")


def test_files_of_subfolders_and_of_any_name_are_results_and_links_among_them_are_named(
    folder: Path, tmp_path: Path
) -> None:
    (tmp_path / "secret").mkdir()
    (tmp_path / "secret/key.xml").write_text("of the lab")
    for name in ("te.xml", "a/te.xml", "b/te.xml", "b/my results.xml", "-x.xml", "é.xml", "b/manifest.json"):
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text(name)
    (folder / "a/linked").symlink_to(tmp_path / "secret")
    (folder / "a/round").symlink_to(folder)
    deep = folder.joinpath(*"abcdefghijklmnopqrst")
    deep.mkdir(parents=True)
    (deep / "te.xml").write_text("deep")
    lines: list[str] = []
    files = result_files(folder, named=lines.append)
    names = {str(file.path.relative_to(folder)): file.name for file in files}
    assert len(names) == len(set(names.values())) == 7
    assert all(is_file_name(name) for name in names.values())
    assert names["a/te.xml"] == "te.xml"
    assert {path: re.sub("[0-9a-f]{12}", "#", name) for path, name in names.items() if path != "a/te.xml"} == {
        "te.xml": "te-#.xml",
        "b/te.xml": "te-#.xml",
        "b/my results.xml": "my_results-#.xml",
        "b/manifest.json": "manifest-#.json",
        "-x.xml": "x-#.xml",
        "é.xml": "_-#.xml",
    }
    assert lines == [
        "a/b/c/d/e/f/g/h/i/j/k/l/m/n/o/p/q is not uploaded: it is below 16 folders",
        "a/linked is not uploaded: it is a link; write the file itself",
        "a/round is not uploaded: it is a link; write the file itself",
    ]


def test_files_that_are_left_out_are_counted_once_ten_are_named(folder: Path) -> None:
    for number in range(13):
        (folder / f"{number:02}.xml").touch()
    lines: list[str] = []
    assert result_files(folder, named=lines.append) == []
    assert lines[9:] == ["09.xml is not uploaded: it is empty", "not uploaded either: 3 more files"]
