"""A result file of airspeed velocity (`.asv/results/MACHINE/*.json`, version 2): the benchmarks of one commit.

Each combination of parameters is a test. The kind of a benchmark is the beginning of its function's name, as in
time_conv. https://asv.readthedocs.io/en/stable/dev.html#results-storage
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import product
from typing import Any, BinaryIO

from nightjar_formats.limits import MAX_CASES
from nightjar_formats.model import Case
from nightjar_formats.readers import texts, values
from nightjar_formats.readers.benchmarks.rows import LATENCY, PEAK_MEMORY, Benchmarks, Metric
from nightjar_formats.readers.json.stream import ITEMS, SCALAR, JsonReader, Shape
from nightjar_formats.refused import Refused, TooMuch

FORMAT = "asv-json"
ROW: Shape = {ITEMS: {ITEMS: {ITEMS: SCALAR}}}
COLUMNS = ("result", "params", "samples")
_KINDS = (
    ("time", LATENCY),
    ("peakmem", PEAK_MEMORY),
    ("mem", Metric("size", "B", PEAK_MEMORY.better)),
    ("track", Metric("value")),
)


def read(stream: BinaryIO) -> Iterator[Case]:
    """Read the benchmarks. Raises Refused if it is not a result file, TooMuch beyond a limit."""
    json, benchmarks, columns, is_report = JsonReader(stream, FORMAT), Benchmarks(), list[str](), False
    for key in json.members():
        if key == "result_columns":
            columns = [str(column) for column in json.items(SCALAR)]
        elif key == "results":
            is_report = True
            for name in json.members():
                row = values.sequence(json.value(ROW))
                _add(benchmarks, values.name(name), dict(zip(columns, row)))
        else:
            json.skip()
    json.end()
    if not is_report or not columns:
        raise Refused(texts.NO_BENCHMARKS.format(what=FORMAT, member="results"))
    yield from benchmarks.cases()


def _add(benchmarks: Benchmarks, name: str, row: Mapping[str, Any]) -> None:
    results, params, samples = (values.sequence(row.get(column)) for column in COLUMNS)
    function = name.rpartition(".")[2]
    metric = next((metric for kind, metric in _KINDS if function.startswith(kind)), Metric("value"))
    axes = [[str(value) for value in values.sequence(axis)] for axis in params]
    for number, (combination, result) in enumerate(zip(product(*axes), results)):
        full_name = values.name(f"{name}({', '.join(combination)})" if combination else name)
        if len(benchmarks) >= MAX_CASES:
            raise TooMuch(texts.TOO_MANY_CASES.format(name=FORMAT))
        if result is None:
            # JSON has null for a benchmark that failed, and NaN, which is read as null, for one that was skipped.
            benchmarks.fail(full_name, texts.BENCHMARK_FAILED)
            continue
        own_samples = values.sequence(samples[number]) if number < len(samples) else []
        benchmarks.add(full_name, metric, *(own_samples or [result]))
