"""`nightjar-lab ids`: the IDs of tests as the bot names them, from what pytest collects and from reports."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from nightjar_formats.columns.collect import read_names
from nightjar_lab.main import kit

from bot.results.ingest.parse import parse_run

SUITE = """
    import pytest

    @pytest.mark.parametrize("text", ["a", "b\\n"])
    def test_text(text): pass

    class TestClass:
        @pytest.mark.gpu
        def test_method(self): pass
"""
TEXTS = ["tests/python/test_ops.py::test_text[a]", "tests/python/test_ops.py::test_text[b\\n]"]
METHOD = "tests/python/test_ops.py::TestClass::test_method"


def ids(*arguments: str, **environment: str) -> Result:
    return CliRunner().invoke(kit, ["ids", *arguments], env=environment)


def test_tests_have_the_ids_that_the_bot_gives_their_results(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    top = pytester.path
    folder = top / "tests/python"
    folder.mkdir(parents=True)
    pytester.makepyfile(**{"tests/python/test_ops": SUITE})
    (folder / "pytest.ini").write_text("[pytest]\nmarkers = gpu\n")  # the root folder is not that of the repository
    subprocess.run(["git", "init", "-q", str(top)], check=True)
    for place, path in ((top, "tests/python"), (folder, "."), (folder, "test_ops.py")):
        monkeypatch.chdir(place)
        assert ids(path).stdout.splitlines() == [*TEXTS, METHOD], path
    assert ids("test_ops.py::TestClass").stdout.splitlines() == [METHOD]
    assert json.loads(ids(".", "--json", PYTEST_ADDOPTS="-m gpu").stdout) == {"ids": [METHOD]}

    pytester.runpytest_inprocess("--junitxml=report.xml", "--rootdir=.", ".").assert_outcomes(passed=3)
    listed = ids("report.xml")
    assert listed.stdout.splitlines() == [*TEXTS, METHOD]
    with Path("report.xml").open("rb") as report:
        parsed = parse_run([report], [("report.xml", None)], frozenset({"tests/python/test_ops.py"}))
    assert listed.stdout.splitlines() == list(read_names(parsed.columns.names))
    assert ids(".", "report.xml").stdout == listed.stdout, "each once"


def test_what_cannot_be_listed_is_an_error(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(pytester.path)
    pytester.makepyfile(test_broken="import nosuch", test_empty="")
    Path("broken.xml").write_text("<testsuites><testcase")
    cases = {
        "test_broken.py": "No module named 'nosuch'",
        "test_empty.py": "there is no test in test_empty.py",
        "broken.xml": "broken.xml",
        "nosuch.xml": "nosuch.xml: No such file or directory",
    }
    for path, problem in cases.items():
        listed = ids(path)
        assert (listed.exit_code, listed.stdout, problem in listed.stderr) == (1, "", True), listed.output
