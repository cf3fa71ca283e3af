"""Untrusted input cannot cost more than its limits, or affect anything else."""

# ruff: noqa: ASYNC220, ASYNC240 - nothing else runs on the loop of these tests

from __future__ import annotations

import asyncio
import os
import pickle
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest
from nightjar_formats.model import SeenTest, Status, Trouble
from nightjar_formats.refused import Refused

from bot.core.errors import TryAgain
from bot.core.untrusted.limits import COME_BACK, MOST_WAITING_OF_OWNER, AllLimits, Limits, OverLimit
from bot.core.untrusted.pool import STUCK_AFTER, Pool
from bot.core.untrusted.queue import Owner
from bot.core.untrusted.slot import ChildFault
from bot.core.untrusted.wire import answer_of, read_answer
from tests.core.untrusted import hostile
from tests.waiting import DEADLINE, until

ME = Owner("octocat/compiler", "1")
ENOUGH = Limits("reading one artifact", cpu=60, wall=DEADLINE, memory=1 << 30)
SHORT = Limits("reading one artifact", cpu=60, wall=0.2, memory=1 << 30)
LITTLE_CPU = Limits("reading one artifact", cpu=1, wall=DEADLINE, memory=1 << 30)


@pytest.fixture
async def pool() -> AsyncIterator[Pool]:
    made = Pool(2)
    yield made
    made.close()


async def test_a_function_runs_in_a_new_process_each_time(pool: Pool) -> None:
    assert await pool.run(ME, ENOUGH, hostile.add, 2, 3) == 5
    first, parent = await pool.run(ME, ENOUGH, hostile.who)
    second, same_parent = await pool.run(ME, ENOUGH, hostile.who)
    assert len({first, second, os.getpid()}) == 3
    assert parent == same_parent, "it is forked from a process with loaded modules"
    assert pool.pids == [parent]


async def test_files_without_a_name_are_passed_by_their_descriptors(pool: Pool) -> None:
    files = [tempfile.TemporaryFile() for _ in range(150)]  # noqa: SIM115  # closed below
    for number, file in enumerate(files):
        file.write(b"x" * number)
    assert await pool.run(ME, ENOUGH, hostile.lengths, "else", files=files) == list(range(150))
    for file in files:
        file.close()


@pytest.mark.parametrize(
    ("function", "limits", "message"),
    [
        (hostile.backtrack, LITTLE_CPU, "reading one artifact took more than 1 seconds of CPU time, the maximum"),
        (hostile.backtrack, SHORT, "reading one artifact took longer than 0.2 seconds, the maximum"),
        (hostile.sleep, SHORT, "reading one artifact took longer than 0.2 seconds, the maximum"),
        (hostile.grow, ENOUGH, "reading one artifact needed more than 1,024 MiB of memory, the maximum"),
        (
            hostile.swallow_memory_error,
            ENOUGH,
            "reading one artifact needed more than 1,024 MiB of memory, the maximum",
        ),
        (hostile.answer_too_much, ENOUGH, "reading one artifact produced more than 256 MiB of output, the maximum"),
        (hostile.crash, ENOUGH, "reading one artifact crashed its process twice, with signal 11"),
    ],
)
async def test_work_beyond_a_limit_is_ended_and_the_error_names_the_limit(
    pool: Pool, function: Callable[[], object], limits: Limits, message: str
) -> None:
    with pytest.raises(OverLimit) as raised:
        await pool.run(ME, limits, function)
    assert str(raised.value) == message
    assert await pool.run(ME, ENOUGH, hostile.add, 1, 1) == 2, "the next call has a process again"


async def test_a_process_that_somebody_killed_gets_a_second_chance(pool: Pool, tmp_path: Path) -> None:
    (tmp_path / "first").touch()
    assert await pool.run(ME, ENOUGH, hostile.crash_once, str(tmp_path / "first")) == "done"


async def test_a_waiting_process_that_is_lost_is_replaced(pool: Pool) -> None:
    await pool.run(ME, ENOUGH, hostile.add, 1, 1)
    (lost,) = pool.pids
    os.kill(lost, signal.SIGKILL)
    assert await pool.run(ME, ENOUGH, hostile.add, 2, 2) == 4
    assert pool.pids != [lost]


async def test_refusals_are_passed_on_and_faults_have_their_traceback(pool: Pool) -> None:
    with pytest.raises(Refused, match=r"^a.xml is no report$"):
        await pool.run(ME, ENOUGH, hostile.refuse)
    with pytest.raises(ChildFault, match=r"(?s)hostile.py.*ValueError: a fault of ours"):
        await pool.run(ME, ENOUGH, hostile.fail)


async def test_an_answer_must_not_name_a_function(pool: Pool) -> None:
    """Code that took over a parser must not be able to run more code in the server."""
    with pytest.raises(pickle.UnpicklingError, match=r"must not refer to posix\.system"):
        await pool.run(ME, ENOUGH, hostile.name_a_function)


@pytest.mark.parametrize("builtin", [eval, getattr, open, type, object, memoryview])
async def test_of_the_builtins_an_answer_may_name_collections_and_numbers_alone(builtin: object) -> None:
    harmless = [frozenset("a"), {1}, bytearray(b"a"), 1 + 2j, range(3), slice(1, 2), set, Owner("a", "b")]
    assert read_answer(pickle.dumps(harmless)) == harmless
    with pytest.raises(pickle.UnpicklingError, match="must not refer to"):
        read_answer(pickle.dumps([builtin]))


async def test_an_answer_may_have_members_of_our_enumerations_on_each_python() -> None:
    outcome = SeenTest(Status.FAILED, trouble=Trouble.COLLECTION)
    assert read_answer(answer_of([outcome, Status.SKIPPED])) == [outcome, Status.SKIPPED]
    assert b"getattr" not in answer_of(outcome)


async def test_secrets_of_the_server_are_not_in_the_environment(pool: Pool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GITHUB_WEBHOOK_SECRET", "sesame-sesame-01")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "sesame")
    variables = await pool.run(ME, ENOUGH, hostile.environment)
    assert set(variables) <= {"PATH", "LANG", "LC_ALL", "LC_CTYPE", "TZ", "PYTHONPATH"}


READS_PROC = """
import asyncio, os
from tests.core.untrusted import hostile
from tests.core.untrusted.test_pool import ENOUGH, ME, Pool

async def main():
    pool = Pool(1)
    print(await pool.run(ME, ENOUGH, hostile.environment_of, os.getppid()), end="")
    print(await pool.run(ME, ENOUGH, hostile.environment_of, os.getpid()), end="")
    pool.close()

asyncio.run(main())
"""


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere nothing keeps a user from their own processes")
def test_a_process_cannot_read_the_secrets_of_the_server_in_proc() -> None:
    # Without its capabilities, root is an ordinary user.
    under = ["setpriv", "--bounding-set=-all", "--inh-caps=-all"] if os.getuid() == 0 else []
    # The shell shows that a process of the same user can otherwise be read; `:` keeps it from becoming Python.
    script = '"$0" -c "$1"; :'
    environment = {"PATH": os.environ["PATH"], "PYTHONPATH": os.pathsep.join(sys.path), "SESAME": "open"}
    done = subprocess.run(
        [*under, "sh", "-c", script, sys.executable, READS_PROC],
        env=environment,
        capture_output=True,
        text=True,
        check=True,
    )
    assert "SESAME=open" in done.stdout, done.stderr
    assert done.stdout.endswith("Permission denied")
    assert done.stdout.count("SESAME") == 1


async def test_cancelling_a_call_ends_the_process(pool: Pool) -> None:
    waiting = asyncio.create_task(pool.run(ME, ENOUGH, hostile.sleep))
    await until(lambda: bool(pool.pids))
    (pid,) = pool.pids
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    assert pool.pids == []
    assert not Path(f"/proc/{pid}").exists()


async def test_an_owner_leaves_a_place_to_others_and_they_take_turns() -> None:
    """Three jobs of one pull request never end, and one of another repository need not wait for them."""
    pool = Pool(2)
    flood = [asyncio.create_task(pool.run(ME, ENOUGH, hostile.sleep)) for _ in range(3)]
    try:
        await until(lambda: bool(pool.pids))
        other_owner = Owner("octocat/other", "2")
        assert await pool.run(other_owner, ENOUGH, hostile.add, 2, 2) == 4
        assert [task.done() for task in flood] == [False] * 3
    finally:
        for task in flood:
            task.cancel()
        await asyncio.gather(*flood, return_exceptions=True)
        pool.close()


async def test_the_queue_is_limited_and_a_job_without_a_place_comes_back_later(pool: Pool) -> None:
    running = asyncio.create_task(pool.run(ME, ENOUGH, hostile.sleep))
    waiting = [asyncio.create_task(pool.run(ME, ENOUGH, hostile.sleep)) for _ in range(MOST_WAITING_OF_OWNER)]
    await until(lambda: _is_full(pool))
    with pytest.raises(TryAgain) as raised:
        await pool.run(ME, ENOUGH, hostile.add, 1, 1)
    assert raised.value.retry_in == COME_BACK
    for task in (running, *waiting):
        task.cancel()
    await asyncio.gather(running, *waiting, return_exceptions=True)


class Question:
    """An argument that records when it is pickled."""

    def __init__(self, log: list[str], name: str) -> None:
        self._log, self._name = log, name

    def __reduce__(self) -> tuple[type, tuple[str]]:
        self._log.append(self._name)
        return str, (self._name,)


async def test_a_question_is_pickled_only_when_it_has_a_place() -> None:
    """A report of many megabytes is in memory once, however many jobs wait."""
    pool, log = Pool(1), list[str]()
    running = asyncio.create_task(pool.run(ME, ENOUGH, hostile.sleep))
    await until(lambda: bool(pool.pids))
    waiting = [
        asyncio.create_task(pool.run(ME, ENOUGH, hostile.lengths, Question(log, str(n))))
        for n in range(MOST_WAITING_OF_OWNER)
    ]
    await until(lambda: _is_full(pool))
    with pytest.raises(TryAgain):
        await pool.run(ME, ENOUGH, hostile.add, Question(log, "refused"), 1)
    assert log == []
    for task in (running, *waiting):
        task.cancel()
    await asyncio.gather(running, *waiting, return_exceptions=True)
    pool.close()


async def test_a_question_that_is_too_large_releases_its_place() -> None:
    pool = Pool(1, most_bytes=1000)
    for _ in range(2):
        with pytest.raises(OverLimit, match="MiB"):
            await pool.run(ME, ENOUGH, hostile.lengths, bytes(1000))
    pool.close()


def _is_full(pool: Pool) -> bool:
    try:
        pool.check(ME)
    except TryAgain:
        return True
    return False


async def test_a_pool_in_which_nothing_ends_is_reported_and_a_busy_one_is_not() -> None:
    current_time = 0.0
    pool = Pool(1, AllLimits(run=ENOUGH, artifact=ENOUGH, comparison=ENOUGH), clock=lambda: current_time)
    tasks = [asyncio.create_task(pool.run(ME, ENOUGH, hostile.sleep)) for _ in range(2)]
    await until(lambda: bool(pool.pids) and pool.waiting == 1)
    assert pool.problem() is None
    current_time = ENOUGH.wall + STUCK_AFTER
    assert pool.problem() is None
    current_time += 0.1
    assert pool.problem() == ("no report has been read for 1210 s although some are waiting; see the log")
    tasks[0].cancel()
    await asyncio.gather(tasks[0], return_exceptions=True)
    assert pool.problem() is None, "one call has ended, and the next has begun"
    tasks[1].cancel()
    await asyncio.gather(tasks[1], return_exceptions=True)
    pool.close()


SERVER = """
import asyncio
from bot.core.untrusted.limits import Limits
from bot.core.untrusted.pool import Pool
from bot.core.untrusted.queue import Owner
from tests.core.untrusted import hostile

async def main():
    pool = Pool(1)
    asyncio.create_task(pool.run(Owner("a", "b"), Limits("a", 60, 1200, 1 << 30), hostile.backtrack))
    while not pool.pids:
        await asyncio.sleep(0.01)
    print(pool.pids[0], flush=True)
    await asyncio.sleep(600)

asyncio.run(main())
"""


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere the process ends with its alarm")
async def test_processes_end_with_the_server_even_when_it_is_killed() -> None:
    with subprocess.Popen([sys.executable, "-c", SERVER], stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None
        waiting = int(server.stdout.readline())
        children = Path(f"/proc/{waiting}/task/{waiting}/children")
        await until(lambda: bool(children.read_text().split()))
        working = int(children.read_text())
        server.kill()
    await until(lambda: not Path(f"/proc/{waiting}").exists() and not _lives(working))


def test_the_waiting_process_ends_quietly_if_the_server_dies_before_it_reads_how_a_job_ended() -> None:
    """The end of the server is then no end of file: the connection is reset, because of what nobody has read."""
    control, child_control = socket.socketpair()
    job, end_of_job = socket.socketpair()
    end_of_job.close()
    command = [sys.executable, "-m", "bot.core.untrusted.child", str(child_control.fileno())]
    with (
        child_control,
        job,
        subprocess.Popen(command, pass_fds=[child_control.fileno()], stderr=subprocess.PIPE) as waiting,
    ):
        child_control.close()
        socket.send_fds(control, [b"j"], [job.fileno()])
        control.recv(1, socket.MSG_PEEK)
        control.close()
        assert (waiting.communicate()[1], waiting.returncode) == (b"", 0)


def _lives(pid: int) -> bool:
    """Return whether a process runs; a zombie, which has ended, does not."""
    try:
        return ") Z" not in Path(f"/proc/{pid}/stat").read_text()
    except FileNotFoundError:
        return False
