"""A probe that raises, hangs or crashes is a reason to skip its target, and is called once per run."""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Callable
from pathlib import Path

import pytest
from nightjar_lab.pytest.probes import ProbeAnswer, ProbeAnswers


def raises() -> bool:
    raise OSError("no driver")


def leaves() -> bool:
    sys.exit(3)


def skips() -> bool:
    pytest.skip("no license")


def hangs() -> bool:
    return threading.Event().wait()


def crashes() -> bool:
    os.kill(os.getpid(), signal.SIGSEGV)
    return True


def exits() -> bool:
    os._exit(7)


@pytest.mark.parametrize("isolated", [False, True])
@pytest.mark.parametrize(
    ("probe", "answer"),
    [
        (lambda: True, ProbeAnswer(True)),
        (lambda: 0, ProbeAnswer(False)),
        (raises, ProbeAnswer(False, "raised OSError: no driver")),
        (leaves, ProbeAnswer(False, "raised SystemExit: 3")),
        (skips, ProbeAnswer(False, "skipped: no license")),
    ],
)
def test_the_result_of_a_probe_decides_whether_its_target_runs(
    probe: Callable[[], object], answer: ProbeAnswer, isolated: bool
) -> None:
    assert ProbeAnswers(None).ask("key", probe, isolated=isolated, seconds=60) == answer
    assert ProbeAnswers(None).ask("key", probe, isolated=isolated, seconds=None) == answer


@pytest.mark.parametrize("isolated", [False, True])
def test_a_probe_that_does_not_return_is_abandoned(isolated: bool) -> None:
    answer = ProbeAnswers(None).ask("key", hangs, isolated=isolated, seconds=0.05)
    assert answer == ProbeAnswer(False, "did not return within 0.05 s")


@pytest.mark.parametrize(("probe", "how"), [(crashes, "SIGSEGV"), (exits, "exit status 7")])
def test_a_probe_in_its_own_process_may_crash(probe: Callable[[], object], how: str) -> None:
    answer = ProbeAnswers(None).ask("key", probe, isolated=True, seconds=60)
    assert answer == ProbeAnswer(False, f"crashed ({how})")


def test_workers_share_the_answer_of_the_first_one(tmp_path: Path) -> None:
    probe_called, go_on, answers = threading.Event(), threading.Event(), []

    def slow() -> bool:
        probe_called.set()
        return go_on.wait()

    def ask(probe: Callable[[], object]) -> None:
        answers.append(ProbeAnswers(tmp_path).ask("key", probe, isolated=False, seconds=60))

    first = threading.Thread(target=ask, args=[slow])
    first.start()
    probe_called.wait()
    second = threading.Thread(target=ask, args=[raises])
    second.start()
    go_on.set()
    first.join()
    second.join()
    assert answers == [ProbeAnswer(True), ProbeAnswer(True)]
    assert not ProbeAnswers(tmp_path).first("key")


def test_a_worker_without_the_shared_folder_asks_by_itself(tmp_path: Path) -> None:
    answers = ProbeAnswers(tmp_path / "elsewhere")
    assert answers.ask("key", lambda: True, isolated=False, seconds=60) == ProbeAnswer(True)
    assert answers.ask("key", raises, isolated=False, seconds=60) == ProbeAnswer(True)


def test_a_worker_killed_while_asking_does_not_delay_the_others(
    tmp_path: Path,
) -> None:
    assert ProbeAnswers(tmp_path).first("key")
    answer = ProbeAnswers(tmp_path, grace=0.05).ask("key", raises, isolated=False, seconds=0.05)
    assert answer == ProbeAnswer(False, "was called by another worker, which did not answer")
