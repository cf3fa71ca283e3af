"""Slow tests: skipped only on request, and the table of the time that this would save."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from nightjar_lab.pytest.slow import TimedTest, slow_report_lines

SUITE = """
    import pytest

    @pytest.mark.slow
    def test_slow(): pass

    def test_fast(): pass
"""


@pytest.mark.parametrize(
    ("value", "skipped"),
    [*((yes, 1) for yes in ("true", "TRUE", "1", "yes", "Yes")), *((no, 0) for no in ("", "0", "on", " 1", "false"))],
)
def test_slow_tests_run_unless_the_variable_says_otherwise(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch, value: str, skipped: int
) -> None:
    monkeypatch.setenv("SKIP_SLOW_TESTS", value)
    pytester.makepyfile(SUITE)
    result = pytester.runpytest_inprocess("--strict-markers", "-rs")
    result.assert_outcomes(passed=2 - skipped, skipped=skipped)
    if skipped:
        message = f"*SKIP_SLOW_TESTS={value} is set; to run it: env -u SKIP_SLOW_TESTS pytest*@ci run slow tests*"
        result.stdout.fnmatch_lines([message])


LEVELS = """
    import pytest

    def test_a(): pass

    @pytest.mark.slow
    def test_b(): pass

    @pytest.mark.level("nightly")
    @pytest.mark.slow
    def test_c(): pass

    @pytest.mark.level("release")
    class TestModels:
        def test_d(self): pass
"""


def test_a_run_of_a_level_has_its_tests_and_those_of_the_levels_before(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytester.makepyfile(LEVELS)
    cases = {
        ("", ""): 4,
        ("pull-request", ""): 1,
        ("main", ""): 2,
        ("Nightly", ""): 3,
        ("release", ""): 4,
        ("", "1"): 1,
        ("release", "true"): 1,
        ("nightly", "0"): 3,
    }
    for (level, skips), passed in cases.items():
        monkeypatch.setenv("NIGHTJAR_LEVEL", level)
        monkeypatch.setenv("SKIP_SLOW_TESTS", skips)
        result = pytester.runpytest_inprocess("--strict-markers", "-rs")
        result.assert_outcomes(passed=passed, skipped=4 - passed)
    result.stdout.fnmatch_lines(["*NIGHTJAR_LEVEL=release pytest, or `@ci run level release` on a pull request*"])
    monkeypatch.setenv("NIGHTJAR_LEVEL", "nightli")
    wrong = pytester.runpytest_inprocess()
    assert wrong.ret == pytest.ExitCode.USAGE_ERROR
    wrong.stderr.fnmatch_lines(["*nightli? is not a level; the levels are pull-request, main, nightly, release*"])
    monkeypatch.setenv("NIGHTJAR_LEVEL", "main")
    pytester.makepyfile("import pytest\n@pytest.mark.level('weekly')\ndef test_a(): pass\n")
    wrong = pytester.runpytest_inprocess()
    assert wrong.ret == pytest.ExitCode.USAGE_ERROR
    wrong.stderr.fnmatch_lines(["*test_a: *weekly? is not a level*"])


def test_a_projects_own_mark_with_that_name_is_left_alone(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("SKIP_SLOW_TESTS", raising=False)
    pytester.makeini("[pytest]\nmarkers =\n    slow: ours\n")
    pytester.makeconftest(
        """
        import pytest

        def pytest_addoption(parser):
            parser.addoption("--runslow", action="store_true")

        def pytest_collection_modifyitems(config, items):
            for item in items:
                if "slow" in item.keywords and not config.getoption("--runslow"):
                    item.add_marker(pytest.mark.skip(reason="need --runslow option to run"))
        """
    )
    pytester.makepyfile(SUITE)
    result = pytester.runpytest_inprocess("--strict-markers", "-rs")
    result.assert_outcomes(passed=1, skipped=1)
    result.stdout.fnmatch_lines(["*need --runslow option to run"])
    pytester.runpytest_inprocess("--strict-markers", "--runslow").assert_outcomes(passed=2)


SECONDS = (1044.31, 697.41, 99.99, 20.0, 10.0, 3.0)


def test_the_table_is_that_of_the_rfc() -> None:
    tests = [TimedTest(f"t.py::test_{place}", seconds) for place, seconds in enumerate(SECONDS)]
    tests[1] = tests[1]._replace(slow=True)
    tests[2] = tests[2]._replace(failed=3, runs=40)
    assert list(slow_report_lines(tests)) == [
        "6 tests took 31.25m in all",
        "[cutoff=10.0s] Total savings (m): 31.03m by skipping 4 tests",
        "[cutoff=20.0s] Total savings (m): 30.7m by skipping 3 tests",
        *(f"[cutoff={cut_off}.0s] Total savings (m): 30.7m by skipping 3 tests" for cut_off in range(30, 91, 10)),
        "[cutoff=100.0s] Total savings (m): 29.03m by skipping 2 tests",
        "",
        "candidates for @pytest.mark.slow, slowest first:",
        "  seconds   failed  test",
        "  1044.31  unknown  t.py::test_0",
        "    99.99  3 of 40  t.py::test_2",
        "    20.00  unknown  t.py::test_3",
        "A test that fails often is worth its time: run it on every pull request.",
    ]


def test_if_all_tests_are_fast_the_limits_are_lower() -> None:
    lines = list(slow_report_lines([TimedTest("t.py::a", 0.25), TimedTest("t.py::\x1b[2Jb", 0.15)]))
    assert lines[1] == "[cutoff=0.1s] Total savings (m): 0.01m by skipping 2 tests"
    assert "     0.15  unknown  t.py::\\x1b[2Jb" in lines


@pytest.mark.parametrize("workers", [(), ("-n", "1")], ids=["alone", "worker"])
def test_the_report_of_a_run_contains_marks_and_failure_rates(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch, workers: tuple[str, ...]
) -> None:
    monkeypatch.delenv("SKIP_SLOW_TESTS", raising=False)
    pytester.makepyfile(
        test_s="""
        import pytest, sys

        def long(report, seconds):
            report.duration = seconds

        @pytest.mark.slow
        def test_marked(): pass
        def test_long(): pass
        def test_skipped(): pytest.skip("no device")
        """
    )
    pytester.makeconftest(
        """
        import pytest

        @pytest.hookimpl(hookwrapper=True)
        def pytest_runtest_makereport(item, call):
            outcome = yield
            outcome.get_result().duration = 50.0
        """
    )
    row = {"test": "test_s.py::test_long", "seconds": 100.0, "failed": 2, "runs": 40}
    Path("slow.json").write_text(json.dumps({"cut_offs": [], "pages": 1, "tests": [row]}))
    result = pytester.runpytest("--slow-report", "--durations-from", "slow.json", *workers)
    result.stdout.fnmatch_lines(["2 tests took 5.00m in all", "*150.00*2 of 40*test_s.py::test_long"])
    assert "test_s.py::test_marked" not in result.stdout.str()
