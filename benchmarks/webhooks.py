"""Measure how many signed webhooks a second are answered with 202, and how soon, compared with a bare handler."""

from __future__ import annotations

from dataclasses import replace

from benchmarks import bare
from benchmarks.load import Load, Waits, generate
from benchmarks.report import Options, Row, command
from benchmarks.stage import BenchmarkStage, stage
from benchmarks.traffic import templates, write

TITLE = "Signed webhooks to 202, with 10 kB bodies that no feature uses, the worker running"
CONNECTIONS = (1, 8, 64)
SECONDS = 4.0
PULLS = 200
AIM = 4
"""The goal: this share of the bare handler's throughput, and fast answers at half of that rate."""


async def measure(options: Options) -> list[Row]:
    """Measure the bare handler and the bot in turn, at each number of connections, then at fixed rates."""
    rows: list[Row] = []
    async with stage(options.database) as on:
        path = on.folder / "templates.json"
        write(path, templates(on.github, on.repo, PULLS)["unwanted"])
        load = Load(port=0, templates=str(path), connections=1, seconds=options.seconds(SECONDS))
        most = 0.0
        for connections in CONNECTIONS:
            plain = await _bare(replace(load, connections=connections))
            ours, more = await _bot(on, replace(load, connections=connections))
            rows += _rows(f"{connections} connections", plain, ours, more)
            most = plain.per_second
            own = ours.per_second
        rates = {f"1/{2 * AIM} of bare": most / AIM / 2, "half of our own": own / 2, "250/s": 250.0, "50/s": 50.0}
        for what, rate in rates.items():
            at_rate = replace(load, connections=64, rate=rate)
            plain = await _bare(at_rate)
            ours, more = await _bot(on, at_rate)
            rows += _rows(f"at {what}", plain, ours, more)
    return rows


async def _bare(load: Load) -> Waits:
    async with bare.serving() as port:
        return await generate(replace(load, port=port))


async def _bot(on: BenchmarkStage, load: Load) -> tuple[Waits, Row]:
    """Load the bot and let it finish its work; also return the cost."""
    cpu = on.cpu()
    waits = await generate(replace(load, port=on.bot.port))
    if set(waits.statuses) != {"202"}:
        raise AssertionError(f"not everything was answered with 202: {waits.statuses}")
    left = await on.waiting()
    seconds = await on.drained()
    return waits, {
        "left waiting": left,
        "drained after s": round(seconds, 2),
        "CPU ms each": round(1000 * (on.cpu() - cpu) / waits.sent, 2),
    }


def _rows(what: str, plain: Waits, ours: Waits, more: Row) -> list[Row]:
    nothing: Row = dict.fromkeys(more, 0.0)
    return [
        {"load": what, "server": "bare", **_figures(plain), "% of bare": 100.0, **nothing},
        {
            "load": what,
            "server": "nightjar",
            **_figures(ours),
            "% of bare": 100 * ours.per_second / plain.per_second,
            **more,
        },
    ]


def _figures(waits: Waits) -> Row:
    return {"per second": waits.per_second, "p50 ms": waits.p50, "p99 ms": waits.p99, "longest ms": waits.longest}


main = command(measure, TITLE)

if __name__ == "__main__":
    main()
