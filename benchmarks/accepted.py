"""Measure how many deliveries of the mix are accepted a second, compared with a bare handler and with probot.

Of twenty deliveries, no handler accepts sixteen, three are comments without a command, and one is a command.
"""

from __future__ import annotations

import asyncio
from dataclasses import replace

import click

from benchmarks import bare, probot_server
from benchmarks.load import Load, Waits, generate
from benchmarks.report import Options, Row, command
from benchmarks.stage import BenchmarkStage, open_stage

TITLE = "The mix, signed, to 202, the worker running"
CONNECTIONS = (1, 8, 32, 64)
SECONDS = 4.0
COMMANDS = 1_200
HALF_OF = 32
"""The number of connections whose measured rate is halved for the measurement at a fixed rate."""


async def measure(options: Options) -> list[Row]:
    """Measure all three in turn at each number of connections. The bot starts with an empty database each time."""
    without = await probot_server.missing()
    if without:
        click.echo(without, err=True)
    rows = []
    nightjar_rate = 0.0
    for connections in CONNECTIONS:
        async with open_stage(options.database, limits=False) as stage:
            load = load_of(stage, connections, options.seconds(SECONDS))
            async with bare.serving() as port:
                plain = await generate(replace(load, port=port))
            beside = Waits()
            if not without:
                async with probot_server.serving() as port:
                    beside = await generate(replace(load, port=port))
            nightjar = accepted(await generate(load))
        rows.append(_row(connections, plain, beside, nightjar))
        if connections == HALF_OF:
            nightjar_rate = nightjar.per_second
    return [*rows, await _at_half(options, nightjar_rate / 2)]


def load_of(stage: BenchmarkStage, connections: int, seconds: float) -> Load:
    """Describe the load of the mix on a stage."""
    return Load(stage.bot.port, str(stage.mix(COMMANDS)), connections, seconds)


def accepted(waits: Waits) -> Waits:
    """Raise an error unless everything was accepted."""
    if set(waits.statuses) != {"202"}:
        raise AssertionError(f"not everything was answered with 202: {waits.statuses}")
    return waits


async def _at_half(options: Options, rate: float) -> Row:
    async with open_stage(options.database, limits=False) as stage:
        load = replace(load_of(stage, 64, options.seconds(2 * SECONDS)), rate=rate)
        async with bare.serving() as port:
            plain = await generate(replace(load, port=port))
        await asyncio.sleep(0.5)  # the bot has just started
        nightjar = accepted(await generate(load))
    return _row(0, plain, Waits(), nightjar)


def _row(connections: int, plain: Waits, beside: Waits, nightjar: Waits) -> Row:
    return {
        "load": f"{connections} connections" if connections else f"half of what {HALF_OF} connections reach",
        "bare /s": plain.per_second,
        "probot /s": beside.per_second,
        "nightjar /s": nightjar.per_second,
        "of bare": round(nightjar.per_second / plain.per_second, 3),
        "of probot": round(nightjar.per_second / beside.per_second, 3) if beside.per_second else 0.0,
        "bare p99 ms": plain.p99,
        "probot p99 ms": beside.p99,
        "nightjar p50 ms": nightjar.p50,
        "nightjar p99 ms": nightjar.p99,
        "generator busy": max(plain.busy, beside.busy, nightjar.busy),
    }


main = command(measure, TITLE)

if __name__ == "__main__":
    main()
