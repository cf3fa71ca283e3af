"""The report of a run contains everything that happened, read with the server's own reader."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from tests.lab.plugin.reports import OPTION, REPORT, cases, lines, outcomes

EVERY_OUTCOME = """
    import pytest

    def test_passes(): pass
    def test_fails(): assert 1 == 2
    def test_skips(): pytest.skip("no device")
    @pytest.mark.xfail
    def test_expected(): assert 0
    @pytest.mark.xfail
    def test_unexpected(): pass
    @pytest.fixture
    def broken(): 1 / 0
    def test_setup(broken): pass
    @pytest.fixture
    def leaves():
        yield
        1 / 0
    def test_teardown(leaves): pass
"""
EXPECTED = {
    "test_passes": "passed",
    "test_fails": "failed",
    "test_skips": "skipped",
    "test_expected": "xfailed",
    "test_unexpected": "xpassed",
    "test_setup": "errored setup",
    "test_teardown": "errored teardown",
}


@pytest.mark.parametrize("workers", [(), ("-n", "1")], ids=["alone", "worker"])
def test_every_outcome_is_reported(pytester: pytest.Pytester, workers: tuple[str, ...]) -> None:
    pytester.makepyfile(test_o=EVERY_OUTCOME)
    result = pytester.runpytest_inprocess(*OPTION, *workers)
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    assert outcomes() == EXPECTED
    failed = next(case for case in cases() if case.name == "test_fails")
    assert (failed.path, failed.line, failed.message) == ("test_o.py", 4, "assert 1 == 2")
    assert "test_fails" in failed.text


def test_a_file_that_cannot_be_imported_is_reported(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(test_bad="import nothing_of_that_name")
    pytester.makepyfile(test_no="import pytest; pytest.skip('not here', allow_module_level=True)")
    assert pytester.runpytest_inprocess(*OPTION).ret == pytest.ExitCode.INTERRUPTED
    assert outcomes() == {"test_bad.py": "errored collection", "test_no.py": "skipped collection"}


def test_the_report_says_what_ran_where(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NIGHTJAR_TEST_TARGETS", "llvm;cuda")
    monkeypatch.setenv("GITHUB_RUN_ATTEMPT", "2")
    pytester.makepyfile("def test_only(): pass")
    pytester.runpytest_inprocess(*OPTION, "--shard", "1/1")
    start, *_, end = lines()
    run = start["nightjar"]
    assert (run["targets"], run["attempt"], run["shard"]) == ("llvm;cuda", "2", "1/1")
    assert (end["exitstatus"], end["nightjar"]["shard"]["mine"]) == (0, 1)


@pytest.mark.parametrize("phase", ["setup", "call", "teardown", "segfault"])
def test_a_crashed_process_loses_nothing_that_was_reported(pytester: pytest.Pytester, phase: str) -> None:
    code = dict.fromkeys(("setup", "call", "teardown"), "pass")
    code["call" if phase == "segfault" else phase] = "ctypes.string_at(0)" if phase == "segfault" else "os._exit(3)"
    pytester.makepyfile(
        f"""
        import ctypes, os, pytest

        def test_before(): pass

        @pytest.fixture
        def device():
            {code["setup"]}
            yield
            {code["teardown"]}

        def test_dies(device):
            {code["call"]}

        def test_after(): pass
        """
    )
    result = pytester.runpytest_subprocess("-p", "no:faulthandler", *OPTION)
    assert result.ret == (-11 if phase == "segfault" else 3)
    assert outcomes() == {"test_before": "passed", "test_dies": "errored crash"}


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        ("def test_dies(): os._exit(3)", {"test_dies": "errored crash"}),
        ("def test_dies(ends): pass", {"test_dies": "errored crash"}),
        # After all tests: none of them shows it.
        ("def test_lives(): atexit_of_session.append(1)", {"test_lives": "passed", "internal": "errored crash"}),
    ],
    ids=["call", "teardown", "end of session"],
)
def test_a_crashed_worker_is_reported(pytester: pytest.Pytester, code: str, expected: dict[str, str]) -> None:
    pytester.makeconftest(
        """
        import os

        def pytest_sessionfinish(session):
            import test_w
            if os.environ.get("PYTEST_XDIST_WORKER") and test_w.atexit_of_session:
                os._exit(3)
        """
    )
    pytester.makepyfile(
        test_w=f"""
        import os, pytest

        atexit_of_session = []

        @pytest.fixture(scope="session")
        def ends():
            yield
            os._exit(3)

        {code}
        """
    )
    result = pytester.runpytest_subprocess("-n", "1", "--max-worker-restart", "0", *OPTION)
    assert result.ret != pytest.ExitCode.OK or "internal" in expected
    assert outcomes() == expected


RERUN = """
    from _pytest.runner import runtestprotocol

    def pytest_runtest_protocol(item, nextitem):
        for last in (False, True):
            item.ihook.pytest_runtest_logstart(nodeid=item.nodeid, location=item.location)
            reports = runtestprotocol(item, nextitem=nextitem, log=False)
            failed = any(report.failed for report in reports)
            for report in reports:
                again = report.failed and not last
                if again and {hold_back}:
                    continue
                if again:
                    report.outcome = "rerun"
                item.ihook.pytest_runtest_logreport(report=report)
                if again and {no_teardown}:
                    break
            item.ihook.pytest_runtest_logfinish(nodeid=item.nodeid, location=item.location)
            if not failed:
                break
        return True
"""
"""What plugins report that run a test again: pytest-rerunfailures 16, 13 and flaky 3.8, as was seen with them."""


@pytest.mark.parametrize(
    ("hold_back", "no_teardown"),
    [(False, False), (False, True), (True, False)],
    ids=["rerunfailures 16", "rerunfailures 13", "flaky"],
)
def test_a_rerun_is_distinguished_from_a_first_pass(
    pytester: pytest.Pytester, hold_back: bool, no_teardown: bool
) -> None:
    pytester.makeconftest(RERUN.format(hold_back=hold_back, no_teardown=no_teardown))
    pytester.makepyfile(
        """
        tries = []

        def test_flaky():
            tries.append(1)
            assert len(tries) > 1

        def test_fails(): assert 0
        """
    )
    assert pytester.runpytest_inprocess(*OPTION).ret == pytest.ExitCode.TESTS_FAILED
    assert outcomes() == {"test_flaky": "passed flaky", "test_fails": "failed"}


def test_each_run_has_its_own_report_in_the_results_folder_and_a_run_within_a_test_has_none(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = pytester.path / "results"
    monkeypatch.setenv("NIGHTJAR_RESULTS", str(folder))
    pytester.makepyfile(
        test_outer=f"""
        import pathlib, subprocess, sys

        def test_outer(tmp_path):
            (tmp_path / "test_inner.py").write_text("def test_inner(): assert 0")
            command = [{sys.executable!r}, "-m", "pytest", "-p", "no:cacheprovider", str(tmp_path)]
            assert subprocess.run(command, cwd=tmp_path).returncode == 1
        """
    )
    pytester.runpytest_inprocess().assert_outcomes(passed=1)
    for option in ("--collect-only", "--help", "--markers"):
        pytester.runpytest_inprocess(option)
    pytester.runpytest_inprocess("-k", "none")
    assert sorted(path.name for path in folder.iterdir()) == ["pytest-2.jsonl", "pytest.jsonl"]
    assert outcomes(folder / "pytest.jsonl") == {"test_outer": "passed"}


def test_a_child_forked_by_a_test_reports_nothing(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(
        """
        import os

        def test_forks():
            child = os.fork()
            if not child:
                raise SystemExit(0)
            os.waitpid(child, 0)
        """
    )
    pytester.runpytest_subprocess(*OPTION)
    assert outcomes() == {"test_forks": "passed"}
    assert len(Path(REPORT).read_bytes().splitlines()) == 6


def test_durations_come_from_a_monotonic_clock(pytester: pytest.Pytester) -> None:
    pytester.makeconftest(
        """
        import itertools, time
        back = itertools.count(2_000_000_000, -86_400)
        time.time = lambda: float(next(back))
        """
    )
    pytester.makepyfile("def test_jumps(): pass")
    assert pytester.runpytest_subprocess(*OPTION).ret == pytest.ExitCode.OK
    [case] = cases()
    assert case.seconds is not None
    assert 0 <= case.seconds < 60
    assert 0 <= lines()[-1]["nightjar"]["seconds"] < 60


CAPABLE = """
    from nightjar_lab.pytest import Target

    nightjar_targets = [
        Target("llvm"),
        Target("gpu", parametrized=False),
        Target("cuda", available=False),
        Target("never-asked", parametrized=False),
    ]
"""
ASKS = """
    from nightjar_lab.pytest import requires

    def test_all(target): pass
    @requires("gpu")
    def test_gpu(): pass
"""


@pytest.mark.parametrize("workers", [(), ("-n", "2")], ids=["alone", "workers"])
def test_the_targets_that_tests_requested_are_reported_as_capabilities(
    pytester: pytest.Pytester, workers: tuple[str, ...]
) -> None:
    pytester.makeconftest(CAPABLE)
    pytester.makepyfile(test_o=ASKS)
    assert pytester.runpytest_inprocess(*OPTION, *workers).ret == pytest.ExitCode.OK
    (line,) = [line for line in lines() if line["$report_type"] == "NightjarCapabilities"]
    reason = 'target "cuda" has no device: its declaration says so'
    assert line["targets"] == {"llvm": "", "cuda": reason, "gpu": ""}
    assert len(cases()) == 3, "the server ignores it"


def test_a_run_without_requested_targets_reports_no_capabilities(pytester: pytest.Pytester) -> None:
    pytester.makepyfile("def test_passes(): pass")
    pytester.runpytest_inprocess(*OPTION)
    assert {line["$report_type"] for line in lines()} == {
        "SessionStart",
        "NightjarStart",
        "TestReport",
        "SessionFinish",
    }
