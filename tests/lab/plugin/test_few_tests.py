"""The tests that a job names, and how often each runs: as the pytest plugin and `nightjar-lab filter` do it."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest
from click.testing import CliRunner
from nightjar_formats import readers
from nightjar_lab.few_tests import is_same_test
from nightjar_lab.main import kit

SUITE = """
    import pytest
    runs = []

    @pytest.fixture
    def device():
        runs.append("opened")
        yield
        runs.append("closed")

    class TestOps:
        @pytest.mark.parametrize("name", ["a", "b"])
        def test_op(self, device, name):
            assert runs[-1] == "opened"
            assert len(runs) % 4 == 1

    def test_other(): raise AssertionError("not a test of the job")
"""


@pytest.mark.parametrize("workers", [(), ("-n", "1")])
def test_pytest_runs_only_the_named_tests_and_repeats_them_with_their_fixtures(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch, workers: tuple[str, ...]
) -> None:
    pytester.makepyfile(test_s=SUITE)
    Path("tests.txt").write_text("tests/python/test_s.py::TestOps::test_op[b]\ntests/python/test_s.py::test_removed\n")
    monkeypatch.setenv("NIGHTJAR_TESTS", "tests.txt" if not workers else str(Path("tests.txt").absolute()))
    monkeypatch.setenv("NIGHTJAR_REPEAT", "4")
    result = pytester.runpytest_inprocess(
        "-p", "no:cacheprovider", "-o", "junit_family=xunit1", "--junitxml=t.xml", *workers
    )
    assert result.parseoutcomes() == {"passed": 2, "failed": 2, **({} if workers else {"deselected": 2})}
    with Path("t.xml").open("rb") as file:
        cases = Counter((case.name, case.status.value) for case in readers.read(file, "t.xml"))
    assert cases == {("test_op[b]", "passed"): 2, ("test_op[b]", "failed"): 2}, "each run is a case of its own"


def test_a_missing_list_of_tests_stops_pytest(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> None:
    pytester.makepyfile(test_s="def test_a(): pass")
    monkeypatch.setenv("NIGHTJAR_TESTS", "nowhere.txt")
    result = pytester.runpytest_inprocess()
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["*NIGHTJAR_TESTS names a file that cannot be read*nowhere.txt*"])


def test_filters_select_the_tests_in_the_words_of_each_tool(tmp_path: Path) -> None:
    listed = tmp_path / "tests.txt"
    for tool, tests, arguments in (
        ("gtest", "src/ops_test.cc::Ops::Add\nOps::Mul/0", "--gtest_filter=Ops.Add:Ops.Mul/0\n"),
        ("ctest", "ops.add\nops+mul", "-R\n^(ops\\.add|ops\\+mul)$\n"),
        ("go", "pkg::TestA/sub\npkg::TestA\npkg::TestB", "-run\n^(TestA|TestB)$\n"),
        ("pytest", "a.py::test_a[\u2028\x85]", "a.py::test_a[\u2028\x85]\n"),
        ("pytest", "a.py::test_a[x y]\nb.py::test_b\na.py::test_a[x y]", "a.py::test_a[x y]\nb.py::test_b\n"),
    ):
        listed.write_text(tests + "\n", encoding="utf-8")
        result = CliRunner().invoke(kit, ["filter", tool], env={"NIGHTJAR_TESTS": str(listed)})
        assert (result.exit_code, result.output) == (0, arguments)
    assert CliRunner().invoke(kit, ["filter", "go"], env={"NIGHTJAR_TESTS": ""}).output == "", "all tests are to run"
    assert CliRunner().invoke(kit, ["filter", "go"], env={"NIGHTJAR_TESTS": "nowhere"}).exit_code == 1


def test_an_id_of_the_bot_is_found_from_another_root_folder() -> None:
    assert is_same_test("tests/python/test_s.py::test_a", "test_s.py::test_a")
    assert is_same_test("test_s.py::test_a", "python/test_s.py::test_a")
    assert not is_same_test("tests/other_test_s.py::test_a", "test_s.py::test_a")
