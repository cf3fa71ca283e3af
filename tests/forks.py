"""`--forks N`: collect all tests once, then run them in N processes that are forked from the one that collected them.

Each worker of pytest-xdist imports the bot and collects all tests again, which takes as much CPU time as hundreds of
tests. Here the processes take files of tests in turn from one queue, so a fixture of a module is made once. Tests with
a mark `xdist_group` run in one process, and begin before others. Each process makes its own fixtures of a session.
"""

from __future__ import annotations

import atexit
import os
import pickle
import random
import selectors
import struct
import sys
from collections.abc import Iterator
from multiprocessing import Pipe
from multiprocessing.connection import Connection
from types import SimpleNamespace
from typing import Any

import pytest

NUMBER = struct.Struct("!i")
LARGEST_QUEUE = 65_536
"""Bytes that a pipe holds: https://man7.org/linux/man-pages/man7/pipe.7.html."""
DIED = "the process that ran this test ended with status {status}"
NOT_ALL = "a process of the tests died, so not all tests ran"
FOR_PEOPLE = ("terminalreporter", "junitxml", "lfplugin", "nfplugin", "stepwiseplugin")
"""Plugins of the first process alone."""


class Sender:
    """Sends what happens in a forked process to the first one."""

    def __init__(self, config: pytest.Config, connection: Connection) -> None:
        self._config = config
        self._connection = connection

    def pytest_runtest_logstart(self, nodeid: str, location: tuple[str, int | None, str]) -> None:
        """Send which test begins."""
        self._connection.send_bytes(pickle.dumps((nodeid, location, None)))

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Send the report of a phase of a test."""
        data = self._config.hook.pytest_report_to_serializable(config=self._config, report=report)
        self._connection.send_bytes(pickle.dumps((report.nodeid, report.location, data)))


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the option."""
    parser.addoption("--forks", type=int, default=0, metavar="N", help="run the tests in N forked processes")


@pytest.hookimpl(tryfirst=True)
def pytest_runtestloop(session: pytest.Session) -> bool | None:
    """Run the tests in forked processes, and report what they send."""
    config = session.config
    if not config.option.forks or config.option.collectonly or session.testsfailed:
        return None
    groups = grouped(session.items)
    assert NUMBER.size * len(groups) <= LARGEST_QUEUE
    queue, end = os.pipe()
    os.write(end, b"".join(map(NUMBER.pack, range(len(groups)))))
    os.close(end)
    folder = config._tmp_path_factory.getbasetemp()  # type: ignore[attr-defined]
    running: dict[Connection, int] = {}
    for number in range(config.option.forks):
        ours, its = Pipe(duplex=False)
        pid = os.fork()
        if not pid:
            os.environ["PYTEST_XDIST_WORKER"] = f"fork{number}"  # `made_once` shares values with the others
            config._tmp_path_factory._basetemp = folder / f"fork{number}"  # type: ignore[attr-defined]
            (folder / f"fork{number}").mkdir(mode=0o700)
            _run(session, groups, queue, its)
        its.close()
        running[ours] = pid
    os.close(queue)
    _report(session, running)
    return True


def grouped(items: list[pytest.Item]) -> list[list[pytest.Item]]:
    """Return the tests in groups, each for one process: first those with a mark, then the largest files."""
    groups: dict[tuple[bool, str], list[pytest.Item]] = {}
    for item in items:
        mark = item.get_closest_marker("xdist_group")
        groups.setdefault((mark is None, str(mark.args[0] if mark else item.path)), []).append(item)
    return [groups[key] for key in sorted(groups, key=lambda key: (key[0], -len(groups[key])))]


def _run(session: pytest.Session, groups: list[list[pytest.Item]], queue: int, connection: Connection) -> None:
    """Run groups of the queue until it is empty, as a forked process, and end it."""
    plugins, hook, status = session.config.pluginmanager, session.config.hook, 1
    try:
        writer = session.config.get_terminal_writer()
        for name in filter(plugins.hasplugin, FOR_PEOPLE):
            plugins.unregister(name=name)
        # pytest-timeout shows with it where a test hangs.
        plugins.register(SimpleNamespace(_tw=writer), "terminalreporter")
        plugins.register(Sender(session.config, connection))
        capture = plugins.getplugin("capturemanager")
        capture.stop_global_capturing()
        capture.start_global_capturing()  # into files of its own
        random.seed()
        items = _queued(groups, queue)
        item = next(items, None)
        while item is not None:
            following = next(items, None)
            item.config.hook.pytest_runtest_protocol(item=item, nextitem=following)
            item = None if session.shouldfail or session.shouldstop else following
        hook.pytest_sessionfinish(session=session, exitstatus=0)
        capture.suspend_global_capture(in_=True)
        atexit._run_exitfuncs()
        status = 0
    except BaseException:
        sys.__excepthook__(*sys.exc_info())
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(status)


def _queued(groups: list[list[pytest.Item]], queue: int) -> Iterator[pytest.Item]:
    while number := os.read(queue, NUMBER.size):
        yield from groups[NUMBER.unpack(number)[0]]


def _report(session: pytest.Session, running: dict[Connection, int]) -> None:
    """Report what forked processes send until all have ended; one that dies fails the test that it ran last.

    Then the tests that it had taken did not run, so the session ends with a status of its own.
    """
    hook = session.config.hook
    has_died = False
    newest: dict[Connection, tuple[str, Any]] = dict.fromkeys(running, ("tests", ("", None, "")))
    with selectors.DefaultSelector() as ready:
        for connection in running:
            ready.register(connection, selectors.EVENT_READ)
        while running:
            for key, _ in ready.select():
                sender: Any = key.fileobj
                try:
                    nodeid, location, data = pickle.loads(sender.recv_bytes())
                except EOFError:
                    ready.unregister(sender)
                    sender.close()
                    if status := os.waitstatus_to_exitcode(os.waitpid(running.pop(sender), 0)[1]):
                        has_died = True
                        text = DIED.format(status=status)
                        report = pytest.TestReport(*newest[sender], {}, "failed", text, "call")
                        hook.pytest_runtest_logreport(report=report)
                    continue
                newest[sender] = nodeid, location
                if data is None:
                    hook.pytest_runtest_logstart(nodeid=nodeid, location=location)
                else:
                    report = hook.pytest_report_from_serializable(config=session.config, data=data)
                    hook.pytest_runtest_logreport(report=report)
    if has_died:
        pytest.exit(NOT_ALL, returncode=pytest.ExitCode.INTERRUPTED)
