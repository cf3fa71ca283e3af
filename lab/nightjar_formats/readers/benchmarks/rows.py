"""Collect the numbers of benchmarks: a tool may repeat a benchmark, and each repetition is a sample."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from statistics import median
from typing import Any, BinaryIO, NamedTuple

from nightjar_formats.limits import MAX_RUN_MEASUREMENTS
from nightjar_formats.measurements import TOO_MANY_OF_RUN, Better, Measurement, thinned
from nightjar_formats.model import Case, Status
from nightjar_formats.readers import texts, values
from nightjar_formats.readers.json.stream import JsonReader, Shape
from nightjar_formats.readers.pytest.phases import split
from nightjar_formats.refused import Refused, TooMuch


class Metric(NamedTuple):
    """What a number of a benchmark is."""

    name: str
    unit: str = ""
    better: Better = Better.NONE


LATENCY = Metric("latency", "s", Better.LOWER)
CPU_TIME = Metric("cpu_time", "s", Better.LOWER)
PEAK_MEMORY = Metric("peak_memory", "B", Better.LOWER)
THROUGHPUT = Metric("throughput", "B/s", Better.HIGHER)


class Benchmarks:
    """The benchmarks of a file, by name. The value of a metric is the median of its numbers, or the one that is given.

    Raises TooMuch beyond MAX_RUN_MEASUREMENTS numbers.
    """

    def __init__(self) -> None:
        self._numbers: dict[str, dict[Metric, list[float]]] = {}
        self._medians: dict[tuple[str, Metric], float] = {}
        self._failures: dict[str, str] = {}
        self._count = 0

    def add(self, name: str, metric: Metric, *numbers: object, median: object = None) -> None:
        """Add numbers of a benchmark. Values that are no finite numbers are ignored.

        `median` is the median of all numbers, of which `numbers` are some or none. If the file repeats the benchmark,
        the numbers themselves decide.
        """
        metrics = self._numbers.setdefault(name, {})
        given_median = values.number(median)
        if metric in metrics:
            self._medians.pop((name, metric), None)
        elif given_median is not None and math.isfinite(given_median):
            self._medians[name, metric] = given_median
        for value in numbers or (median,):
            number = values.number(value)
            if number is not None and math.isfinite(number):
                metrics.setdefault(metric, []).append(number)
                self._count += 1
        if self._count > MAX_RUN_MEASUREMENTS:
            raise TooMuch(TOO_MANY_OF_RUN)

    def fail(self, name: str, message: object) -> None:
        """Note that a benchmark failed, and why."""
        self._numbers.setdefault(name, {})
        self._failures.setdefault(name, values.message(message))

    def __contains__(self, name: str) -> bool:
        return bool(self._numbers.get(name))

    def __len__(self) -> int:
        return len(self._numbers)

    def cases(self, *, are_nodeids: bool = False) -> Iterator[Case]:
        """Yield a case for each benchmark, in the order of the file; the names may be node IDs of pytest."""
        for name, metrics in self._numbers.items():
            # A number of the user may also be called "latency": the first of a name counts.
            first = {metric.name: metric for metric in reversed(metrics)}
            path, own_name = split(name) if are_nodeids else ("", name)
            yield Case(
                own_name,
                Status.FAILED if name in self._failures else Status.PASSED,
                path=path,
                nodeid=name if are_nodeids else "",
                message=self._failures.get(name, ""),
                measurements=tuple(
                    Measurement(
                        metric.name,
                        self._medians[name, metric] if (name, metric) in self._medians else median(numbers),
                        metric.unit,
                        metric.better,
                        samples_of(numbers),
                    )
                    for metric, numbers in metrics.items()
                    if first[metric.name] is metric
                ),
            )


def items_of(stream: BinaryIO, format_name: str, list_key: str, shape: Shape) -> Iterator[Mapping[str, Any]]:
    """Yield the items of the list `list_key` of a JSON object, within the limits of `shape`.

    Raises Refused for what is no JSON, and after the last item if the object has no such key.
    """
    reader, has_list = JsonReader(stream, format_name), False
    for key in reader.members():
        if key != list_key:
            reader.skip()
            continue
        has_list = True
        yield from map(values.mapping, reader.items(shape))
    reader.end()
    if not has_list:
        raise Refused(texts.NO_BENCHMARKS.format(what=format_name, member=list_key))


def samples_of(numbers: list[float]) -> tuple[float, ...]:
    """Return the samples of a measurement; none if there is only one number."""
    return thinned(numbers) if len(numbers) > 1 else ()
