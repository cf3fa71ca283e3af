"""Each case gets the result of its own actions, whatever it does to the process that runs it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest
from nightjar_lab.suite.outcome import SuiteOutcome, SuiteStage
from nightjar_lab.suite.result import SuiteResult, record_of, result_of
from nightjar_lab.suite.runner import MB, CannotRun, SuiteLimits, SuiteRunner
from nightjar_lab.suite.worker_process import OutputExcerpt, WorkerProcess, describe_status

from tests.lab.suite import hostile

HERE = "tests.lab.suite.hostile"


@pytest.fixture(autouse=True)
def importable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONPATH", str(Path.cwd()))


def results_of(
    names: Sequence[str], *, suite: str = "SLOW", limits: SuiteLimits | None = None, jobs: int = 1
) -> tuple[list[SuiteResult], list[str]]:
    notices: list[str] = []
    with SuiteRunner(f"{HERE}:FLOW", f"{HERE}:{suite}", limits=limits, jobs=jobs, notice=notices.append) as runner:
        assert runner.start().flow == "hostile"
        results = list(runner.run(names))
        runner.finish()
    return results, notices


def test_each_case_has_its_outcome_and_its_stage() -> None:
    reported, notices = results_of(hostile.NAMES, suite="SUITE", jobs=2)
    results = {result.case: result for result in reported}
    assert {name: (result.outcome.value, result.stage and result.stage.value) for name, result in results.items()} == {
        "pass_a": ("pass", None),
        "run_fails": ("run failed", "run"),
        "make_fails": ("case invalid", "make"),
        "reference_fails": ("reference failed", "reference"),
        "quantize_fails": ("quantize failed", "quantize"),
        "lower_fails": ("lower failed", "lower"),
        "load_fails": ("load failed", "load"),
        "run_differs": ("output mismatch", "compare"),
        "skip_me": ("skip", None),
        "load_skips": ("skip", "load"),
        "lower_invalid": ("case invalid", "lower"),
        "run_exits": ("run failed", "run"),
        "run_memory": ("known failure", "run"),
        "pass_known": ("unexpected pass", None),
        "run_prints": ("pass", None),
        "lower_segfault": ("crash", "lower"),
        "run_leaves": ("crash", "run"),
        "run_forks": ("pass", None),
        "pass_b": ("pass", None),
        "make_segfault": ("case invalid", "make"),
        "reference_leaves": ("reference failed", "reference"),
        "make_memory": ("case invalid", "make"),
        "pass_\x1b[31m\n`|@octocat": ("pass", None),
        hostile.CONTROLS: ("pass", None),
    }
    assert "SIGSEGV" in results["lower_segfault"].error
    assert "about to crash" in results["lower_segfault"].output
    assert results["lower_segfault"].test_id == "lower_segfault[hostile-float32]"
    assert "see log" in results["run_fails"].error
    assert "act(deed)" in results["run_fails"].traceback or "in act" in results["run_fails"].traceback
    assert results["run_memory"].error == "leaks: MemoryError"
    assert results["skip_me"].error == "not for this backend"
    assert results["run_prints"].output.startswith('{"event": "result"}')
    assert results["pass_b"].output == ""
    assert results["pass_a"].delegated
    assert results["pass_a"].delegated_ops == {"list.mul": 1}
    assert [result_of(record_of(result)) for result in reported] == reported
    assert notices == []


def test_a_case_that_takes_too_long_is_stopped_and_the_next_one_runs() -> None:
    (sleeps, next_case), _ = results_of(["run_sleeps", "pass_z"], limits=SuiteLimits(seconds=2))
    assert (sleeps.outcome, sleeps.stage) == (SuiteOutcome.TIMEOUT, SuiteStage.RUN)
    assert "longer than 2 s" in sleeps.error
    assert next_case.outcome is SuiteOutcome.PASS


@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="only Linux says what a process has in memory")
def test_a_case_that_needs_too_much_memory_is_stopped_and_the_next_one_runs() -> None:
    (grows, next_case), _ = results_of(["run_grows", "pass_z"], limits=SuiteLimits(memory=300 * MB))
    assert (grows.outcome, grows.stage) == (SuiteOutcome.OUT_OF_MEMORY, SuiteStage.RUN)
    assert "more than 300 MB" in grows.error
    assert next_case.outcome is SuiteOutcome.PASS


def test_a_case_that_closes_all_descriptors_counts_as_a_crash() -> None:
    """It closes the connection; whether the worker then goes on or ends, it is a crash."""
    (closes, next_case), _ = results_of(["run_closes", "pass_z"])
    assert (closes.outcome, closes.stage) == (SuiteOutcome.CRASH, SuiteStage.RUN)
    assert next_case.outcome is SuiteOutcome.PASS


def test_a_worker_that_crashes_at_its_end_loses_no_result() -> None:
    results, notices = results_of(["run_teardown", "pass_z"])
    assert [result.outcome for result in results] == [SuiteOutcome.PASS, SuiteOutcome.PASS]
    assert len(notices) == 1
    assert "SIGABRT" in notices[0]


def test_a_flow_that_cannot_be_loaded_says_why_at_the_start() -> None:
    with (
        SuiteRunner("no_such_module:FLOW", f"{HERE}:SUITE") as runner,
        pytest.raises(CannotRun, match="no_such_module"),
    ):
        runner.start()


def test_an_aborted_run_leaves_nothing() -> None:
    with SuiteRunner(f"{HERE}:FLOW", f"{HERE}:SUITE") as runner:
        runner.start()
        worker = runner._workers[0]
        assert worker.status is None
    assert worker.status == -9


def test_a_worker_ends_when_its_input_ends() -> None:
    worker = WorkerProcess(f"{HERE}:FLOW", f"{HERE}:SUITE")
    assert worker.end() == 0


def test_an_output_keeps_its_head_and_tail() -> None:
    excerpt = OutputExcerpt(half=4)
    for part in (b"ab", b"cdefg", b"hij", b"k\xff"):
        excerpt.add(part)
    assert excerpt.text() == "abcd\n[4 bytes are left out]\nijk\N{REPLACEMENT CHARACTER}"


@pytest.mark.parametrize(
    ("status", "words"), [(3, "with status 3"), (-11, "by SIGSEGV"), (-9, "ran out of memory"), (-65, "by 65")]
)
def test_the_end_of_a_process_is_described(status: int, words: str) -> None:
    assert words in describe_status(status)
