"""The cost of names chosen by a lab: twice as many need twice the work, not four times."""

from __future__ import annotations

from collections.abc import Callable
from io import BytesIO

import pytest
from nightjar_formats import zstd
from nightjar_formats.model import Case, SeenTest, Status, Trouble
from nightjar_formats.readers.decoding.inflate import inflated
from nightjar_formats.refused import TooMuch
from nightjar_formats.runs.identity import Resolver

from bot.results.compare.diff import compare
from bot.results.compare.searching import renames
from tests.steps import assert_linear

PASSED, FAILED = SeenTest(Status.PASSED), SeenTest(Status.FAILED)


def resolve_paths(size: int) -> Callable[[], object]:
    """Resolve cases whose files all have the same name, each in its own folder."""
    files = [f"tests/{index}/test_a.py" for index in range(size)]
    cases = [
        Case("test_x", Status.PASSED, path=f"lab/{index}/test_a.py", nodeid=f"lab/{index}/test_a.py::test_x")
        for index in range(size)
    ]
    return lambda: list(map(Resolver(files).resolve, cases))


def resolve_classes(size: int) -> Callable[[], object]:
    files = [f"tests/{index}/test_a.py" for index in range(size)]
    cases = [Case("test_x", Status.PASSED, classname=f"lab.{index}.test_a.TestA") for index in range(size)]
    return lambda: list(map(Resolver(files).resolve, cases))


def resolve_nested(size: int) -> Callable[[], object]:
    """Resolve paths with nested folders of the same name, so that many suffixes of a path match files."""
    files = ["/".join(["test"] * depth) + ".py" for depth in range(1, 60)]
    cases = [Case("test_x", Status.PASSED, classname=".".join(["test"] * 60 + [f"x{index}"])) for index in range(size)]
    return lambda: list(map(Resolver(files).resolve, cases))


def resolve_marks(size: int) -> Callable[[], object]:
    case = Case("test_x", Status.PASSED, classname="a" + "\u0301" * size + "\u0323" * size)
    return lambda: Resolver(["tests/test_a.py"]).resolve(case)


def resolve_climbs(size: int) -> Callable[[], object]:
    case = Case("test_x", Status.PASSED, path="../" * size + "a.py", nodeid="../" * size + "a.py::test_x")
    return lambda: Resolver(["tests/test_a.py"]).resolve(case)


def resolve_repeated(size: int) -> Callable[[], object]:
    case = Case("test_x", Status.PASSED, classname=".".join(["a"] * size), path="/".join(["a"] * size) + ".py")
    return lambda: Resolver(["tests/test_a.py"]).resolve(case)


def rename_by_tens(size: int) -> Callable[[], object]:
    """Move each ten tests to their own folder."""
    removed = [f"old/test_a.py::test_{index}" for index in range(10 * size)]
    new = [f"new/{index // 10}/test_a.py::test_{index}" for index in range(10 * size)]
    return lambda: renames(removed, new)


def reword_by_tens(size: int) -> Callable[[], object]:
    """Give each ten tests their own word."""
    removed = [f"test_a.py::test_w{index // 10}_{index}" for index in range(10 * size)]
    new = [f"test_a.py::test_v{index // 10}_{index}" for index in range(10 * size)]
    return lambda: renames(removed, new)


def reword_long(size: int) -> Callable[[], object]:
    removed = [f"test_a.py::test_a_{index}" + "_x" * size for index in range(20)]
    new = [f"test_a.py::test_b_{index}" + "_x" * size for index in range(20)]
    return lambda: renames(removed, new)


def compare_deep(size: int) -> Callable[[], object]:
    """Compare tests in folders so deep that the folders' names are many times as long as the test's own."""
    deep = "/a" * size
    current = {f"{index}{deep}/test_a.py::test_{index}": PASSED for index in range(20)}
    baseline = {f"b{index}{deep}/test_a.py": FAILED for index in range(20)}
    return lambda: compare(current, baseline, exit_status=1)


def compare_stopped(size: int) -> Callable[[], object]:
    current = {f"a{index}/test_a.py": SeenTest(Status.ERRORED, trouble=Trouble.COLLECTION) for index in range(2)}
    current |= {f"ok/test_{index}.py::test_x": PASSED for index in range(9)}
    baseline = {f"a1{'.b' * index}/test_b.py::test_x": PASSED for index in range(size)}
    return lambda: compare(
        {**current, **{f"c{index}.py": SeenTest(Status.SKIPPED) for index in range(size)}}, baseline, exit_status=1
    )


@pytest.mark.parametrize(
    ("make", "size"),
    [
        (resolve_paths, 60),
        (resolve_classes, 60),
        (resolve_nested, 8),
        (resolve_marks, 2000),
        (resolve_climbs, 400),
        (resolve_repeated, 60),
        (rename_by_tens, 30),
        (reword_by_tens, 30),
        (reword_long, 18),
        (compare_deep, 200),
        (compare_stopped, 60),
    ],
)
def test_twice_as_much_input_needs_twice_the_work(make: Callable[[int], Callable[[], object]], size: int) -> None:
    assert_linear(make, size, memory=True)


def test_a_file_with_too_many_empty_frames_is_refused() -> None:
    frame = zstd.compress(b"")
    with pytest.raises(TooMuch, match="more than 20,000 compressed parts"):
        inflated(BytesIO(frame * 20_001), "a.xml.zst").read()
