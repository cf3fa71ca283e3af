"""Run each probe once: a function that says whether a target is built in, or whether there is a device.

Under pytest-xdist the first worker that needs an answer runs the probe and writes the answer to a folder of the run,
and the others wait for it. So a device is opened once, and all workers collect the same tests. A worker on another
machine does not see the folder, and runs the probes itself, because it has other devices.
"""

from __future__ import annotations

import faulthandler
import hashlib
import json
import os
import select
import signal
import threading
import time
import warnings
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Callable

import pytest

from nightjar_formats.strict_json import read_json
from nightjar_lab.pytest import texts

ASK_AGAIN_SECONDS = 0.02
GRACE_SECONDS = 5.0
NO_LIMIT_SECONDS = 3600.0
"""Seconds that workers wait for the answer of a probe without a limit."""
OUTCOMES = (pytest.skip.Exception, pytest.fail.Exception, pytest.xfail.Exception)


@dataclass(frozen=True)
class ProbeAnswer:
    """The answer of a probe: yes, no, or nothing if the probe failed."""

    passed: bool
    fault: str = ""


class ProbeAnswers:
    """The answers of a run. `folder` is shared by the workers of the run; without one, this process is alone.

    Workers wait for an answer `grace` seconds longer than the probe may take.
    """

    def __init__(self, folder: Path | None, grace: float = GRACE_SECONDS) -> None:
        self._folder = folder
        self._grace = grace
        self._known: dict[str, ProbeAnswer] = {}

    def ask(self, key: str, probe: Callable[[], object], *, isolated: bool, seconds: float | None) -> ProbeAnswer:
        """Return the answer of the probe with this key. The probe runs at most once in the whole run."""
        if key not in self._known:
            ask = ask_in_child if isolated and hasattr(os, "fork") else ask_in_thread
            self._known[key] = self._ask_or_wait(key, lambda: ask(probe, seconds), seconds)
        return self._known[key]

    def first(self, key: str) -> bool:
        """Say whether this worker is the run's first to call this with `key`, so that only one prints a message."""
        if self._folder is None:
            return True
        try:
            os.close(os.open(self._path(key, "claim"), os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
        except FileExistsError:
            return False
        except OSError:
            return True
        return True

    def _ask_or_wait(self, key: str, ask: Callable[[], ProbeAnswer], seconds: float | None) -> ProbeAnswer:
        if self._folder is None:
            return ask()
        path = self._path(key, "json")
        if not self.first(key):
            return _wait_for(path, (NO_LIMIT_SECONDS if seconds is None else seconds) + self._grace)
        answer = ask()
        part = path.with_suffix(".part")
        try:
            part.write_text(json.dumps(asdict(answer)), encoding="utf-8")
            part.replace(path)
        except OSError:
            return answer  # the others say that nobody answered
        return answer

    def _path(self, key: str, suffix: str) -> Path:
        assert self._folder is not None
        return self._folder / f"{hashlib.sha256(key.encode()).hexdigest()[:32]}.{suffix}"


def ask_in_thread(probe: Callable[[], object], seconds: float | None) -> ProbeAnswer:
    """Run a probe in a thread, which is abandoned if the probe does not end; without a limit, run it here."""
    if seconds is None:
        return _answer(probe)
    answers: list[ProbeAnswer] = []
    thread = threading.Thread(target=lambda: answers.append(_answer(probe)), daemon=True, name="nightjar-probe")
    thread.start()
    thread.join(seconds)
    return answers[0] if answers else ProbeAnswer(False, texts.PROBE_HANGS.format(seconds=seconds))


def ask_in_child(probe: Callable[[], object], seconds: float | None) -> ProbeAnswer:
    """Run a probe in a child process, which may crash, and is killed if the probe does not end."""
    read_end, write_end = os.pipe()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # of forking beside threads: the child needs none of them
        child = os.fork()
    if child == 0:
        try:
            faulthandler.disable()  # a crash is an answer, and no news for the terminal
            os.close(read_end)
            os.write(write_end, json.dumps(asdict(_answer(probe))).encode())
        finally:
            os._exit(0)
    os.close(write_end)
    with os.fdopen(read_end, "rb") as pipe:
        ready, _, _ = select.select([pipe], [], [], seconds)
        if not ready:
            os.kill(child, signal.SIGKILL)
        output = pipe.read() if ready else b""
    _, status = os.waitpid(child, 0)
    if output:
        return ProbeAnswer(**read_json(output))
    if not ready:
        return ProbeAnswer(False, texts.PROBE_HANGS.format(seconds=seconds))
    ending = signal.Signals(os.WTERMSIG(status)).name if os.WIFSIGNALED(status) else f"exit status {status >> 8}"
    return ProbeAnswer(False, texts.PROBE_CRASHED.format(how=ending))


def _answer(probe: Callable[[], object]) -> ProbeAnswer:
    try:
        return ProbeAnswer(bool(probe()))
    except KeyboardInterrupt:
        raise
    except OUTCOMES as outcome:
        return ProbeAnswer(False, texts.PROBE_SKIPPED.format(reason=outcome))
    except BaseException as error:  # SystemExit included: a probe must not end the run
        return ProbeAnswer(False, texts.PROBE_RAISED.format(kind=type(error).__name__, error=error))


def _wait_for(path: Path, seconds: float) -> ProbeAnswer:
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        try:
            return ProbeAnswer(**read_json(path.read_text(encoding="utf-8")))
        except FileNotFoundError:
            time.sleep(ASK_AGAIN_SECONDS)
        except OSError:
            break
    return ProbeAnswer(False, texts.PROBE_UNANSWERED)
