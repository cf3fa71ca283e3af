"""Measure the start of `nightjar serve`: until it listens, until it answers, and the processor time until then."""

from __future__ import annotations

import asyncio
import socket
import time
from statistics import median

import aiohttp

from benchmarks.report import Options, Row, command
from benchmarks.stage import open_stage

TITLE = "The start of `nightjar serve`, with the tables of an earlier one"
STARTS = 10
POLL = 0.005
WITHIN = 60.0


async def measure(options: Options) -> list[Row]:
    """Start the bot some times on one database, after a first time that creates the tables."""
    starts = []
    async with open_stage(options.database) as stage:
        for _ in range(options.count(STARTS)):
            await stage.bot.stop()
            with socket.create_server(("127.0.0.1", 0)) as free:
                stage.bot.port = free.getsockname()[1]
            began = time.perf_counter()
            await stage.bot.spawn()
            async with asyncio.timeout(WITHIN):
                await _connected(stage.bot.port)
            listening = time.perf_counter() - began
            async with aiohttp.ClientSession() as session, session.get(f"{stage.bot.url}/healthz") as answer:
                assert answer.status == 200, answer.status
            starts.append((listening, time.perf_counter() - began, stage.cpu()))
    listens, answers, cpu = (round(median(column), 2) for column in zip(*starts, strict=True))
    return [{"what": "median of some", "listens after s": listens, "answers after s": answers, "CPU s until then": cpu}]


async def _connected(port: int) -> None:
    while True:
        try:
            _, writer = await asyncio.open_connection("127.0.0.1", port)
        except ConnectionRefusedError:
            await asyncio.sleep(POLL)
        else:
            writer.close()
            return


main = command(measure, TITLE, usual_rounds=1)

if __name__ == "__main__":
    main()
