"""The JSON lines of Criterion (`cargo criterion --message-format=json`): one for each benchmark, and for each group.

https://bheisler.github.io/criterion.rs/book/cargo_criterion/external_tools.html
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import BinaryIO

from nightjar_formats.model import Case
from nightjar_formats.readers import texts, values
from nightjar_formats.readers.benchmarks.rows import LATENCY, Benchmarks
from nightjar_formats.readers.json.lines import mixed_lines
from nightjar_formats.readers.json.stream import ITEMS, SCALAR, Shape
from nightjar_formats.refused import Refused

FORMAT = "criterion-json"
COMPLETE = "benchmark-complete"
LINE: Shape = {
    "reason": SCALAR,
    "id": SCALAR,
    "unit": SCALAR,
    "iteration_count": {ITEMS: SCALAR},
    "measured_values": {ITEMS: SCALAR},
    "median": {"estimate": SCALAR, "unit": SCALAR},
}


def read(stream: BinaryIO) -> Iterator[Case]:
    """Read the benchmarks: the samples are the measured values per iteration. Raises Refused if there is none."""
    benchmarks = Benchmarks()
    for line in mixed_lines(stream, FORMAT, LINE):
        if isinstance(line, str) or line.get("reason") != COMPLETE or not (name := values.name(line.get("id"))):
            continue
        unit = line.get("unit")
        metric = LATENCY._replace(unit=unit if isinstance(unit, str) and unit.isalpha() else "ns")
        measured, counts = (values.sequence(line.get(key)) for key in ("measured_values", "iteration_count"))
        pairs = [(values.number(value), values.number(count)) for value, count in zip(measured, counts)]
        per_iteration = [value / count for value, count in pairs if value is not None and count]
        median = values.mapping(line.get("median"))
        if per_iteration:
            benchmarks.add(name, metric, *per_iteration)
        else:
            benchmarks.add(name, metric, median.get("estimate"))
    if not len(benchmarks):
        raise Refused(texts.CRITERION_NO_BENCHMARK.format(what=FORMAT))
    yield from benchmarks.cases()
