"""Print at the end of a failing run the command that runs failed tests again, and issues to open about flaky ones."""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path

import pytest

from nightjar_lab.pytest import run_texts as texts
from nightjar_lab.pytest.printable import printable
from nightjar_lab.pytest.remote import page_of_repository
from nightjar_lab.pytest.reproduce import (
    MOST_ISSUES,
    VARIABLES,
    ReproducedRun,
    failed_in_order,
    issue_address,
    reproduce_command,
    shared_options,
)

USED_BY = ("NIGHTJAR_", "SKIP_SLOW_TESTS", "TVM_TEST_TARGETS")
"""Beginnings of the variables that show that a run uses the plugin."""
PRIVATE = frozenset({"PYTHONPATH", "PYTEST_ADDOPTS"})
CONFIGURATIONS = ("pytest.toml", ".pytest.toml", "pytest.ini", ".pytest.ini", "pyproject.toml", "tox.ini", "setup.cfg")
FACTS = {
    "NIGHTJAR_LAB": "Lab",
    "NIGHTJAR_TARGET": "Target",
    "NIGHTJAR_TEST_TARGETS": "Targets",
    "NIGHTJAR_SHA": "Commit",
}


def prints_reproduce(config: pytest.Config) -> bool:
    """Say whether to print the command: with `auto`, if the run uses another part of the plugin."""
    choice = config.getoption("nightjar_reproduce")
    if choice != "auto":
        return bool(choice == "always")
    uses_option = any(config.getoption(name) for name in ("nightjar_report", "shard", "slow_report"))
    return uses_option or any(name.startswith(USED_BY) for name in os.environ)


class Reproduce:
    """Collects what failed and prints how to run it again."""

    def __init__(self, config: pytest.Config) -> None:
        self._config = config
        self._failed: dict[str, str] = {}

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Note a failure. An attempt that is rerun does not count: its outcome is not `failed`."""
        if report.outcome == "failed":
            self._failed.setdefault(report.nodeid, _message(report))

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        """Note a file that cannot be collected: running it again shows why."""
        if report.outcome == "failed" and report.nodeid:
            self._failed.setdefault(report.nodeid, _message(report))

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        """Print the command and the addresses of issues."""
        if not self._failed:
            return
        failed_tests, more_notice = failed_in_order(
            {self._from_here(nodeid): message for nodeid, message in self._failed.items()}
        )
        run = self._run()
        terminalreporter.section(texts.REPRODUCE_TITLE)
        terminalreporter.write_line(reproduce_command(run, [test.nodeid for test in failed_tests]))
        if more_notice:
            terminalreporter.write_line(more_notice)
        page = page_of_repository(Path(run.folder))
        if not page:
            return
        facts = {title: os.environ[name] for name, title in FACTS.items() if os.environ.get(name)}
        # Settings that make sense only on this machine stay out of an issue.
        variables = {name: value for name, value in run.environment.items() if name not in PRIVATE}
        public = ReproducedRun("", ["python", "-m", "pytest"], run.options, variables)
        terminalreporter.write_line(texts.REPRODUCE_ISSUE)
        for test in failed_tests[:MOST_ISSUES]:
            command = reproduce_command(public, [test.nodeid])
            terminalreporter.write_line("  " + printable(test.nodeid, 200))
            terminalreporter.write_line("    " + issue_address(page, test.nodeid, test.message, command, facts))

    def _from_here(self, nodeid: str) -> str:
        """Return a node ID, which begins at the root folder, as seen from where pytest was started."""
        path, colons, rest = nodeid.partition("::")
        start_folder, root = str(self._config.invocation_params.dir), str(self._config.rootpath)
        if start_folder != root:
            path = os.path.relpath(os.path.join(root, path), start_folder)  # noqa: PTH118
        return path + colons + rest

    def _run(self) -> ReproducedRun:
        config = self._config
        arguments = [os.fspath(argument) for argument in config.invocation_params.args]
        options = shared_options(
            arguments, [str(argument) for argument in getattr(config.option, "file_or_dir", None) or []]
        )
        variables = (*VARIABLES, *config.getini("nightjar_reproduce_env"))
        environment = {name: os.environ[name] for name in dict.fromkeys(variables) if name in os.environ}
        return ReproducedRun(
            str(config.invocation_params.dir), program(), [*self._places(arguments), *options], environment
        )

    def _places(self, arguments: list[str]) -> list[str]:
        """Return options for root folder and configuration, if pytest would choose others from the tests alone."""
        start_folder, root, file = self._config.invocation_params.dir, self._config.rootpath, self._config.inipath
        option_names = {argument.partition("=")[0][:9] for argument in arguments}
        if "--rootdir" in option_names or any(argument.startswith(("-c", "--config-")) for argument in arguments):
            return []
        if file is None:
            return [f"--rootdir={os.path.relpath(root, start_folder)}"] if root != start_folder else []
        folders = {root.joinpath(nodeid.partition("::")[0]).parent for nodeid in self._failed}
        folders_between = {
            ancestor for folder in folders for ancestor in (folder, *folder.parents) if root in ancestor.parents
        }
        if root != start_folder or any(
            (folder / name).exists() for folder in folders_between for name in CONFIGURATIONS
        ):
            return ["-c", os.path.relpath(file, start_folder), f"--rootdir={os.path.relpath(root, start_folder)}"]
        return []


def program() -> list[str]:
    """Return the command that starts this pytest, by name if PATH leads to the same program, else by path."""
    if Path(sys.argv[0]).name == "__main__.py":
        name = Path(sys.executable).name
        return [name if _is_in_path(name, sys.executable) else sys.executable, "-m", "pytest"]
    name = Path(sys.argv[0]).name
    if name in ("pytest", "py.test"):
        return [name] if _is_in_path(name, sys.argv[0]) else [sys.argv[0]]
    return [sys.executable, "-m", "pytest"]


def _is_in_path(name: str, file: str) -> bool:
    program_path = shutil.which(name)
    return program_path is not None and Path(program_path).absolute() == Path(file).absolute()


def _message(report: pytest.TestReport | pytest.CollectReport) -> str:
    crash = getattr(getattr(report, "longrepr", None), "reprcrash", None)
    text = str(getattr(crash, "message", "") or report.longrepr or "")
    return next((line for line in text.splitlines() if line.strip()), "")
