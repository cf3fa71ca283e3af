"""Marks in the text of a file: exactly one line each, and never anything else."""

from __future__ import annotations

import pytest

from bot.core.line_edits import LineEdits
from handlers.slow_tests.slow_set import texts
from handlers.slow_tests.slow_set.source import FunctionSource, edit_functions, read_functions

FILE = b'''\
"""Tests of \xc3\xa9lementwise operators."""
import pytest
import tvm.testing

TEXT = """
def test_text():
"""


@pytest.mark.parametrize(
    "size", [1, 2]
)
def test_conv(size): pass


class TestOps:
    class TestInner:
\tasync def test_add(self):
\t    assert "\\d" == r"\\d"

    @tvm.testing.slow
    @pytest.mark.xfail
    def test_mul(self): ...

    @pytest.mark.slow  # takes an hour
    def test_div(self): ...

    @(
        pytest.mark.slow)
    def test_mod(self): ...


@pytest.mark.slow
class TestSlow:
    def test_all(self): ...


def test_twice(): ...
def test_twice(): ...
'''.replace(b"\tasync", b"        async").replace(b"\t    ", b"            ")
FREE, SLOW = FunctionSource(is_slow=False), FunctionSource(is_slow=True)
STATES = {
    "test_conv": FREE,
    "TestOps::TestInner::test_add": FREE,
    "TestOps::test_mul": SLOW,
    "TestOps::test_div": FunctionSource(is_slow=True, problem=texts.MARK_NOT_ALONE),
    "TestOps::test_mod": FunctionSource(is_slow=True, problem=texts.MARK_NOT_ALONE),
    "TestSlow::test_all": FunctionSource(is_slow=True, problem=texts.MARKED_ABOVE),
}


def lines_changed(old_raw: bytes, new_raw: bytes) -> tuple[list[bytes], list[bytes]]:
    """Return the lines that were added and removed, each at one place only."""
    old, new = old_raw.split(b"\n"), new_raw.split(b"\n")
    added, removed = list[bytes](), list[bytes]()
    while old or new:
        if old and new and old[0] == new[0]:
            old.pop(0), new.pop(0)
        elif new and b"slow" in new[0]:
            added.append(new.pop(0))
        else:
            removed.append(old.pop(0))
    return added, removed


@pytest.mark.parametrize("line_end", [b"\n", b"\r\n"], ids=["lf", "crlf"])
def test_a_mark_is_one_line_and_the_rest_stays_the_same_program(line_end: bytes) -> None:
    raw = FILE.replace(b"\n", line_end)
    assert read_functions(raw, [*STATES, "test_twice", "test_text", "missing"]) == STATES
    edits = edit_functions(
        "tests/test_ops.py", raw, ["test_conv", "TestOps::TestInner::test_add"], ["TestOps::test_mul"]
    )
    assert edits is not None
    edited = edits.edited(raw)
    mark, end = b"@pytest.mark.slow", line_end.removesuffix(b"\n")
    assert lines_changed(raw, edited) == ([mark + end, b"        " + mark + end], [b"    @tvm.testing.slow" + end])
    # The new mark stands above the other decorators, at the depth of its function.
    assert line_end.join([b"", b"@pytest.mark.slow", b"@pytest.mark.parametrize("]) in edited
    changed = read_functions(edited, STATES)
    assert {name for name in STATES if changed[name] != STATES[name]} == {
        "test_conv",
        "TestOps::TestInner::test_add",
        "TestOps::test_mul",
    }
    back = edit_functions("tests/test_ops.py", edited, [], ["test_conv", "TestOps::TestInner::test_add"])
    assert back is not None
    assert lines_changed(raw, back.edited(edited)) == ([], [b"    @tvm.testing.slow" + end])


@pytest.mark.parametrize(
    "raw",
    [
        b"def test_a(:\n",
        b"\xff\xfe",
        b"# coding: latin-1\ndef test_a(): '\xe9'\n",
        b"def test_a(): '\0'\n",
        b"import pytest\rdef test_a(): ...\r",
        b"import pytest\n\fdef test_a(): ...\n",
        b"(" * 5000 + b")" * 5000,
        b"def test_a(): " + b"-" * 20_000 + b"1\n",
        b"",
    ],
    ids=["syntax", "bytes", "coding", "null", "old line ends", "form feed", "nested", "deep", "empty"],
)
def test_a_file_that_cannot_be_read_is_left_alone(raw: bytes) -> None:
    assert read_functions(raw, ["test_a"]) == {}
    assert edit_functions("a.py", raw, ["test_a"], []) is None


def test_what_is_not_safe_is_left_by_hand() -> None:
    no_import = b"from pytest import mark\n@mark.parametrize('a', [1])\ndef test_a(a): ...\n"
    assert read_functions(no_import, ["test_a"])["test_a"].problem == texts.NO_IMPORT
    whole_file = b"import pytest\npytestmark = [pytest.mark.slow]\ndef test_a(): ...\n"
    assert read_functions(whole_file, ["test_a"])["test_a"].problem == texts.MARKED_ABOVE
    odd = b"import pytest\n@\\\npytest.mark.xfail\ndef test_a(): ...\n"
    assert read_functions(odd, ["test_a"])["test_a"].problem == texts.NOT_ALONE
    assert edit_functions("a.py", odd, ["test_a"], []) is None, "the edited file would be another program, or none"
    with pytest.raises(ValueError, match=r"a\.py"):
        LineEdits("a.py", removed=(9,)).edited(b"one\n")
