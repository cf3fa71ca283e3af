"""Simulate a month of the queue of device tests, with labs, pull requests and faults. Nothing sleeps."""

from __future__ import annotations

import time
from collections.abc import Sequence

from benchmarks.report import Options, Row, command
from tests.devices.outcome import Outcome
from tests.devices.simulation import Simulation
from tests.devices.world import Size

TITLE = "Device tests, simulated"
SEED = 14
TICK = 60.0
"""Seconds between two runs of the sweep. The bot's own runs every 15 s; a month of that takes four times as long."""


async def measure(options: Options) -> list[Row]:
    """Simulate a month, or a day and a half if `quick`."""
    size = Size(labs=50, targets=400, pulls_a_day=2_000, days=options.count(30), seed=SEED, tick=TICK)
    began = time.process_time()
    simulation = Simulation(size)
    outcome = await simulation.run()
    taken = time.process_time() - began
    checks = simulation.checks
    values: dict[str, float | str] = {
        "pull requests": outcome.pulls,
        "heads": outcome.heads,
        "jobs": len(simulation.requested),
        "tests that agents began": outcome.tests,
        "results uploaded": len(simulation.uploaded),
        **_waits(outcome),
        "writes to GitHub": len(checks.moments),
        "writes in the busiest minute": checks.most_in_minute,
        "writes in the busiest hour": checks.most_in_hour,
        "seconds from the event to its write: p50, p99, longest": _quantiles(checks.waits),
        "writes while one about a newer head waited for the limits": checks.ahead,
        "most writes of a check run for one request": max(map(len, checks.steps.values()), default=0),
        "results after the check run had ended without any": checks.after_the_end,
        "fourth writes: results after queued, in progress and ended": len(checks.fourth_writes),
        **{f"fault: {name}": count for name, count in sorted(outcome.faults.items()) if count},
        "what must never happen": len(outcome.wrong),
        "processor seconds": round(taken),
    }
    return [
        {"what": label, "measured": f"{value:,}" if isinstance(value, int) else value}
        for label, value in values.items()
    ]


def _waits(outcome: Outcome) -> dict[str, float | str]:
    return {
        f"seconds from the queue to a device, tier {tier}: p50, p99, longest": _quantiles(waits)
        for tier, waits in sorted(outcome.waits.items())
    }


def _quantiles(values: Sequence[float]) -> str:
    ordered = sorted(values) or [0.0]
    return ", ".join(f"{ordered[min(len(ordered) - 1, int(len(ordered) * share))]:,.0f}" for share in (0.5, 0.99, 1.0))


main = command(measure, TITLE, 1)

if __name__ == "__main__":
    main()
