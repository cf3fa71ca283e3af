"""Zephyr's twister.json: its test cases, the memory that a suite uses, and what a suite recorded from its console.

A test case has the names that it has in twister's XML. What is measured of a whole suite belongs to the test case with
the suite's name, if there is one. What a suite recorded with `record` (lists of texts by the names in the regular
expression) becomes a test for each record that has a text, such as the name of the operation, with the numbers of the
record. With `merge`, a field has a list of the texts of all records; with `as_json`, a field is an object.
`json_report` and `xunit_testcase` in
https://github.com/zephyrproject-rtos/zephyr/blob/main/scripts/pylib/twister/twisterlib/reports.py, `parse_record` in
`harness.py` beside it.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Any, BinaryIO

from nightjar_formats.measurements import Better, named
from nightjar_formats.model import BAD, Case, Status
from nightjar_formats.readers import values
from nightjar_formats.readers.benchmarks.rows import LATENCY, Benchmarks, Metric, items_of
from nightjar_formats.readers.json.stream import ANY, ITEMS, SCALAR, Shape

FORMAT = "twister-json"
SUITE: Shape = {
    "name": SCALAR,
    "status": SCALAR,
    "reason": SCALAR,
    "log": SCALAR,
    "used_ram": SCALAR,
    "used_rom": SCALAR,
    "testcases": {
        ITEMS: {"identifier": SCALAR, "status": SCALAR, "reason": SCALAR, "log": SCALAR, "execution_time": SCALAR}
    },
    "recording": {ITEMS: {ANY: {ITEMS: {ANY: SCALAR}, ANY: SCALAR}}},
}
STATUS = {
    "passed": Status.PASSED,
    "failed": Status.FAILED,
    "blocked": Status.FAILED,
    "error": Status.ERRORED,
}
"""The status for each of twister's; the others are skips: skipped, filtered, not run (built only), and none."""
METRICS = {
    "used_ram": Metric("used_ram", "B", Better.LOWER),
    "used_rom": Metric("used_rom", "B", Better.LOWER),
    "cycles": Metric("cycles", "cycles", Better.LOWER),
    "nanoseconds": LATENCY._replace(unit="ns"),
    "ns": LATENCY._replace(unit="ns"),
    "us": LATENCY._replace(unit="us"),
    "ms": LATENCY._replace(unit="ms"),
}


def read(stream: BinaryIO) -> Iterator[Case]:
    """Read the cases of each suite, then what else it measured. Raises Refused if there is no list of suites."""
    for suite in items_of(stream, FORMAT, "testsuites", SUITE):
        measured = {case.name: case for case in _measured(suite)}
        for testcase in map(values.mapping, values.sequence(suite.get("testcases"))):
            if name := values.name(testcase.get("identifier")):
                case, of_suite = _case(name, testcase, suite), measured.pop(name, None)
                yield case._replace(measurements=of_suite.measurements) if of_suite else case
        yield from measured.values()


def _case(name: str, testcase: Mapping[str, Any], suite: Mapping[str, Any]) -> Case:
    status = STATUS.get(str(testcase.get("status")), Status.SKIPPED)
    return Case(
        name,
        status,
        classname=".".join(name.split(".")[:2]),
        seconds=values.seconds(testcase.get("execution_time")),
        message="" if status is Status.PASSED else values.message(testcase.get("reason") or suite.get("reason")),
        text=values.text(testcase.get("log") or suite.get("log")) if status in BAD else "",
    )


def _measured(suite: Mapping[str, Any]) -> Iterator[Case]:
    benchmarks, suite_name = Benchmarks(), values.name(suite.get("name"))
    if not suite_name:
        return
    for member in ("used_ram", "used_rom"):
        if suite.get(member) is not None:
            benchmarks.add(suite_name, METRICS[member], suite[member])
    for recorded in map(values.mapping, values.sequence(suite.get("recording"))):
        for record in map(_flat, _unmerged(recorded)):
            numbers = {field: number for field, text in record.items() if (number := _number(text)) is not None}
            labels = [text.strip() for field, text in record.items() if field not in numbers and isinstance(text, str)]
            label = ", ".join(filter(None, labels))
            for field, number in numbers.items():
                name = values.name(f"{suite_name}({label})" if label else suite_name)
                benchmarks.add(name, METRICS.get(field) or Metric(named(field)), number)
    yield from benchmarks.cases()


def _unmerged(record: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """Yield the records of a merged one. If its lists differ in length, each text stands alone: no label is known."""
    lists = {field: value for field, value in record.items() if isinstance(value, list)}
    if not lists:
        yield record
    elif len(set(map(len, lists.values()))) == 1:
        yield from ({**record, **dict(zip(lists, row))} for row in zip(*lists.values()))
    else:
        yield from ({field: value} for field, texts in lists.items() for value in texts)


def _flat(record: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return a record with the members of its objects in their place, named `FIELD.MEMBER`."""
    return {
        name: value
        for field, outer in record.items()
        for name, value in (
            ((f"{field}.{member}", inner) for member, inner in outer.items())
            if isinstance(outer, Mapping)
            else ((field, outer),)
        )
    }


def _number(value: object) -> float | None:
    number = values.number(value.strip() if isinstance(value, str) else value)
    return number if number is not None and math.isfinite(number) else None
