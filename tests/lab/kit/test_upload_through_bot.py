"""`nightjar-lab` without a bucket: `upload`, `run` and `doctor` against the real bot, over connections that fail."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from nightjar_formats.errors import UserError
from nightjar_formats.model import Claims, RunKey
from nightjar_formats.runs.upload import PackedRun, UploadFile, pack, pieces, send
from nightjar_lab.api import BotClient
from nightjar_lab.bot_upload import BotStore

from tests.conversations.lab import LAB, TARGET
from tests.conversations.town import REPOSITORY
from tests.conversations.uploads import FILES, UploadLab, stored_names, upload_lab
from tests.lab.kit.running import kit_environment, run_kit

BUSY = b"HTTP/1.1 503 Service Unavailable\r\nRetry-After: 7\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"


@dataclass
class Front:
    """A proxy in front of the bot. `faults` has what happens to the next connections: `cut`, `busy` or `pass`."""

    url: str = ""
    port: int = 0
    bot: tuple[str, int] = ("", 0)
    faults: list[str] = field(default_factory=list)
    sent_bytes: list[int] = field(default_factory=list)
    """How many bytes the lab sent in each connection."""

    async def connect(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Serve a connection."""
        fault = self.faults.pop(0) if self.faults else "pass"
        number = len(self.sent_bytes)
        self.sent_bytes.append(0)
        bot_reader, bot_writer = await asyncio.open_connection(*self.bot)
        try:
            if fault == "busy":
                await reader.readuntil(b"\r\n\r\n")
                writer.write(BUSY)
                # As a server does: with unread data, the end of the connection could overtake the answer.
                while await reader.read(1 << 16):
                    pass
                return
            back = asyncio.create_task(_copy(bot_reader, writer))
            while chunk := await reader.read(1 << 16):
                self.sent_bytes[number] += len(chunk)
                if fault == "cut" and self.sent_bytes[number] > 1 << 20:
                    break
                bot_writer.write(chunk)
                await bot_writer.drain()
            if fault == "cut":
                back.cancel()
            else:
                await back
        except OSError:
            pass
        finally:
            for end in (writer, bot_writer):
                end.close()


async def _copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with suppress(OSError):
        while chunk := await reader.read(1 << 16):
            writer.write(chunk)
            await writer.drain()
        writer.close()


@asynccontextmanager
async def front_of(url: str) -> AsyncIterator[Front]:
    """Start a proxy in front of the bot."""
    host, _, port = url.partition("//")[2].partition(":")
    front = Front(bot=(host, int(port)))
    server = await asyncio.start_server(front.connect, "127.0.0.1", 0)
    front.url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    yield front
    server.close()


@pytest.fixture
async def lab(sqlite_url: str) -> AsyncIterator[UploadLab]:
    async with upload_lab(sqlite_url) as lab:
        yield lab


def environment(lab: UploadLab, home: Path, **variables: str) -> dict[str, str]:
    """Return the environment of the lab's machine, without any AWS_* variable."""
    return kit_environment(home, None, NIGHTJAR_URL=lab.town.url, NIGHTJAR_LAB_TOKEN=lab.token, **variables)


def packed(lab: UploadLab, folder: Path, *names: str) -> PackedRun:
    """Return a run with files of the folder."""
    key = RunKey(REPOSITORY, LAB, TARGET, lab.sha, "run-1")
    files = list(pieces([folder / name for name in names], None, None, folder))
    return pack(key, "results/", files, Claims(suite="operators"))


async def test_a_run_is_uploaded_and_continued_without_a_bucket(lab: UploadLab, tmp_path: Path) -> None:
    (tmp_path / "te.xml").write_bytes(FILES["te.xml"])
    words = ("upload", "--target", TARGET, "--sha", lab.sha, "--suite", "operators", "--run-id", "run-1", "te.xml")
    done = await run_kit(*words, env=environment(lab, tmp_path), cwd=tmp_path)
    assert done.status == 0, done
    assert "manifest.json: uploaded" in done.err
    assert done.out == f"{lab.town.url}/r/{REPOSITORY}/runs/{LAB}/{TARGET}/{lab.sha}/run-1\n"
    assert lab.check().conclusion == "success"
    again = await run_kit(*words, "--json", env=environment(lab, tmp_path), cwd=tmp_path)
    answer = json.loads(again.out)
    assert (answer["bucket"], answer["uploaded"]["te.xml"]) == (None, False)


async def test_tests_run_and_their_check_run_is_written_with_four_settings(lab: UploadLab, tmp_path: Path) -> None:
    (tmp_path / "test_ops.py").write_text("def test_add(): pass\n")
    command = ("--", sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "test_ops.py")
    words = ("run", "--target", TARGET, "--sha", lab.sha, *command)
    done = await run_kit(*words, env=environment(lab, tmp_path), cwd=tmp_path)
    assert done.status == 0, done
    assert lab.check().conclusion == "success"


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        (("--target", "cuda"), "no target cuda"),
        (("--target", TARGET, "--sha", "0" * 40), "there is no commit"),
        (("--target", TARGET, "--repository", "Octocat/compiler"), "app.yaml names the repository octocat/compiler"),
    ],
)
async def test_a_run_that_would_be_refused_starts_no_test(
    lab: UploadLab, tmp_path: Path, options: tuple[str, ...], reason: str
) -> None:
    sha = () if "--sha" in options else ("--sha", lab.sha)
    words = ("run", *options, *sha, "--", "touch", str(tmp_path / "tested"))
    done = await run_kit(*words, env=environment(lab, tmp_path), cwd=tmp_path)
    assert (done.status, reason in done.err) == (1, True), done
    assert not (tmp_path / "tested").exists()


async def test_a_lost_connection_costs_only_the_interrupted_file(lab: UploadLab, tmp_path: Path) -> None:
    names = ("a.bin", "b.bin")
    for name in names:
        (tmp_path / name).write_bytes(name.encode() * (1 << 19))
    run, pauses = packed(lab, tmp_path, *names), list[float]()
    async with front_of(lab.town.url) as front:
        # The upload begins; the second file is cut off twice, and then the bot is busy.
        front.faults += ["pass", "pass", "cut", "cut", "busy", "pass"]
        store = BotStore(BotClient(front.url, LAB, lambda: lab.token), run, pauses.append)
        await asyncio.to_thread(send, run, store, _nobody_listens)
        assert pauses == [1.0, 2.0, 7.0]
        size = len(names[0]) << 19
        assert [count >= size for count in front.sent_bytes] == [False, True, False, False, False, True, False]
        # A second process continues, and sends no file again.
        front.sent_bytes.clear()
        store = BotStore(BotClient(front.url, LAB, lambda: lab.token), run, pauses.append)
        await asyncio.to_thread(send, run, store, _nobody_listens)
        assert sum(front.sent_bytes) < 10_000
    assert sorted(stored_names(tmp_path)) == ["a.bin", "b.bin", "manifest.json"]


def _nobody_listens(_: UploadFile | None, __: bool) -> None:
    """Ignore the progress."""


async def test_a_bot_that_stays_busy_is_given_up_with_the_command_to_continue(lab: UploadLab, tmp_path: Path) -> None:
    (tmp_path / "te.xml").write_bytes(FILES["te.xml"])
    run, pauses = packed(lab, tmp_path, "te.xml"), list[float]()
    async with front_of(lab.town.url) as front:
        front.faults += ["busy"] * 6
        store = BotStore(BotClient(front.url, LAB, lambda: lab.token), run, pauses.append)
        with pytest.raises(UserError, match="run-1"):
            await asyncio.to_thread(send, run, store, _nobody_listens)
    assert pauses == [7.0, 7.0, 7.0, 8.0, 16.0]


async def test_a_refusal_is_not_repeated(lab: UploadLab, tmp_path: Path) -> None:
    (tmp_path / "te.xml").write_bytes(FILES["te.xml"])
    lab.folder.least_free = 1 << 60
    run, pauses = packed(lab, tmp_path, "te.xml"), list[float]()
    with pytest.raises(UserError, match="MB free"):
        await asyncio.to_thread(
            send, run, BotStore(BotClient(lab.town.url, LAB, lambda: lab.token), run, pauses.append), _nobody_listens
        )
    assert pauses == []


async def test_without_a_bucket_and_a_token_the_setting_is_named(lab: UploadLab, tmp_path: Path) -> None:
    env = environment(lab, tmp_path)
    del env["NIGHTJAR_LAB_TOKEN"]
    words = ("run", "--target", TARGET, "--sha", lab.sha, "--", "touch", str(tmp_path / "tested"))
    done = await run_kit(*words, env=env, cwd=tmp_path)
    assert (done.status, "NIGHTJAR_LAB_TOKEN is not set" in done.err) == (2, True)
    assert not (tmp_path / "tested").exists()
