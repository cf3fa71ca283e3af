r"""The text of `cargo bench`: a line for each benchmark, as Criterion writes it, or libtest and Criterion's `bencher`.

    dense/dot/64            time:   [79.511 ns 90.157 ns 105.81 ns]
                            thrpt:  [4.5065 GiB/s 5.2890 GiB/s 5.9971 GiB/s]
    the name of this benchmark is too long for its column
                            time:   [1.4644 ns 1.7742 ns 2.1380 ns]
    test dense/dot/64 ... bench:         128 ns/iter (+/- 146) = 512 MB/s

Criterion scales the unit of each number, so the numbers are converted: a series keeps its unit. The estimate is between
the bounds of its confidence interval. https://bheisler.github.io/criterion.rs/book/user_guide/command_line_output.html
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import BinaryIO

from nightjar_formats.limits import MAX_ROW_BYTES
from nightjar_formats.model import Case
from nightjar_formats.patterns import Pattern
from nightjar_formats.readers import texts, values
from nightjar_formats.readers.benchmarks.rows import LATENCY, THROUGHPUT, Benchmarks, Metric
from nightjar_formats.readers.decoding.utf_8 import BOM
from nightjar_formats.refused import Refused

FORMAT = "cargo-bench"
_NUMBER, _UNIT = r"([0-9][0-9.]*(?:e[+-]?[0-9]+)?)", r"([^\s\]%]+)"
_INTERVAL = Pattern(rf"^(.*?)[ \t]*(time|thrpt):[ \t]+\[{_NUMBER} {_UNIT} {_NUMBER} {_UNIT} {_NUMBER} {_UNIT}\]")
_BENCH = Pattern(r"^test (.+?) +\.\.\. bench:[ \t]+([0-9.,]+) ns/iter \(\+/- [0-9.,]+\)(?: = ([0-9]+) MB/s)?")
_NANOSECONDS = {"ps": 1e-3, "ns": 1.0, "us": 1e3, "µs": 1e3, "μs": 1e3, "ms": 1e6, "s": 1e9}
_PREFIXES = {
    "": 1.0, "Ki": 1024.0, "Mi": 1024.0**2, "Gi": 1024.0**3, "Ti": 1024.0**4, "K": 1e3, "M": 1e6, "G": 1e9, "T": 1e12,
}  # fmt: skip
_RATES = ("B/s", "elem/s", "bits/s", "b/s")


def is_cargo_bench(text: str) -> bool:
    """Say whether a text has a line of a benchmark of Rust."""
    return any(_INTERVAL.match(line) is not None or _BENCH.match(line) is not None for line in text.splitlines())


def read(stream: BinaryIO) -> Iterator[Case]:
    """Read the benchmarks. Raises Refused if there is none."""
    benchmarks, line_before, name = Benchmarks(), "", ""
    while line := stream.readline(MAX_ROW_BYTES):
        text = line.removeprefix(BOM).decode("utf-8", "replace").rstrip()
        if (interval := _INTERVAL.match(text)) is not None:
            if interval[2] == "time":
                name = values.name(interval[1].strip() or line_before.strip())
            if name:
                metric, factor = _metric(interval[2], interval[6])
                benchmarks.add(name, metric, _scaled(interval[5], factor))
        elif (bench := _BENCH.match(text)) is not None:
            benchmarks.add(values.name(bench[1]), LATENCY._replace(unit="ns"), bench[2].replace(",", ""))
            if bench[3]:
                benchmarks.add(values.name(bench[1]), THROUGHPUT, _scaled(bench[3], 1e6))
        line_before = text
    if not len(benchmarks):
        raise Refused(texts.RUST_NO_BENCHMARK.format(what=FORMAT))
    yield from benchmarks.cases()


def _metric(kind: str, unit: str) -> tuple[Metric, float]:
    """Return what a number in a unit measures, and the factor that converts it into the metric's own unit."""
    if kind == "time":
        factor = _NANOSECONDS.get(unit)
        return (LATENCY._replace(unit="ns"), factor) if factor else (LATENCY._replace(unit=unit), 1.0)
    for rate in _RATES:
        if unit.endswith(rate) and (prefix := unit.removesuffix(rate)) in _PREFIXES:
            return THROUGHPUT._replace(unit=rate), _PREFIXES[prefix]
    return THROUGHPUT._replace(unit=unit), 1.0


def _scaled(text: str, factor: float) -> float | None:
    number = values.number(text)
    return None if number is None else number * factor
