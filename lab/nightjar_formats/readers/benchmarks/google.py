"""Google Benchmark's JSON (`--benchmark_out=FILE --benchmark_out_format=json`).

Repetitions of a benchmark are its samples. If the file has only aggregates (`--benchmark_report_aggregates_only`), the
medians count. https://google.github.io/benchmark/user_guide.html#output-formats
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, BinaryIO

from nightjar_formats.measurements import Better, named
from nightjar_formats.model import Case
from nightjar_formats.readers import values
from nightjar_formats.readers.benchmarks.rows import CPU_TIME, LATENCY, THROUGHPUT, Benchmarks, Metric, items_of
from nightjar_formats.readers.json.stream import ANY, SCALAR, Shape

FORMAT = "google-benchmark-json"
BENCHMARK: Shape = {ANY: SCALAR}
_UNITS = frozenset({"ns", "us", "ms", "s"})
_METRICS = {
    "bytes_per_second": THROUGHPUT,
    "items_per_second": Metric("items_per_second", "items/s", Better.HIGHER),
}
_NO_COUNTERS = frozenset({
    "family_index", "per_family_instance_index", "repetitions", "repetition_index", "threads", "iterations",
    "real_time", "cpu_time",
})  # fmt: skip


def read(stream: BinaryIO) -> Iterator[Case]:
    """Read the benchmarks. Raises Refused if the file has none."""
    repetitions, medians = Benchmarks(), Benchmarks()
    for benchmark in items_of(stream, FORMAT, "benchmarks", BENCHMARK):
        name = values.name(benchmark.get("run_name")) or values.name(benchmark.get("name"))
        if not name:
            continue
        # Since version 1.8, a benchmark that skips itself has `skipped` instead.
        if benchmark.get("error_occurred") or benchmark.get("skipped"):
            repetitions.fail(name, benchmark.get("error_message") or benchmark.get("skip_message"))
        elif benchmark.get("run_type") != "aggregate":
            _add(repetitions, name, benchmark)
        elif benchmark.get("aggregate_name") == "median":
            _add(medians, name, benchmark)
    yield from (repetitions if len(repetitions) else medians).cases()


def _add(benchmarks: Benchmarks, name: str, benchmark: Mapping[str, Any]) -> None:
    unit = benchmark.get("time_unit")
    unit = unit if unit in _UNITS else "ns"
    benchmarks.add(name, LATENCY._replace(unit=unit), benchmark.get("real_time"))
    benchmarks.add(name, CPU_TIME._replace(unit=unit), benchmark.get("cpu_time"))
    for counter, value in benchmark.items():
        if counter not in _NO_COUNTERS and isinstance(value, (int, float)) and not isinstance(value, bool):
            benchmarks.add(name, _METRICS.get(counter) or Metric(named(counter)), value)
