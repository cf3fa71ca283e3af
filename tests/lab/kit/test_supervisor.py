"""The process above a lab's command: it passes every request to end on to the command, which never outlives it."""

from __future__ import annotations

import asyncio
import sys
from asyncio.subprocess import PIPE
from pathlib import Path

from tests.running import finished

ROOT = Path(__file__).parents[3]
ASKED_WHILE_IT_STARTS = """
import os, signal, subprocess, sys
from pathlib import Path
from nightjar_lab import supervisor

class AskedWhileItStarts(subprocess.Popen):
    def __init__(self, *words, **options):
        super().__init__(*words, **options)
        while not Path("started").exists():
            pass
        os.kill(os.getpid(), signal.SIGTERM)

subprocess.Popen = AskedWhileItStarts
sys.exit(supervisor.main(sys.argv[1:]))
"""


async def test_a_signal_during_the_start_of_the_command_reaches_it(tmp_path: Path) -> None:
    script = "trap 'exit 2' INT; touch started; while :; do sleep 0.1; done"
    running = await asyncio.create_subprocess_exec(
        *(sys.executable, "-c", ASKED_WHILE_IT_STARTS, "bash", "-c", script),
        env={"PYTHONPATH": str(ROOT / "lab"), "PATH": "/usr/bin:/bin"},
        cwd=tmp_path,
        stdin=PIPE,
        stdout=PIPE,
        stderr=PIPE,
    )
    done = await finished(running)
    assert done.status == 2, done
