"""Annotations: only at known lines, in files that exist at the commit."""

from __future__ import annotations

import pytest
from nightjar_formats.model import Detail, Trouble

from bot.results.report.check_run import annotations_of
from bot.results.report.findings import LAST_LINE, Findings, IgnoredFailures
from tests.results.reported import a_suite, compared, findings

PATH = "tests/python/test_tile.py"
TEST = f"{PATH}::test_tile[llvm]"
TRACEBACK = f"""
{PATH}:7: in test_tile
    check(1)
python/tvm/tile.py:30: in check
    compare(a, b)
{PATH}:12: AssertionError
/home/ci/other/tests/helper.py:99: in helper
"""


def one(detail: Detail, test: str = TEST, files: tuple[str, ...] | None = (PATH,)) -> Findings:
    return findings((a_suite({test: detail}), compared(test)), files=files)


@pytest.mark.parametrize(
    ("detail", "line"),
    [
        (Detail(path=PATH, line=3), 3),
        (Detail(path=PATH, line=1), 1),
        (Detail(path=PATH, line=0), None),
        (Detail(path=PATH, line=LAST_LINE), LAST_LINE),
        (Detail(path=PATH, line=LAST_LINE + 1), None),
        (Detail(text=f"{PATH}:1: AssertionError"), 1),
        (Detail(text=f"{PATH}:{LAST_LINE}: AssertionError"), LAST_LINE),
        (Detail(text=f"{PATH}:{LAST_LINE + 1}: AssertionError"), None),
        (Detail(path=PATH, line=3, text=TRACEBACK), 3),
        (Detail(path=PATH, text=TRACEBACK), 12),
        (Detail(text=TRACEBACK), 12),
        (Detail(text=f"/home/ci/compiler/{PATH}:12: AssertionError"), 12),
        (Detail(text=f'  File "/home/ci/compiler/{PATH}", line 12, in test'), 12),
        (Detail(text=f'  File "{PATH}", line 12, in test'), 12),
        (Detail(text=f"/usr/lib/python3/site-packages/{PATH}:12: AssertionError"), None),
        (Detail(text=f"other{PATH}:12: AssertionError"), None),
        (Detail(text=f"/usr/lib/python3/site-packages/tvm/{PATH}:12: AssertionError"), None),
        (Detail(text="tests/python/test_other.py:12: AssertionError"), None),
        (Detail(path=PATH), None),
        (Detail(path=PATH, line=0, text=TRACEBACK), 12),
        (Detail(path=PATH, line=10**12), None),
        (Detail(text=f"{PATH}:0: AssertionError"), None),
        (Detail(text=f"{PATH}:123456789: AssertionError"), None),
    ],
)
def test_an_annotation_is_at_its_line_or_at_the_top_of_its_file_and_says_so(detail: Detail, line: int | None) -> None:
    (annotation,) = annotations_of(one(detail))
    assert annotation.line == (line or 1)
    assert ("the report does not name a line" in annotation.message) == (line is None)


def test_a_path_that_does_not_exist_at_the_commit_is_not_annotated() -> None:
    assert annotations_of(one(Detail(path="tests/python/removed.py", line=3))) == ()


def test_a_file_that_may_be_anywhere_is_found_only_by_its_whole_path() -> None:
    test = "conftest.py::test_a"
    assert [
        a.line for a in annotations_of(one(Detail(text="/home/ci/conftest.py:3: in a"), test, ("conftest.py",)))
    ] == [1]
    assert [a.line for a in annotations_of(one(Detail(text="conftest.py:3: in a"), test, ("conftest.py",)))] == [3]


def test_a_file_is_found_in_a_folder_that_ends_as_its_path_begins() -> None:
    path = "compiler/compiler"
    (annotation,) = annotations_of(one(Detail(text=f"/home/ci/{path}/compiler:12: error"), f"{path}::a", (path,)))
    assert annotation.line == 12


def test_without_the_files_of_the_commit_there_are_no_annotations() -> None:
    assert annotations_of(one(Detail(path=PATH, line=3), files=None)) == ()


def test_it_names_the_test_its_status_and_its_message() -> None:
    detail = Detail(Trouble.CRASH, "worker 'gw0' crashed\nmore", f"first\x1b[31m\u202e\r\n{'x' * 7000}\nlast", PATH, 3)
    (annotation,) = annotations_of(one(detail))
    assert annotation.title == "New failure on example-lab/hexagon-v73"
    assert annotation.message == f"{TEST}\ncrashed: worker 'gw0' crashed"
    assert annotation.details == "…last"


def test_there_are_at_most_fifty_with_the_most_useful_first() -> None:
    tests = {f"{PATH}::test_{n}": Detail(path=PATH, line=n + 1) for n in range(60)}
    tests[f"{PATH}::test_59"] = Detail(Trouble.CRASH, path=PATH, line=60)
    annotations = annotations_of(findings((a_suite(tests), compared(*tests)), files={PATH}))
    assert len(annotations) == 50
    assert annotations[0].line == 60


def test_only_new_failures_that_nobody_ignores_are_annotated() -> None:
    tests = {f"{PATH}::test_{n}": Detail(path=PATH, line=n + 1) for n in range(3)}
    ignored = IgnoredFailures("hubot", "c" * 40, "", frozenset({("operators", f"{PATH}::test_0")}))
    comparison = compared(f"{PATH}::test_0", f"{PATH}::test_1", still_failing=(f"{PATH}::test_2",))
    reported = findings((a_suite(tests), comparison), files={PATH}, ignored=ignored)
    assert [annotation.line for annotation in annotations_of(reported)] == [2]
