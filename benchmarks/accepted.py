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
from benchmarks.stage import BenchmarkStage, stage

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
    own = 0.0
    for connections in CONNECTIONS:
        async with stage(options.database, limits=False) as on:
            load = load_of(on, connections, options.seconds(SECONDS))
            async with bare.serving() as port:
                plain = await generate(replace(load, port=port))
            beside = Waits()
            if not without:
                async with probot_server.serving() as port:
                    beside = await generate(replace(load, port=port))
            ours = accepted(await generate(load))
        rows.append(_row(connections, plain, beside, ours))
        if connections == HALF_OF:
            own = ours.per_second
    return [*rows, await _at_half(options, own / 2)]


def load_of(on: BenchmarkStage, connections: int, seconds: float) -> Load:
    """Describe the load of the mix on a stage."""
    return Load(on.bot.port, str(on.mix(COMMANDS)), connections, seconds)


def accepted(waits: Waits) -> Waits:
    """Raise an error unless everything was accepted."""
    if set(waits.statuses) != {"202"}:
        raise AssertionError(f"not everything was answered with 202: {waits.statuses}")
    return waits


async def _at_half(options: Options, rate: float) -> Row:
    async with stage(options.database, limits=False) as on:
        load = replace(load_of(on, 64, options.seconds(2 * SECONDS)), rate=rate)
        async with bare.serving() as port:
            plain = await generate(replace(load, port=port))
        await asyncio.sleep(0.5)  # the bot has just started
        ours = accepted(await generate(load))
    return _row(0, plain, Waits(), ours)


def _row(connections: int, plain: Waits, beside: Waits, ours: Waits) -> Row:
    return {
        "load": f"{connections} connections" if connections else f"half of what {HALF_OF} connections reach",
        "bare /s": plain.per_second,
        "probot /s": beside.per_second,
        "nightjar /s": ours.per_second,
        "of bare": round(ours.per_second / plain.per_second, 3),
        "of probot": round(ours.per_second / beside.per_second, 3) if beside.per_second else 0.0,
        "bare p99 ms": plain.p99,
        "probot p99 ms": beside.p99,
        "nightjar p50 ms": ours.p50,
        "nightjar p99 ms": ours.p99,
        "generator busy": max(plain.busy, beside.busy, ours.busy),
    }


main = command(measure, TITLE)

if __name__ == "__main__":
    main()
