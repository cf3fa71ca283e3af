"""pytest-benchmark's JSON (`--benchmark-json`): the seconds of each round, and numbers in `extra_info`.

https://pytest-benchmark.readthedocs.io/en/latest/usage.html
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import BinaryIO

from nightjar_formats.measurements import named, thinned
from nightjar_formats.model import Case
from nightjar_formats.readers import values
from nightjar_formats.readers.benchmarks.rows import LATENCY, Benchmarks, Metric, items_of
from nightjar_formats.readers.json.stream import ANY, NUMBERS, SCALAR, Shape
from nightjar_formats.readers.pytest.phases import without_group

FORMAT = "pytest-benchmark-json"
BENCHMARK: Shape = {
    "fullname": SCALAR,
    "extra_info": {ANY: SCALAR},
    "stats": {"median": SCALAR, "data": NUMBERS},
}


def read(stream: BinaryIO) -> Iterator[Case]:
    """Read the benchmarks; their names are the tests' node IDs. Raises Refused if the file has none."""
    benchmarks = Benchmarks()
    for benchmark in items_of(stream, FORMAT, "benchmarks", BENCHMARK):
        stats = values.mapping(benchmark.get("stats"))
        name = without_group(values.name(benchmark.get("fullname")))
        if name:
            # A fast test has 200,000 rounds, of which some are samples. Without --benchmark-save-data, there is none.
            benchmarks.add(name, LATENCY, *thinned(values.sequence(stats.get("data"))), median=stats.get("median"))
            for extra, value in values.mapping(benchmark.get("extra_info")).items():
                if isinstance(value, (int, float)) and not isinstance(value, bool):
                    benchmarks.add(name, Metric(named(extra)), value)
    yield from benchmarks.cases(are_nodeids=True)
