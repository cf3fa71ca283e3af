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
NEW_GROUP = getattr(subprocess, "CREATE_NEW_PROCESS_GROUP", 0)
"""On Windows, which has no sessions: https://docs.python.org/3/library/subprocess.html#windows-constants."""


def main(command: list[str]) -> int:
    """Run the command and return its exit status: 128 plus the number of a signal."""
    interrupted = threading.Event()
    group = 0

    def interrupt(*_: object) -> None:
        if group:
            interrupt_group(group)
        else:
            interrupted.set()

    # A SIGTERM to us becomes a Ctrl-C for the command, so that a test runner writes its report. The handler is set
    # before the command starts, because our own end would leave the command behind. A signal that arrives while it
    # starts is sent afterwards.
    signal.signal(getattr(signal, "SIGBREAK", signal.SIGTERM), interrupt)
    try:
        process = subprocess.Popen(  # noqa: S603
            command, stdin=subprocess.DEVNULL, start_new_session=True, creationflags=NEW_GROUP
        )
    except OSError as error:
        sys.stderr.write(f"{command[0]}: {error.strerror}\n")
        return NOT_STARTED
    group = process.pid
    if interrupted.is_set():
        interrupt_group(group)

    def watch() -> None:
        while os.read(0, 1024):
            pass
        kill_group(group)

    threading.Thread(target=watch, daemon=True).start()
    status = process.wait()
    # The command may have left processes in the background.
    kill_group(group)
    return 128 - status if status < 0 else status


def interrupt_group(group: int) -> None:
    """Send Ctrl-C (on Windows Ctrl-Break) to all processes of a group; there may be none left."""
    with contextlib.suppress(OSError):
        if sys.platform == "win32":
            os.kill(group, signal.CTRL_BREAK_EVENT)
        else:
            os.killpg(group, signal.SIGINT)


def kill_group(group: int) -> None:
    """Kill all processes of a group; there may be none left."""
    with contextlib.suppress(OSError):
        if sys.platform == "win32":
            # A group cannot be killed there, but a process with those that it has started.
            subprocess.run(["taskkill", "/F", "/T", "/PID", str(group)], capture_output=True, check=False)  # noqa: S603, S607
        else:
            os.killpg(group, signal.SIGKILL)


if __name__ == "__main__":
    # A Ctrl-C is for the agent. SIG_IGN is no option, because the command would inherit it and ignore every SIGINT.
    signal.signal(signal.SIGINT, lambda *_: None)
    sys.exit(main(sys.argv[1:]))
