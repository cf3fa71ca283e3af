"""The report of a benchmark, `benchmark.json`: what tests measured at two commits on one device. No I/O.

The agent writes it, and the bot reads it: each measurement with the ratio of head to base, and between which bounds it
is with 95 % confidence (`nightjar_formats.pairs`).

    {"schema": 1, "precision": 0.02, "blocks": 12, "seconds": 431.5, "end": "precise", "unlisted": 0,
     "failures": {"base": [], "head": ["tests/test_conv.py::test_large"]},
     "without_ratio": ["undelegated_nodes of tests/test_conv.py::test_conv"],
     "measurements": [{"test": "tests/test_conv.py::test_conv", "name": "latency", "unit": "ms", "better": "lower",
                       "base": 4.11, "head": 4.32, "ratio": 1.051, "low": 1.038, "high": 1.064}]}
"""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from nightjar_formats.limits import MAX_MEASUREMENT_NAME, MAX_NAME, MAX_UNIT
from nightjar_formats.measurements import Better
from nightjar_formats.pairs import MOST_RATIO, Ratio
from nightjar_formats.refused import Refused, TooMuch
from nightjar_formats.runs import texts
from nightjar_formats.runs.few_tests import BASE, HEAD
from nightjar_formats.strict_json import read_json
from nightjar_formats.text_enum import TextEnum

FILE = "benchmark.json"
SCHEMA = 1
MAX_LISTED = 100
"""The most measurements of a report; those that differ most are listed."""
MAX_FAILURES = 20
"""The most failed tests of each side, and measurements without a ratio."""
MAX_REPORT_BYTES = 1 << 22
MAX_COUNT = 1_000_000
"""The most blocks, seconds, and unlisted measurements."""


class BenchmarkEnd(TextEnum):
    """Why a benchmark stopped."""

    PRECISE = "precise"
    """All intervals are as narrow as requested."""
    BUDGET = "budget"
    """The time is used up."""
    MOST_BLOCKS = "most blocks"


@dataclass(frozen=True)
class ComparedMeasurement:
    """What a test measured at both commits: the medians, and the ratio of head to base."""

    test: str
    name: str
    unit: str
    better: Better
    base: float
    head: float
    ratio: float
    low: float
    high: float

    @property
    def interval(self) -> Ratio:
        """The ratio with its bounds."""
        return Ratio(self.ratio, self.low, self.high)


@dataclass(frozen=True)
class BenchmarkReport:
    """The result of a benchmark: `blocks` of four runs, in `seconds`, and the tests that failed, by side.

    `unlisted` counts the measurements that the report leaves out. `without_ratio` names some that differ, but have no
    ratio: one side is zero or negative, or in another unit. Reports of older agents have none.
    """

    precision: float
    blocks: int
    seconds: float
    end: BenchmarkEnd
    measurements: Sequence[ComparedMeasurement] = ()
    failures: Mapping[str, Sequence[str]] = field(default_factory=dict)
    unlisted: int = 0
    without_ratio: Sequence[str] = ()

    @property
    def text(self) -> str:
        """The report as JSON."""
        return json.dumps({"schema": SCHEMA, **asdict(self)})


def read_report(content: bytes | str) -> BenchmarkReport:
    """Return the report that `BenchmarkReport.text` wrote. Raises Refused for anything else, and TooMuch."""
    if len(content) > MAX_REPORT_BYTES:
        raise TooMuch(texts.BENCHMARK_TOO_LARGE.format(name=FILE, most=MAX_REPORT_BYTES))
    try:
        document = read_json(content)
        _check_schema(document["schema"])
        return BenchmarkReport(
            precision=_within(document["precision"], 0, 1),
            blocks=int(_within(document["blocks"], 0, MAX_COUNT)),
            seconds=_within(document["seconds"], 0, MAX_COUNT),
            end=BenchmarkEnd(document["end"]),
            measurements=tuple(map(_measurement, document["measurements"][:MAX_LISTED])),
            failures={
                side: [_text(test, MAX_NAME) for test in document["failures"].get(side, ())[:MAX_FAILURES]]
                for side in (BASE, HEAD)
            },
            unlisted=int(_within(document["unlisted"], 0, MAX_COUNT)),
            without_ratio=[
                _text(name, MAX_NAME + 2 * MAX_MEASUREMENT_NAME)
                for name in document.get("without_ratio", ())[:MAX_FAILURES]
            ],
        )
    except (ValueError, KeyError, TypeError, AttributeError, OverflowError) as error:
        reason = f"{type(error).__name__} {error}"[:200]
        raise Refused(texts.BENCHMARK_UNREADABLE.format(name=FILE, reason=reason)) from None


def _check_schema(schema: object) -> None:
    if schema != SCHEMA:
        raise ValueError(f"schema {schema!s:.20}")


def _measurement(entry: Mapping[str, Any]) -> ComparedMeasurement:
    base, head = (_within(entry[name], math.ulp(0.0), sys.float_info.max) for name in ("base", "head"))
    low, ratio, high = (_within(entry[name], 1 / MOST_RATIO, MOST_RATIO) for name in ("low", "ratio", "high"))
    if not low <= ratio <= high:
        raise ValueError(texts.NOT_WITHIN.format(number=ratio, least=low, most=high))
    return ComparedMeasurement(
        _text(entry["test"], MAX_NAME),
        _text(entry["name"], MAX_MEASUREMENT_NAME),
        _text(entry["unit"], MAX_UNIT),
        Better(entry["better"]),
        base,
        head,
        ratio,
        low,
        high,
    )


def _within(value: object, least: float, most: float) -> float:
    number = float(value)  # type: ignore[arg-type]  # a TypeError is expected
    if not least <= number <= most:
        raise ValueError(texts.NOT_WITHIN.format(number=number, least=least, most=most))
    return number


def _text(value: object, most: int) -> str:
    """Return a value as text that UTF-8 can hold: JSON can contain half of a surrogate pair."""
    return str(value)[:most].encode("utf-8", "replace").decode()
