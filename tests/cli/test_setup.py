"""`nightjar serve` without credentials, as a process."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from bot.config.private_key import one_line
from tests.config.test_environment import GOOD, PEM
from tests.running import run, start
from tests.waiting import DEADLINE


async def test_a_server_that_others_can_reach_starts_no_setup(tmp_path: Path) -> None:
    finished = await run("serve", "--host", "0.0.0.0", "--port", "0", env={}, cwd=tmp_path)
    assert finished.status == 1
    lines = finished.err.splitlines()
    names = ["GITHUB_APP_ID", "GITHUB_PRIVATE_KEY", "GITHUB_WEBHOOK_SECRET", "To"]
    assert [line.split()[0] for line in lines] == names
    assert "without --host" in lines[-1]


@pytest.mark.parametrize("repeated", [False, True])
async def test_a_setup_prints_its_address_and_ends_with_a_signal(tmp_path: Path, repeated: bool) -> None:
    if repeated:  # the credentials exist, but app.yaml does not
        lines = [f"{name}={value}\n" for name, value in {**GOOD, "GITHUB_PRIVATE_KEY": one_line(PEM)}.items()]
        (tmp_path / "nightjar.env").write_text("".join(lines))
    process = await start("serve", "--port", "0", env={}, cwd=tmp_path)
    assert process.stderr is not None
    printed = ""
    while "/setup?token=" not in printed:
        line = await asyncio.wait_for(process.stderr.readline(), DEADLINE)
        assert line, printed
        printed += line.decode()
    assert ("continue the set-up" in printed) == repeated
    assert "http://127.0.0.1:" in printed
    process.terminate()
    output, err = await asyncio.wait_for(process.communicate(), DEADLINE)
    assert (process.returncode, output) == (0, b""), err
    assert b"Traceback" not in err
