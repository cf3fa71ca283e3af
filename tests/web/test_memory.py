"""How much memory strangers can make the server use, measured on the real process."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack
from pathlib import Path

import pytest

from sandbox.processes import launch
from tests.waiting import until
from tests.web.process import answer_to, memory, serving, signature, webhook_head

MIB = 1 << 20
CROWD = 40
LARGE = 24 * MIB
BUDGET = 64
"""MiB of bodies that the server holds unless app.yaml says otherwise."""
BESIDE = 48
"""MiB that a crowd may cost beside the bodies: buffers of connections, and what the allocator keeps."""
STORED = 16
"""MiB that the process may keep of it. Where glibc adapts its limits by itself, it keeps over 30."""
WRONG = "sha256=" + "0" * 64


async def send_large(port: int, head: bytes) -> int:
    """Send a large body on its own connection, and return the answer's status."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    answer = asyncio.create_task(answer_to(reader))
    try:
        writer.write(head)
        piece = bytes(MIB)
        for _ in range(LARGE // MIB):
            if answer.done():
                break
            writer.write(piece)
            await writer.drain()
        return (await answer)[0]
    except ConnectionError:
        return (await answer)[0]
    finally:
        writer.close()


async def test_many_large_bodies_use_no_more_than_the_budget_and_release_it(tmp_path: Path) -> None:
    async with serving(tmp_path, launch=launch) as bot:
        mib_before = memory(bot.pid)
        head = webhook_head(LARGE, WRONG, "Connection: close")
        statuses = await asyncio.gather(*(send_large(bot.port, head) for _ in range(CROWD)))
        # 408 in place of 401 if the machine is too busy to send a body in time.
        assert {503} < set(statuses) <= {401, 408, 503}
        assert memory(bot.pid, "VmHWM") < mib_before + BUDGET + BESIDE
        await until(lambda: memory(bot.pid) < mib_before + STORED)


async def test_a_delivery_from_github_gets_through_a_crowd_that_uses_the_whole_budget(tmp_path: Path) -> None:
    body = b'{"repository":{"id":7}}'
    async with serving(tmp_path) as bot, AsyncExitStack() as crowd:
        for _ in range(4):
            reader, writer = await asyncio.open_connection("127.0.0.1", bot.port)
            crowd.callback(writer.close)
            # The last byte is never sent.
            writer.write(webhook_head(LARGE, WRONG) + bytes(LARGE - 1))
            await writer.drain()
        reader, writer = await asyncio.open_connection("127.0.0.1", bot.port)
        crowd.callback(writer.close)
        writer.write(webhook_head(len(body), signature(body)) + body)
        assert (await answer_to(reader))[0] == 202


@pytest.mark.exhaustive("X-GitHub-Event: Push!")
@pytest.mark.parametrize("wrong", ["X-GitHub-Event: Push!", "X-GitHub-Delivery: two words"])
async def test_a_body_with_refused_headers_is_never_held(tmp_path: Path, wrong: str) -> None:
    async with serving(tmp_path, launch=launch) as bot:
        mib_before = memory(bot.pid)
        name = wrong.partition(":")[0].encode()
        lines = [line for line in webhook_head(LARGE, WRONG).split(b"\r\n") if line and not line.startswith(name)]
        head = b"\r\n".join([*lines, wrong.encode(), b"Connection: close"]) + b"\r\n\r\n"
        statuses = await asyncio.gather(*(send_large(bot.port, head) for _ in range(CROWD)))
        assert set(statuses) == {400}
        assert memory(bot.pid, "VmHWM") < mib_before + BESIDE
