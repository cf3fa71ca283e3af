"""Readers of the formats that labs send, one module for each format: bytes in, one `Case` after another out."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import BinaryIO

from nightjar_formats.limits import MAX_CASES, MAX_RUN_MEASUREMENTS
from nightjar_formats.measurements import TOO_MANY_OF_RUN, check_measurements, count_numbers
from nightjar_formats.model import Case
from nightjar_formats.readers import ctrf, executorch, go_test, junit, libtest, texts
from nightjar_formats.readers.benchmarks import (
    asv,
    cargo_bench,
    criterion,
    go,
    google,
    hyperfine,
    pytest_benchmark,
    twister,
)
from nightjar_formats.readers.decoding.inflate import inflated
from nightjar_formats.readers.decoding.utf_8 import repaired
from nightjar_formats.readers.decoding.wide_text import as_utf_8
from nightjar_formats.readers.dotnet import nunit3, trx, xunit_net
from nightjar_formats.readers.json.stream import UTF8_BOM, first_keys
from nightjar_formats.readers.junit.case_runs import CaseOrRun, CaseRun, one_by_one
from nightjar_formats.readers.other_tools import refusal_of, refusal_of_page
from nightjar_formats.readers.pytest import json_report, reportlog
from nightjar_formats.readers.repairs import Repairs
from nightjar_formats.readers.tap import ktap, tap
from nightjar_formats.readers.xml.text import begins_xml
from nightjar_formats.readers.xml.walk import root_of
from nightjar_formats.refused import Refused, TooMuch
from nightjar_formats.terminal import quoted_text

Reader = Callable[[BinaryIO, Repairs], Iterator[CaseOrRun]]
"""Reads the cases of a file, and records each repair that the file needed."""


def _of_bytes(reader: Callable[[BinaryIO], Iterator[Case]]) -> Reader:
    """Return a reader that gets bytes that are already repaired, for a `reader` that repairs nothing itself."""
    return lambda stream, repairs: reader(repaired(stream, repairs))


FORMATS: Mapping[str, Reader] = {
    "junit": junit.read_runs,
    "pytest-reportlog": reportlog.read,
    "pytest-json-report": json_report.read,
    "executorch-csv": executorch.read,
    "ctrf": ctrf.read,
    "go-test-json": _of_bytes(go_test.read),
    "libtest-json": _of_bytes(libtest.read),
    "xunit-net": xunit_net.read,
    "nunit3": nunit3.read,
    "trx": trx.read,
    "tap": _of_bytes(tap.read),
    "ktap": _of_bytes(ktap.read),
    pytest_benchmark.FORMAT: _of_bytes(pytest_benchmark.read),
    google.FORMAT: _of_bytes(google.read),
    hyperfine.FORMAT: _of_bytes(hyperfine.read),
    go.FORMAT: _of_bytes(go.read),
    asv.FORMAT: _of_bytes(asv.read),
    criterion.FORMAT: _of_bytes(criterion.read),
    cargo_bench.FORMAT: _of_bytes(cargo_bench.read),
    twister.FORMAT: _of_bytes(twister.read),
}
"""The reader of each format, by the format's name in manifests."""
ALIASES = {"xunit": "xunit-net", "nunit": "nunit3", "gotest": "go-test-json", "libtest": "libtest-json"}
"""Further names of formats in manifests, each with the format's own name."""
KNOWN = ", ".join(FORMATS)
HEAD_BYTES = 1 << 14
"""Bytes at the start of a file that `guess` gets."""


_ROOTS = {
    "assemblies": "xunit-net",
    "assembly": "xunit-net",
    "test-run": "nunit3",
    "test-suite": "nunit3",
    "test-results": "nunit3",
    "TestRun": "trx",
}
"""The format for each root element of XML. A file with another root is read as JUnit, which may refuse it."""
_BENCHMARKS = (
    (pytest_benchmark.FORMAT, "machine_info", {"machine", "python_implementation"}),
    (google.FORMAT, "context", {"num_cpus", "executable"}),
    (asv.FORMAT, "", {"commit_hash", "env_name", "params"}),
    (twister.FORMAT, "environment", {"os", "zephyr_version"}),
)
"""For each format of benchmarks, the name of an object at the beginning of the file, and members that it has."""
_HYPERFINE = b'"results": ['
_JSON_REPORT_KEYS = frozenset({"created", "exitcode", "root", "collectors", "tests"})


def read(stream: BinaryIO, name: str, format: str | None = None, repairs: Repairs | None = None) -> Iterator[Case]:
    """Read the cases of a file, one by one, as `read_runs` does."""
    return one_by_one(read_runs(stream, name, format, repairs))


def read_runs(
    stream: BinaryIO, name: str, format: str | None = None, repairs: Repairs | None = None
) -> Iterator[CaseOrRun]:
    """Read the cases of a file, and inflate it if it is gzip or zstd. Without a `format`, guess it from the content.

    A reader may yield several simple cases together, as a `CaseRun`. `repairs` collects what had to be repaired. Raises
    Refused, with `name` in the text, for a file that cannot be read, and TooMuch beyond a limit; no content raises
    anything else.
    """
    if format is not None:
        format = format_named(format, name)
    opened, repairs = inflated(stream, name), repairs or Repairs()
    try:
        opened = as_utf_8(opened, repairs)
        reader = FORMATS[format or guess(opened.peek(HEAD_BYTES)[:HEAD_BYTES])]
        yield from _at_most(MAX_CASES, reader(opened, repairs), name)
    except Refused as refused:
        # The texts of `inflated` begin with the name already.
        if str(refused).startswith(name):
            raise
        raise type(refused)(f"{name}: {refused}") from refused


def format_named(format: str, name: str) -> str:
    """Return the own name of a format. Raises Refused, with the `name` of the file in the text, for an unknown one."""
    own_name = ALIASES.get(format, format)
    if own_name not in FORMATS:
        raise Refused(texts.UNKNOWN_FORMAT.format(name=name, format=quoted_text(format), known=KNOWN))
    return own_name


def _at_most(most: int, cases: Iterator[CaseOrRun], name: str) -> Iterator[CaseOrRun]:
    remaining, measured = most, 0
    for case_or_run in cases:
        if type(case_or_run) is CaseRun:
            remaining -= len(case_or_run.names)
        else:
            remaining -= 1
            if measurements := case_or_run.measurements:  # type: ignore[union-attr]  # no run
                check_measurements(case_or_run.nodeid or case_or_run.name, measurements)  # type: ignore[union-attr]
                measured += count_numbers(measurements)
                if measured > MAX_RUN_MEASUREMENTS:
                    raise TooMuch(TOO_MANY_OF_RUN)
        if remaining < 0:
            raise TooMuch(texts.TOO_MANY_CASES.format(name=name))
        yield case_or_run


def format_of(stream: BinaryIO, name: str) -> str:
    """Return the format of a file by its content. Raises Refused, as `inflated` and `guess` do."""
    return guess(as_utf_8(inflated(stream, name), Repairs()).peek(HEAD_BYTES)[:HEAD_BYTES])


def guess(head: bytes) -> str:
    """Return the format of a file that begins with `head`, in UTF-8; the name of the file does not matter.

    Raises Refused if it is none of them: with the switch of the tool that wrote it, or with a list of the formats.
    """
    text = head.removeprefix(UTF8_BOM).lstrip()
    if refusal := refusal_of_page(text):
        raise Refused(refusal)
    if text.startswith(b"<") and not text[1:2].isdigit():  # a line of the kernel's log begins with <6>
        return _ROOTS.get(root_of(head), "junit")
    if text.startswith(b"{"):
        keys = first_keys(text)
        if "$report_type" in keys[""]:
            return "pytest-reportlog"
        if "reportFormat" in keys[""] or keys["results"] & {"tool", "summary", "tests"}:
            return "ctrf"
        if len(_JSON_REPORT_KEYS & keys[""]) > 1:
            return "pytest-json-report"
        for format, inside, members in _BENCHMARKS:
            if members <= keys[inside]:
                return format
        if text[1:40].lstrip().startswith(_HYPERFINE) and b'"command":' in text[:100]:
            return hyperfine.FORMAT
    if format := _of_events(text):
        return format
    first_line = text.partition(b"\n")[0].decode("utf-8", "replace")
    if set(executorch.REQUIRED) <= {column.strip().strip('"') for column in first_line.split(",")}:
        return "executorch-csv"
    if format := _of_lines(text):
        return format
    if begins_xml(head):
        return _ROOTS.get(root_of(head), "junit")
    if refusal := refusal_of(text):
        raise Refused(refusal)
    raise Refused(texts.UNKNOWN_CONTENT.format(known=KNOWN, head=quoted_text(head[:40].decode(errors="replace"))))


def _of_events(head: bytes) -> str:
    """Return the format of JSON lines from the first line that is an event, after any lines of a log; "" for none."""
    for line in head.splitlines():
        if line.startswith(b"{"):
            keys = first_keys(line)[""]
            if "Action" in keys and keys <= go_test.KEYS:
                return go_test.FORMAT
            if {"type", "event"} <= keys:
                return libtest.FORMAT
            if {"reason", "report_directory"} <= keys and b'"benchmark-complete"' in line[:200]:
                return criterion.FORMAT
    return ""


def _of_lines(head: bytes) -> str:
    """Return the format of text that the first lines of a file have; "" if they have none."""
    text = head.decode("utf-8", "replace")
    if go.is_go_bench(text):
        return go.FORMAT
    if cargo_bench.is_cargo_bench(text):
        return cargo_bench.FORMAT
    lines = text.splitlines()
    if any(map(ktap.is_ktap, lines)):
        return ktap.FORMAT
    return tap.FORMAT if any(map(tap.is_tap, lines)) else ""
