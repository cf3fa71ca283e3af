"""Measure how many signed webhooks a second are answered with 202, and how soon, compared with a bare handler."""

from __future__ import annotations

from dataclasses import replace

from benchmarks import bare
from benchmarks.load import Load, Waits, generate
from benchmarks.report import Options, Row, command
from benchmarks.stage import BenchmarkStage, open_stage
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
    async with open_stage(options.database) as stage:
        path = stage.folder / "templates.json"
        write(path, templates(stage.github, stage.repo, PULLS)["unwanted"])
        load = Load(port=0, templates=str(path), connections=1, seconds=options.seconds(SECONDS))
        most = 0.0
        for connections in CONNECTIONS:
            plain = await _bare(replace(load, connections=connections))
            nightjar, cost = await _bot(stage, replace(load, connections=connections))
            rows += _rows(f"{connections} connections", plain, nightjar, cost)
            most = plain.per_second
            nightjar_rate = nightjar.per_second
        rates = {
            f"1/{2 * AIM} of bare": most / AIM / 2,
            "half of our own": nightjar_rate / 2,
            "250/s": 250.0,
            "50/s": 50.0,
        }
        for label, rate in rates.items():
            at_rate = replace(load, connections=64, rate=rate)
            plain = await _bare(at_rate)
            nightjar, cost = await _bot(stage, at_rate)
            rows += _rows(f"at {label}", plain, nightjar, cost)
    return rows


async def _bare(load: Load) -> Waits:
    async with bare.serving() as port:
        return await generate(replace(load, port=port))


async def _bot(stage: BenchmarkStage, load: Load) -> tuple[Waits, Row]:
    """Load the bot and let it finish its work; also return the cost."""
    cpu = stage.cpu()
    waits = await generate(replace(load, port=stage.bot.port))
    if set(waits.statuses) != {"202"}:
        raise AssertionError(f"not everything was answered with 202: {waits.statuses}")
    waiting_at_end = await stage.waiting()
    seconds = await stage.drained()
    return waits, {
        "left waiting": waiting_at_end,
        "drained after s": round(seconds, 2),
        "CPU ms each": round(1000 * (stage.cpu() - cpu) / waits.sent, 2),
    }


def _rows(label: str, plain: Waits, nightjar: Waits, cost: Row) -> list[Row]:
    nothing: Row = dict.fromkeys(cost, 0.0)
    return [
        {"load": label, "server": "bare", **_figures(plain), "% of bare": 100.0, **nothing},
        {
            "load": label,
            "server": "nightjar",
            **_figures(nightjar),
            "% of bare": 100 * nightjar.per_second / plain.per_second,
            **cost,
        },
    ]


def _figures(waits: Waits) -> Row:
    return {"per second": waits.per_second, "p50 ms": waits.p50, "p99 ms": waits.p99, "longest ms": waits.longest}


main = command(measure, TITLE)

if __name__ == "__main__":
    main()
