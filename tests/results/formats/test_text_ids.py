"""The IDs of tests in text formats: no outcome, time, order, prefix of a log or group of workers is part of them."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import NamedTuple

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from nightjar_formats.model import BAD
from nightjar_formats.readers.pytest.phases import without_group
from nightjar_formats.readers.tap.log_prefixes import bare_line
from nightjar_formats.runs.identity import Resolver

from tests.results.formats.samples import cases_of


class Ended(NamedTuple):
    """One test in one run."""

    name: str
    is_ok: bool
    milliseconds: int
    reason: str

    @property
    def seconds(self) -> str:
        return f"{self.milliseconds / 1000:.2f}"

    @property
    def word(self) -> str:
        return "ok" if self.is_ok else "not ok"


def numbered(tests: Sequence[Ended], line: Callable[[Ended, int], str]) -> str:
    return "".join(line(test, number) + "\n" for number, test in enumerate(tests, 1))


def tap(line: Callable[[Ended, int], str], version: str = "") -> Callable[[Sequence[Ended]], str]:
    return lambda tests: f"{version}1..{len(tests)}\n{numbered(tests, line)}"


def of_prove(tests: Sequence[Ended]) -> str:
    stamp = f"[05:10:{tests[0].milliseconds % 60:02}]"
    ok = f"ok {tests[0].milliseconds:8} ms ( 0.00 usr  0.00 sys +  0.04 cusr  0.01 csys =  0.05 CPU)\n"
    end = (
        ok
        if all(test.is_ok for test in tests)
        else "Dubious, test returned 1 (wstat 256, 0x100)\nFailed 1/2 subtests \n"
    )
    return f"{stamp} t/a.t .. \n{tap(plain)(tests)}{end}{stamp}\nResult: PASS\n"


def of_kunit(tests: Sequence[Ended]) -> str:
    stamp = f"[    0.{tests[0].milliseconds:06}] "
    inner = numbered(tests, lambda test, number: f"{stamp}    {test.word} {number} {test.name}")
    return f"{stamp}KTAP version 1\n{stamp}1..1\n{stamp}    # Subtest: a\n{inner}{stamp}ok 1 a\n"


def of_kselftest(tests: Sequence[Ended]) -> str:
    inner = numbered(tests, lambda test, number: f"# {test.word} {number} {test.name}")
    return f"TAP version 13\n1..1\n# selftests: a: b\n{inner}not ok 1 selftests: a: b # exit={tests[0].milliseconds}\n"


def plain(test: Ended, number: int) -> str:
    return f"{test.word} {number} - {test.name}"


def of_check(test: Ended, number: int) -> str:
    return f"{test.word} {number} - tests/a.c:Core:{test.name}: {'Passed' if test.is_ok else test.reason}"


def of_glib(test: Ended, number: int) -> str:
    return f"{test.word} {number} /a/{test.name}{'' if test.is_ok else f' - ERROR:../a.c:5:f: {test.reason}'}"


def of_phpunit(test: Ended, number: int) -> str:
    return f"{test.word} {number} - {'' if test.is_ok else 'Failure: '}ATest::{test.name}"


def of_criterion(test: Ended, _number: int) -> str:
    has_crashed = not test.is_ok and test.milliseconds % 3 == 0
    return f"{test.word} - a::{test.name} {'unexpected signal after a.c:3' if has_crashed else f' ({test.seconds}s)'}"


WRITERS: dict[str, Callable[[Sequence[Ended]], str]] = {
    "Test::More": tap(plain),
    "bats": tap(lambda test, number: f"{test.word} {number} {test.name} in {test.milliseconds}ms"),
    "node-tap": tap(lambda test, number: f"{plain(test, number)} # time={test.milliseconds}ms", "TAP version 14\n"),
    "a comment": tap(lambda test, number: f"{plain(test, number)} # {test.reason}", "TAP version 13\n"),
    "a duration": tap(lambda test, number: f"{plain(test, number)} # {test.milliseconds / 7:.3f} ms"),
    "elapsed": tap(lambda test, number: f"{plain(test, number)} [Fri Nov 20 02:48:24 2026, {test.seconds} elapsed]"),
    "Check": tap(of_check),
    "GLib": tap(of_glib),
    "PHPUnit": tap(of_phpunit),
    "Criterion": tap(of_criterion, "TAP version 13\n# Criterion v2.4.2\n"),
    "prove --timer": of_prove,
    "KUnit": of_kunit,
    "kselftest": of_kselftest,
}  # fmt: skip
"""The reports of tools, each of a list of tests."""

names = st.lists(st.from_regex(r"[a-z_]{3,12}", fullmatch=True), min_size=1, max_size=6, unique=True)
reasons = st.from_regex(r"[A-Za-z][a-z =0-9.:()]{0,20}[a-z]", fullmatch=True)


@st.composite
def two_runs(draw: st.DrawFn) -> tuple[list[Ended], list[Ended]]:
    tests = draw(names)
    first, second = (
        [Ended(test, draw(st.booleans()), draw(st.integers(1, 99_999)), draw(reasons)) for test in tests]
        for _ in range(2)
    )
    return first, draw(st.permutations(second))


def ids(report: str | bytes) -> set[str]:
    resolve = Resolver(["tests/a.c", "t/a.t"]).resolve
    return {resolve(case)[0] for case in cases_of(report)} - {"t/a.t::(exit status)"}


@pytest.mark.parametrize("tool", WRITERS)
@given(runs=two_runs())
def test_an_id_depends_on_neither_outcome_nor_time_nor_order(tool: str, runs: tuple[list[Ended], list[Ended]]) -> None:
    first, second = (WRITERS[tool](run) for run in runs)
    assert ids(first) == ids(second)
    assert len(ids(first)) == len(runs[0]) + (tool in ("KUnit", "kselftest"))
    assert len([case for case in cases_of(first) if case.status in BAD]) >= sum(not test.is_ok for test in runs[0])


PREFIXES = [
    "[    0.060000] ", "<6>[    0.060000] ", "[12345.123456][   T77] ", "[    0.060000 <    0.000010>] ",
    "[  +0.000010] ", "[Fri Nov 20 02:48:24 2026] ", "[Nov20 02:48] ", "kern  :info  : [    0.060000] ",
    "Nov 20 02:48:24 ", "Nov 20 02:48:24 board-7 kernel: [    0.060000] ", "2026-11-20T02:48:24.1234567Z ",
    "2026-11-20T02:48:24,123456+00:00 ", "[2026-11-20 02:48:24.123] ", "[02:48:24.123] ", "\r",
    "2026-11-20T02:48:24Z [    0.060000] ",
]  # fmt: skip
"""What consoles and logs write before a line."""


@pytest.mark.parametrize("prefix", PREFIXES)
@pytest.mark.parametrize("end", ["\n", "\r\n", "\n\r"])
def test_the_prefix_of_a_log_changes_nothing(prefix: str, end: str) -> None:
    lines = ["1..2", "    # Subtest: a", "    1..1", "    not ok 1 - b", "    # c failed", "not ok 1 - a", "ok 2 - d"]
    read = [
        (case.nodeid, case.status, case.message) for case in cases_of("".join(f"{line}\n" for line in lines), "tap")
    ]
    assert [name for name, _, _ in read] == ["a::b", "a", "d"]
    logged = "".join(f"{prefix}{line}{end}" for line in lines)
    assert [(case.nodeid, case.status, case.message) for case in cases_of(logged, "tap")] == read
    ktap = cases_of("".join(f"{prefix}{line}{end}" for line in ["KTAP version 1", *lines]))
    assert [case.nodeid for case in ktap] == ["a::b", "a", "d"]


@pytest.mark.parametrize("tabs", ["\t", "    \t", "\t\t"])
def test_tabs_indent_as_spaces_do(tabs: str) -> None:
    for prefix in ("", "[    0.060000] "):
        lines = ["KTAP version 1", f"{tabs}# Subtest: a", f"{tabs}ok 1 b", f"{tabs}ok 2 c", "ok 1 a"]
        report = "".join(f"{prefix}{line}\n" for line in lines)
        assert [case.nodeid for case in cases_of(report, "ktap")] == ["a::b", "a::c", "a"]
    report = f"1..1\n# Subtest: a\n{tabs}ok 1 - b\nok 1 - a\n"
    assert [case.nodeid for case in cases_of(report)] == ["a::b", "a"]


@given(st.text(st.characters(exclude_characters="\r\n\ufeff\t"), max_size=40))
@example("[12] of 20")
@example("2026-11-20 is a day")
@example("Nov 20")
def test_a_line_without_a_prefix_stays_as_it_is(line: str) -> None:
    assert bare_line(f"ok 1 - {line}\r\n") == f"ok 1 - {line}"
    assert line.endswith(bare_line(line))


@pytest.mark.parametrize(
    "nodeid",
    ["tests/test_a.py::test_b", "tests/test_a.py::C::test_b[a@b]", "tests/test_a.py::test_b[a]]", "a@b.txt::c@d"],
)
@given(group=st.from_regex(r"[^\]]{1,10}", fullmatch=True))
def test_a_group_of_xdist_is_no_part_of_an_id(nodeid: str, group: str) -> None:
    assert without_group(nodeid) == nodeid
    if nodeid.startswith("tests/"):
        assert without_group(f"{nodeid}@{group}") == nodeid


def test_a_group_of_xdist_is_no_part_of_an_id_in_any_format() -> None:
    nodeid = "tests/test_a.py::test_b[c]"
    entry = {"nodeid": f"{nodeid}@gpu0", "outcome": "passed", "when": "call", "duration": 1}
    phases = [{"$report_type": "TestReport", **entry, "when": phase} for phase in ("setup", "call", "teardown")]
    log = "\n".join(map(json.dumps, [*phases, {"$report_type": "SessionFinish", "exitstatus": 0}]))
    assert [case.nodeid for case in cases_of(log)] == [nodeid]
    report = {"created": 1, "root": "/", "exitcode": 0, "tests": [{**entry, "call": {"outcome": "passed"}}]}
    assert [case.nodeid for case in cases_of(json.dumps(report))] == [nodeid]
    test = {"name": f"{nodeid}@gpu0", "status": "passed", "filePath": "tests/test_a.py"}
    ctrf = {"reportFormat": "CTRF", "results": {"tests": [test]}}
    assert [case.nodeid for case in cases_of(json.dumps(ctrf))] == [nodeid]
