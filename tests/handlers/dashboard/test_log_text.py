"""Read a log that anybody may have written: its pages, and the lines that name failing tests."""

from __future__ import annotations

import gzip
import io

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from handlers.dashboard.run.log_text import (
    LONGEST_LINE,
    MOST_BYTES,
    MOST_OF_TEST,
    MOST_STEPS,
    PAGE_LINES,
    READ_BYTES,
    LogPage,
    read_log,
)


def log(content: bytes, *tests: str, name: str = "log.txt", line: int = 1, test: str = "") -> LogPage:
    return read_log([io.BytesIO(content)], name, tests, line, test)


ADD, ADD_LLVM = "tests/test_ops.py::test_add", "tests/test_ops.py::test_add[llvm -mcpu=x]"
OTHER_ADD, METHOD, GTEST = "tests/test_more.py::test_add", "tests/test_ops.py::TestPool::test_max", "Suite.Adds/1"


@pytest.mark.parametrize(
    ("line", "tests"),
    [
        ("FAILED tests/test_ops.py::test_add - AssertionError", [ADD]),
        ("FAILED tests/test_more.py::test_add", [OTHER_ADD]),
        ("____ test_add ____", [OTHER_ADD, ADD]),
        ("____ test_add[llvm -mcpu=x] ____", [ADD_LLVM]),
        ("____ test_add[cuda] ____", []),
        ("test_add_many and my_test_add", []),
        ("test_address, then test_add.", [OTHER_ADD, ADD]),
        ("____ TestPool.test_max ____", [METHOD]),
        ("[  FAILED  ] Suite.Adds/1 (3 ms)", [GTEST]),
        ("[  FAILED  ] Suite.Adds/10 (3 ms)", []),
        ("[  FAILED  ] Suite.Adds (3 ms)", []),
        ("\x1b[31mFAILED\x1b[0m tests/test_ops.py::\x1b[1mtest_add\x1b[0m", [ADD]),
    ],
)
def test_a_line_names_a_test_and_not_one_whose_name_is_longer(line: str, tests: list[str]) -> None:
    text = log(f"building\n{line}\n".encode(), ADD, ADD_LLVM, OTHER_ADD, METHOD, GTEST)
    assert [mention.test for mention in text.mentions] == tests
    assert {mention.line for mention in text.mentions} <= {2}
    assert text.lines[0] == "building"
    assert "\x1b" not in text.lines[1]


def test_pages_and_the_page_of_a_test() -> None:
    lines = [f"line {number}" for number in range(1, 2501)]
    lines[2100] = "FAILED test_add"
    content = "\r\n".join(lines).encode()
    for line, first, count in ((1, 1, 1000), (1000, 1, 1000), (1001, 1001, 1000), (2500, 2001, 500), (2501, 1, 1000)):
        text = log(content, line=line)
        assert (text.first_line, len(text.lines), text.total_lines) == (first, count, 2500)
        assert text.lines[0] == f"line {first}"
    assert log(content, ADD, test=ADD).first_line == 2001
    assert log(content, ADD, test=METHOD, line=1001).first_line == 1001
    for line in (-1, 0, 10**18):
        assert log(content, line=line).first_line == 1
    for packed, name in ((gzip.compress(content), "log.txt.gz"), (content.decode().encode("utf-16"), "log.txt")):
        assert log(packed, ADD, name=name, test=ADD).lines == lines[2000:]
    assert log(b"") == LogPage([], 1, 0, [], "")


def test_lines_and_names_at_the_borders_of_what_is_read_at_once() -> None:
    # Pairs of bytes from an odd place on: a border of READ_BYTES is inside of a character, and inside of a name.
    for begin in range(4):
        lines = [
            "x" * begin,
            "ä" * READ_BYTES + " test_add",
            *(f"FAILED test_add ä {n:03}" for n in range(READ_BYTES // 8)),
        ]
        text = log("\n".join(lines).encode(), ADD, line=2000)
        assert (text.total_lines, text.first_line) == (len(lines), 1001)
        assert text.lines == lines[1000:2000]
        assert [mention.line for mention in text.mentions] == list(range(3, 3 + MOST_OF_TEST))


def test_what_can_be_read_of_a_damaged_or_endless_log_is_shown() -> None:
    cut = gzip.compress(b"".join(b"line %d\n" % number for number in range(100_000)))[:-1000]
    text = log(cut, name="log.txt.gz", line=1001)
    assert text.lines[0] == "line 1000"
    assert "cut off" in text.stop_reason
    bomb = log(gzip.compress(b"x\n" + bytes(300 << 20)), name="log.txt.gz")
    assert (bomb.lines[0], bomb.total_lines < 3, "times as large uncompressed" in bomb.stop_reason) == ("x", True, True)
    endless = log(b"y" * 100 + b"x" * (MOST_BYTES + 10) + b"\nlast\n", line=2)
    assert (endless.total_lines, len(endless.lines[0])) == (1, LONGEST_LINE + 1)
    assert "only the first 64 MiB" in endless.stop_reason


def test_the_work_is_bounded_whatever_a_log_repeats() -> None:
    assert len(log(b"test_add\n" * 5000, ADD).mentions) == MOST_OF_TEST
    # Each line is compared with the tests that share its rarest word, until there were MOST_STEPS comparisons.
    tests = [f"t.py::test_add[{'+' * number}]" for number in range(400)]
    lines = MOST_STEPS // len(tests)
    for extra_lines, mentions in ((0, 1), (1, 0)):
        content = b"test_add\n" * (lines - 1 + extra_lines) + b"test_add[+++]\n"
        assert len(log(content, *tests).mentions) == mentions
    # Parameters are told apart without a comparison of each line with each of them.
    lines_of_all = b"".join(b"FAILED t.py::test_add[1x%d]\n" % number for number in range(100_000))
    parameters = [f"t.py::test_add[1x{number}]" for number in range(0, 100_000, 500)]
    assert [mention.test for mention in log(lines_of_all, *parameters).mentions] == parameters


@settings(max_examples=30)
@given(st.binary(max_size=200), st.lists(st.text(max_size=10), max_size=3), st.integers(-5, 5))
def test_no_content_raises(content: bytes, tests: list[str], line: int) -> None:
    text = log(content, *tests, line=line, test=tests[0] if tests else "")
    assert len(text.lines) <= PAGE_LINES
    assert all(1 <= mention.line <= text.total_lines for mention in text.mentions)
