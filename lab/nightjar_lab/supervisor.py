"""Run a command in a process group of its own, and kill the whole group when standard input ends.

The agent holds the other end of standard input. However the agent ends, kill -9 included, the command does not outlive
it: the device would be busy with a job that another agent has by then. `python -I supervisor.py COMMAND…`
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import threading

NOT_STARTED = 127


def main(command: list[str]) -> int:
    """Run the command and return its exit status: 128 plus the number of a signal."""
    asked = threading.Event()
    group = 0

    def interrupt(*_: object) -> None:
        if group:
            interrupt_group(group)
        else:
            asked.set()

    # Who asks us to end asks the command, as Ctrl-C does: a test runner writes its report then. Before it starts, for
    # our end alone would leave it behind; while it starts, it is asked afterwards.
    signal.signal(signal.SIGTERM, interrupt)
    try:
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL, start_new_session=True)  # noqa: S603
    except OSError as error:
        sys.stderr.write(f"{command[0]}: {error.strerror}\n")
        return NOT_STARTED
    group = process.pid
    if asked.is_set():
        interrupt_group(group)

    def watch() -> None:
        while os.read(0, 1024):
            pass
        kill_group(group)

    threading.Thread(target=watch, daemon=True).start()
    status = process.wait()
    # Processes that the command has left in the background.
    kill_group(group)
    return 128 - status if status < 0 else status


def interrupt_group(group: int) -> None:
    """Send Ctrl-C to all processes of a group; there may be none left."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(group, signal.SIGINT)


def kill_group(group: int) -> None:
    """Kill all processes of a group; there may be none left."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(group, signal.SIGKILL)


if __name__ == "__main__":
    # A Ctrl-C is for the agent. Not ignored: the command would ignore it too, whoever sends it.
    signal.signal(signal.SIGINT, lambda *_: None)
    sys.exit(main(sys.argv[1:]))
