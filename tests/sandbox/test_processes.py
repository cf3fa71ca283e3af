import asyncio
import sys
from pathlib import Path

from tests.waiting import DEADLINE

ROOT = Path(__file__).parent.parent.parent

STARTS_ONE = """
import signal, subprocess, sys
from sandbox.processes import end_with_parent
child = "import signal; print('ready', flush=True); signal.pause()"
subprocess.Popen([sys.executable, "-c", child], preexec_fn=end_with_parent)
signal.pause()
"""


async def test_a_program_ends_with_the_one_that_started_it() -> None:
    pipe = asyncio.subprocess.PIPE
    parent = await asyncio.create_subprocess_exec(sys.executable, "-c", STARTS_ONE, cwd=ROOT, stdout=pipe)
    assert parent.stdout is not None
    assert await parent.stdout.readline() == b"ready\n"
    parent.kill()
    async with asyncio.timeout(DEADLINE):
        # Both write to this pipe: it closes once both have ended.
        assert await parent.stdout.read() == b""
    await parent.wait()
