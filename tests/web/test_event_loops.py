"""What the bot does alike on each event loop: uvloop's, and Python's own where uvloop is not installed."""

from __future__ import annotations

import asyncio
import resource
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from pathlib import Path

import pytest

from bot.core.ports import BACKLOG
from sandbox.bot_process import BotProcess
from sandbox.processes import inherited, launch
from tests.waiting import until
from tests.web.process import answer_to, serving

HEALTH = b"GET /healthz HTTP/1.1\r\nHost: bot\r\n\r\n"


@pytest.fixture(params=["uvloop", "asyncio"])
async def bot(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[BotProcess]:
    """Return a bot on each event loop."""
    path = inherited().get("PYTHONPATH", "")
    if request.param == "asyncio":
        (tmp_path / "uvloop.py").write_text("raise ImportError\n")
        path = f"{tmp_path}:{path}"
    async with serving(tmp_path, launch=launch, variables={"PYTHONPATH": path}) as bot:
        assert [line["event_loop"] for line in bot.logs if line["event"] == "serving"] == [request.param]
        yield bot


def open_descriptors(pid: int) -> int:
    return len(list(Path(f"/proc/{pid}/fd").iterdir()))


def complaints(bot: BotProcess) -> list[dict[str, object]]:
    return [line for line in bot.logs if line["event"] == "a connection could not be accepted"]


@pytest.mark.exhaustive("asyncio")
async def test_without_descriptors_connections_wait_until_there_are_some(bot: BotProcess) -> None:
    used = open_descriptors(bot.pid)
    limits = resource.prlimit(bot.pid, resource.RLIMIT_NOFILE)
    resource.prlimit(bot.pid, resource.RLIMIT_NOFILE, (used + 3, limits[1]))
    async with AsyncExitStack() as stack:
        readers = []
        # Fewer than may wait to be accepted: the others could not even connect.
        for _ in range(BACKLOG // 2):
            reader, writer = await asyncio.open_connection("127.0.0.1", bot.port)
            stack.callback(writer.close)
            writer.write(HEALTH)
            readers.append(reader)
        await until(lambda: len(complaints(bot)) >= 3)
        # It is tried about as often as it is logged, and not for each connection.
        assert max(int(str(line["held_back"])) for line in complaints(bot)) <= 1
        assert "Too many open files" in str(complaints(bot)[0]["reason"])
        resource.prlimit(bot.pid, resource.RLIMIT_NOFILE, limits)
        assert {(await answer_to(reader))[0] for reader in readers} == {200}
    assert not [line for line in bot.output if "Traceback" in line]
