"""What the demo stands on: reports that are there, and test files that they are true of."""

from __future__ import annotations

import ast

import click
import pytest

from sandbox.demo.images import browser
from sandbox.demo.nightly_runs import FAILURE
from sandbox.demo.reports import reports
from sandbox.demo.reports import test_files as files_of


@pytest.mark.parametrize("nightly_run", ["night-1", "night-2", "broken-lab"])
def test_the_files_of_a_nightly_run_are_python(nightly_run: str) -> None:
    files = files_of(nightly_run)
    assert len(files) > len(reports(nightly_run))
    for path, text in files.items():
        assert path.startswith("tests/python/")
        ast.parse(text)


@pytest.mark.parametrize(
    ("path", "line", "code"),
    [
        (*FAILURE, "except tvm.base.TVMError as ex:"),
        ("tests/python/arith/test_arith_analyzer_object.py", 140, "with pytest.raises(tvm.TVMError):"),
    ],
)
def test_a_failure_stands_where_its_traceback_says(path: str, line: int, code: str) -> None:
    assert files_of("night-1")[path].splitlines()[line - 1].strip() == code


def test_a_file_has_the_tests_that_ran() -> None:
    tree = ast.parse(files_of("night-1")["tests/python/te/test_te_tag.py"])
    found = [node.name for node in tree.body if isinstance(node, ast.FunctionDef)]
    assert found == ["test_with", "test_decorator", "test_nested"]


async def test_screenshots_name_the_package_that_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "")
    with pytest.raises(click.ClickException, match="Install it and a font with emoji"):
        async with browser():
            pass
