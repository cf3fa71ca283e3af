"""hyperfine's JSON (`--export-json`): seconds of each run of a command.

https://github.com/sharkdp/hyperfine
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import BinaryIO

from nightjar_formats.model import Case
from nightjar_formats.readers import texts, values
from nightjar_formats.readers.benchmarks.rows import CPU_TIME, LATENCY, PEAK_MEMORY, Benchmarks, Metric, items_of
from nightjar_formats.readers.json.stream import ITEMS, NUMBERS, SCALAR, Shape

FORMAT = "hyperfine-json"
SYSTEM_TIME = Metric("system_time", "s", CPU_TIME.better)
RESULT: Shape = {
    "command": SCALAR,
    "median": SCALAR,
    "user": SCALAR,
    "system": SCALAR,
    "times": NUMBERS,
    "memory_usage_byte": {ITEMS: SCALAR},
    "exit_codes": {ITEMS: SCALAR},
}


def read(stream: BinaryIO) -> Iterator[Case]:
    """Read the commands; a test's name is its command, or the name given with --command-name. Raises Refused."""
    benchmarks = Benchmarks()
    for result in items_of(stream, FORMAT, "results", RESULT):
        name = values.name(result.get("command"))
        if not name:
            continue
        benchmarks.add(name, LATENCY, *values.sequence(result.get("times")), median=result.get("median"))
        benchmarks.add(name, CPU_TIME, result.get("user"))
        benchmarks.add(name, SYSTEM_TIME, result.get("system"))
        benchmarks.add(name, PEAK_MEMORY, *values.sequence(result.get("memory_usage_byte")))
        # With --ignore-failure, hyperfine measures commands that fail.
        codes = values.sequence(result.get("exit_codes"))
        failed = [code for code in codes if code != 0]
        if failed:
            benchmarks.fail(name, texts.COMMAND_FAILED.format(count=len(failed), runs=len(codes), status=failed[0]))
    yield from benchmarks.cases()
