"""`make mutants` covers every pure module, and coverage measures those that traced tests show."""

from __future__ import annotations

import ast
import json
import subprocess
import tomllib
from fnmatch import fnmatch
from functools import cache
from pathlib import Path

import pytest

from scripts.copied_tree import NOT_STARTED, failed_test, failure_in_copy, process_tests
from scripts.pure_modules import pure_modules, recorded_tests
from scripts.recorded_calls import FAST, MOST_SECONDS, CallRecord, callers, changed_functions, load_calls

ROOT = Path(__file__).parents[1]
COVERED = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["coverage"]["run"]["include"]
NOT_MEASURED = {
    "tests of pages show them, which are not traced": (
        *("bot/web/*", "handlers/dashboard/*", "handlers/nightly/*", "handlers/operate/*"),
    ),
    "tests of real reports and of the lab kit show them, which are not traced": (
        *("lab/nightjar_formats/*.py", "lab/nightjar_formats/columns/*"),
        *("lab/nightjar_formats/readers/*", "lab/nightjar_formats/runs/advice.py"),
        *("lab/nightjar_formats/runs/few_tests.py", "lab/nightjar_lab/*"),
    ),
    "traced tests take less than 95 % of their branches; tests of databases, clients and labs take the others": (
        *("bot/app/doctor/judge.py", "bot/app/lab_lines.py", "bot/app/setup/*", "bot/ci/addresses.py"),
        *("bot/ci/restarts.py", "bot/cli/*", "bot/commands/conclusion.py", "bot/core/page_paths.py"),
        *("bot/core/parts.py", "bot/core/untrusted/wire.py", "bot/core/utc.py", "bot/effects/section_words.py"),
        *("bot/github/addresses.py", "bot/github/commits/ours.py", "bot/github/commits/required.py"),
        "bot/github/text/commit_message.py",
        *("bot/github/text/skip_directives.py", "bot/github/transport/*", "bot/results/compare/ancestors.py"),
        *("bot/results/compare/codeowners.py", "bot/results/compare/failure_class.py"),
        *("bot/results/compare/flaky.py", "bot/results/compare/lasting.py", "bot/results/compare/paired.py"),
        *("bot/results/compare/quarantine.py", "bot/results/compare/rename_rules.py"),
        *("bot/results/compare/restructured.py", "bot/results/compare/target_health.py", "bot/results/ingest/*"),
        *("bot/results/measurements/texts.py", "bot/results/rates.py", "bot/results/store/tables/combine.py"),
        *("handlers/ci_decisions/*", "handlers/ci_reports/archives.py", "handlers/device_tests/degraded/rule.py"),
        *("handlers/device_tests/paused/texts.py", "handlers/device_tests/texts.py"),
        *("handlers/device_tests/transitions.py", "handlers/docker_update/config.py", "handlers/labs/proposals/*"),
        *("handlers/mute/*", "handlers/regressions/audiences.py", "handlers/regressions/moved/text.py"),
        *("handlers/searches/*", "handlers/slow_tests/revert/*", "handlers/weekly_digest/config.py"),
    ),
}
"""Why coverage does not measure some pure modules."""
# One worker parses all files, once.
pytestmark = pytest.mark.xdist_group("source")


@cache
def pure() -> list[str]:
    """Return the pure modules: not when tests are collected, which other processes do too."""
    return pure_modules()


def test_the_modules_that_coverage_measures_exist() -> None:
    assert [pattern for pattern in COVERED if not list(ROOT.glob(pattern))] == []


def test_coverage_measures_every_pure_module_or_a_reason_says_why_not() -> None:
    unmeasured = [pattern for patterns in NOT_MEASURED.values() for pattern in patterns]
    unnamed = [module for module in pure() if not any(fnmatch(module, pattern) for pattern in (*COVERED, *unmeasured))]
    assert unnamed == [], "add them to [tool.coverage.run] in pyproject.toml"
    assert [pattern for pattern in unmeasured if not any(fnmatch(module, pattern) for module in pure())] == []


@pytest.mark.parametrize(
    "module",
    [
        "bot/core/patterns.py",
        "bot/engine/retry.py",
        "bot/github/text/mentions.py",
        "bot/results/compare/flaky.py",
        "handlers/regressions/decide.py",
        "handlers/merge/readiness.py",
        "handlers/teams/topics.py",
        "lab/nightjar_formats/runs/identity.py",
    ],
)
def test_a_module_that_decides_without_io_is_pure(module: str) -> None:
    assert module in pure()


@pytest.mark.parametrize(
    "module",
    ["bot/engine/worker/tasks.py", "bot/github/client.py", "handlers/merge/commands.py", "bot/config/load.py"],
)
def test_a_module_that_reads_or_writes_is_not_pure(module: str) -> None:
    assert module not in pure()


def test_no_recorded_test_starts_the_whole_bot() -> None:
    tests = recorded_tests()
    assert {"tests/core/test_patterns.py", "tests/handlers/merge/test_readiness.py"} <= set(tests)
    assert [test for test in tests if test.startswith(("tests/conversations/", "tests/browser/", "tests/test_"))] == []


@pytest.mark.parametrize(
    ("module", "old", "new", "functions"),
    [
        ("bot/core/patterns.py", "if first <= last:", "if first < last:", ["_one_of"]),
        ("bot/core/aliases.py", "self.chain(name)[-1]", "self.chain(name)[+1]", ["Aliases.canonical"]),
        ("bot/core/aliases.py", "pairs: Iterable[tuple[str, str]] = ()", "pairs: object = None", ["Aliases.__init__"]),
        ("bot/core/aliases.py", "of an old name", "of a name", []),
    ],
)
def test_a_change_gives_new_code_to_its_own_function_alone(
    module: str, old: str, new: str, functions: list[str]
) -> None:
    text = (ROOT / module).read_text()
    assert old in text
    assert changed_functions(module, ast.parse(text.replace(old, new))) == functions


def test_fast_tests_of_few_functions_run_first_and_not_longer_than_the_limit() -> None:
    records = [
        CallRecord("slow", FAST + 0.1, ["f"]),
        CallRecord("broad", FAST, ["f", "g"]),
        CallRecord("narrow", 0.1, ["f"]),
        CallRecord("failed", 0.1, []),
        CallRecord("long", MOST_SECONDS, ["g"]),
        CallRecord("too late", MOST_SECONDS + 1, ["g"]),
    ]
    assert callers(records, MOST_SECONDS) == {"f": ["narrow", "broad", "slow"], "g": ["broad", "long"]}


def test_a_test_that_ends_its_process_counts_as_one_that_calls_nothing_and_others_are_recorded_anew(
    pytester: pytest.Pytester, tmp_path: Path
) -> None:
    file = tmp_path / "build" / "calls.jsonl"

    class Recorded:
        @pytest.hookimpl(tryfirst=True)
        def pytest_runtestloop(self, session: pytest.Session) -> bool:
            # Since the first test was recorded, the function that it calls has another name.
            outdated = CallRecord(session.items[0].nodeid, 0.1, ["bot/core/listing.py:with_number"])
            file.parent.mkdir()
            file.write_text(json.dumps(outdated) + "\n")
            load_calls(session, ["bot/core/listing.py"], file)
            return True

    pytester.makepyfile(
        """
        import os, signal
        from bot.core.listing import counted

        def test_first(): counted(1, "test")
        def test_killed(): os.kill(os.getpid(), signal.SIGKILL)
        def test_last(): counted(2, "test")
        """
    )
    pytester.inline_run("-p", "no:asyncio", plugins=[Recorded()])
    lines = map(json.loads, file.read_text().splitlines())
    functions = {test.partition("::")[2]: functions for test, _, functions in lines}
    assert functions == {
        "test_first": ["bot/core/listing.py:counted"],
        "test_killed": [],
        "test_last": ["bot/core/listing.py:counted"],
    }


def test_what_other_processes_run_is_tried_in_a_copy_of_the_tree(tmp_path: Path) -> None:
    subprocess.run(["git", "init", "-q", tmp_path], check=True)
    (tmp_path / "answer.py").write_text("print(42)\n")
    (tmp_path / "test_answer.py").write_text(
        "import subprocess, sys\n"
        "def test_answer():\n"
        "    assert subprocess.run([sys.executable, '-m', 'answer'], capture_output=True).stdout == b'42\\n'\n"
    )
    tests = ["test_answer.py"]
    assert failure_in_copy(tests, root=tmp_path) == ""
    assert failure_in_copy(tests, "answer.py", "print(43)\n", tmp_path) == "test_answer.py::test_answer"
    assert failure_in_copy([], "answer.py", "", tmp_path) == ""
    assert (tmp_path / "answer.py").read_text() == "print(42)\n"


@pytest.mark.parametrize(
    ("status", "output", "failure"),
    [
        (0, "2 passed", ""),
        (5, "no tests ran", ""),
        (1, "FAILED t.py::test_a[a b-[1]] - assert 1 == 2\n1 failed", "t.py::test_a"),
        (1, "FAILED inner.py::test_b - its output\nFAILED t.py::test_a - assert 1\n1 failed", "t.py::test_a"),
        (2, "ERROR t.py - ImportError\n1 error", "t.py"),
        (4, "ImportError while loading conftest", NOT_STARTED),
        (-9, "", ""),
    ],
)
def test_pytest_that_a_signal_ends_has_detected_nothing(status: int, output: str, failure: str) -> None:
    assert failed_test(status, output) == failure


def test_tests_that_run_a_module_in_other_processes_are_those_of_its_folder_that_name_it_first() -> None:
    plugin = process_tests("lab/nightjar_lab/pytest/shard_plugin.py")
    assert plugin.index("tests/lab/plugin/test_sharding.py") < plugin.index("tests/lab/plugin/test_slow.py")
    assert {test.rpartition("/")[0] for test in plugin} == {"tests/lab/plugin"}
    assert process_tests("lab/nightjar_lab/suite/matrix_run.py")[0] == "tests/lab/suite/test_local_cases.py"
    assert "tests/lab/kit/test_run_command.py" in process_tests("lab/nightjar_lab/job.py")
    assert process_tests("bot/core/patterns.py") == []
