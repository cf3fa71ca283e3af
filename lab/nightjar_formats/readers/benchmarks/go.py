r"""The text of `go test -bench`: a line for each run of a benchmark, with pairs of a value and a unit.

    goos: linux
    pkg: example.com/octocat/kernels
    BenchmarkMatmul-2   	     100	        19.43 ns/op	3293.88 MB/s	       0 B/op	       0 allocs/op
    ok  	example.com/octocat/kernels	0.255s

With `-count`, each run is a sample. The number behind the name, GOMAXPROCS, is not a part of it: the machine decides
it. https://go.googlesource.com/proposal/+/master/design/14313-benchmark-format.md
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import BinaryIO

from nightjar_formats.limits import MAX_ROW_BYTES
from nightjar_formats.measurements import Better, Measurement, named
from nightjar_formats.model import Case
from nightjar_formats.patterns import Pattern
from nightjar_formats.readers import texts, values
from nightjar_formats.readers.benchmarks.rows import THROUGHPUT, Benchmarks, Metric
from nightjar_formats.refused import Refused

FORMAT = "go-bench"
PREFIX = "Benchmark"
_RUN = Pattern(r"^(Benchmark\S*)[ \t]+[0-9]+[ \t]+([0-9.eE+-]+[ \t]+\S.*)$")
_PROCESSES = Pattern(r"-[0-9]+$")
_FAILED = Pattern(r"^--- FAIL: (Benchmark\S*)")
METRICS = {
    "ns/op": Metric("latency", "ns", Better.LOWER),
    "MB/s": THROUGHPUT._replace(unit="MB/s"),
    "B/op": Metric("memory", "B", Better.LOWER),
    "allocs/op": Metric("allocations", "count", Better.LOWER),
}


def is_go_bench(text: str) -> bool:
    """Say whether a text has a line of a benchmark of Go."""
    return any(_RUN.match(line) is not None and "/op" in line for line in text.splitlines())


def read(stream: BinaryIO) -> Iterator[Case]:
    """Read the benchmarks. Raises Refused if there is none."""
    benchmarks, package = Benchmarks(), ""
    while line := stream.readline(MAX_ROW_BYTES):
        text = line.decode("utf-8", "replace").rstrip()
        if text.startswith("pkg: "):
            package = values.name(text[5:].strip())
        elif (run := _RUN.match(text)) is not None:
            _add(benchmarks, _full_name(package, run[1]), run[2])
        elif (failed := _FAILED.match(text)) is not None:
            benchmarks.fail(_full_name(package, failed[1]), texts.GO_BENCHMARK_FAILED)
    if not len(benchmarks):
        raise Refused(texts.GO_NO_BENCHMARK.format(what=FORMAT))
    yield from benchmarks.cases(are_nodeids=True)


def measurements_in(output: str) -> tuple[Measurement, ...]:
    """Return the measurements in the output of one benchmark of `go test -json`."""
    benchmarks = Benchmarks()
    for line in output.splitlines():
        if line.startswith(PREFIX) and (run := _RUN.match(line)) is not None:
            _add(benchmarks, PREFIX, run[2])
    return tuple(measurement for case in benchmarks.cases() for measurement in case.measurements)


def _full_name(package: str, name: str) -> str:
    own_name = _PROCESSES.sub("", values.name(name))
    return f"{package}::{own_name}" if package else own_name


def _add(benchmarks: Benchmarks, name: str, pairs: str) -> None:
    words = pairs.split()
    for value, unit in zip(words[::2], words[1::2]):
        benchmarks.add(name, METRICS.get(unit) or Metric(named(unit)), value)
