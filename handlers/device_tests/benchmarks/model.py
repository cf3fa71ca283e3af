"""What a person asks for with `@ci benchmark`, and the job that it becomes. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from nightjar_formats.refused import Refused
from nightjar_formats.runs.benchmark import BenchmarkReport, read_report

from bot.config.types import seconds
from bot.core.patterns import Pattern
from handlers.device_tests.model import DeviceJob

BENCHMARK = "benchmark"
"""The purpose of such jobs."""
PRECISION, LEAST_PRECISION, MOST_PRECISION = 0.02, 0.005, 0.5
"""Half the width of an interval, as a share of the ratio: the default, and what people may ask for."""
ON = "on"
_DURATION = Pattern(r"[1-9][0-9]{0,4}[smhd]")


class BadOptions(Exception):
    """What follows the target is neither a precision nor a time limit."""


@dataclass(frozen=True, slots=True)
class BenchmarkWords:
    """The words of `@ci benchmark`: tests, the name of a target (empty: none), and how precise and long it may be.

    `seconds` is None unless the person named a time limit.
    """

    tests: tuple[str, ...]
    target: str
    precision: float = PRECISION
    seconds: float | None = None


def benchmark_words(words: Sequence[str]) -> BenchmarkWords:
    """Read the words after the command: `test_conv test_add on hexagon-v73 to 1% within 1h`. Raises `BadOptions`."""
    places = [place for place, word in enumerate(words) if word.casefold() == ON]
    if not places:
        return BenchmarkWords(tuple(words), "")
    tests, rest = tuple(words[: places[-1]]), words[places[-1] + 1 :]
    if not rest:
        return BenchmarkWords(tests, "")
    target, *options = rest
    precision, limit = PRECISION, None
    for name, value in zip(options[::2], options[1::2], strict=False):
        match name.casefold():
            case "to":
                precision = _precision(value)
            case "within" if _DURATION.fullmatch(value):
                limit = seconds(value)
            case _:
                raise BadOptions
    if len(options) % 2:
        raise BadOptions
    return BenchmarkWords(tests, target, precision, limit)


def _precision(text: str) -> float:
    """Return the share that a text such as `1%` or `±0.5` means. Raises `BadOptions`."""
    try:
        share = float(text.strip("±%")) / 100
    except ValueError:
        raise BadOptions from None
    if not LEAST_PRECISION <= share <= MOST_PRECISION:
        raise BadOptions
    return share


def report_of(job: DeviceJob) -> BenchmarkReport | None:
    """Return the report of a benchmark that has ended; None if there is none."""
    try:
        return read_report(job.outcome) if job.purpose == BENCHMARK and job.outcome else None
    except Refused:
        return None
