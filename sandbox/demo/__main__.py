"""Play it: `python -m sandbox.demo [--once] [--logs]`."""

from __future__ import annotations

import asyncio
import shlex
import signal
import sys
from contextlib import suppress

import click

from bot.core.page_paths import help_path, view_path
from sandbox.demo.conversation import Conversation
from sandbox.demo.device_requests import DeviceRequests
from sandbox.demo.lab import ROOT
from sandbox.demo.new_lab import NewLab
from sandbox.demo.nightly_runs import NightlyRuns
from sandbox.demo.stage import REPOSITORY, DemoStage, stage

INTRODUCTION = """\
GitHub: {github}   Jenkins: {jenkins}   bot: {bot}   S3: an empty bucket
@hubot has write access to octocat/compiler; @octo-friend has no access.
"""

BE_A_LAB = """
To be a lab, type this in another terminal. In an empty folder, it installs the lab kit for any Python from 3.9 on:

  echo 'def test_adds(): assert 1 + 1 == 2' > test_ops.py
  python3 -m venv venv && . venv/bin/activate && pip install --quiet {lab} pytest
  {export}
  {doctor}
  {run}"""

BROKEN, INTERRUPTED = 1, 128 + signal.SIGINT


async def play(*, once: bool, logs: bool) -> int:
    """Play the demo until it ends or is interrupted; returns the exit code."""
    playing = asyncio.current_task()
    assert playing is not None
    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, playing.cancel)
    try:
        return await _played(once=once, logs=logs)
    except asyncio.CancelledError:
        return INTERRUPTED


async def _played(*, once: bool, logs: bool) -> int:
    async with stage() as demo:
        click.echo(INTRODUCTION.format(github=demo.github.url, jenkins=demo.jenkins.url, bot=demo.bot.url))
        code = await _acted(demo)
        if logs or code:
            click.echo("\n".join(demo.bot.output), err=True)
        if code == 0:
            click.echo(f"\n{len(demo.passed)} checks passed:")
            click.echo("\n".join(f"  ✔ {check}" for check in demo.passed))
        if not once and code == 0:
            click.echo(_addresses(demo))
            with suppress(asyncio.CancelledError):
                await asyncio.Event().wait()
    return code


async def _acted(demo: DemoStage) -> int:
    try:
        await Conversation(demo).act()
        await NightlyRuns(demo).act()
        await NewLab(demo).act()
        await DeviceRequests(demo).act()
        assert not demo.github.violations, f"the bot broke GitHub's rules: {demo.github.violations}"
    except AssertionError as broken:
        click.echo(f"\n✘ {broken}", err=True)
        return BROKEN
    return 0


def _addresses(demo: DemoStage) -> str:
    pages = {
        "the dashboard": f"{demo.bot.url}{view_path(REPOSITORY)}",
        "the conversation": f"{demo.github.url}/{REPOSITORY}/pull/1",
        "what the lab tested": f"{demo.github.url}/{REPOSITORY}/pull/2",
        "tests on request": f"{demo.github.url}/{REPOSITORY}/pull/3",
        "all commits": f"{demo.github.url}/{REPOSITORY}",
        "skipped commits": f"{demo.bot.url}/api/v1/repos/{REPOSITORY}/nightly",
        "what CI should do": f"{demo.bot.url}/api/v1/repos/{REPOSITORY}/pulls/1/decision",
        "the commands": f"{demo.bot.url}{help_path(REPOSITORY)}",
        "the bot's health": f"{demo.bot.url}/readyz",
        "the bot's metrics": f"{demo.bot.url}/metrics",
    }
    lines = [f"  {name + ':':20} {address}" for name, address in pages.items()]
    return "\n".join(["\nPages:", *lines, _be_a_lab(demo), "\nPress Ctrl-C to stop."])


def _be_a_lab(demo: DemoStage) -> str:
    """Return the commands for another terminal with which to act as a lab of this demo."""
    export, doctor, run = demo.lab_commands
    run = run.replace(" -- ", " --sha nightly -- ")
    return BE_A_LAB.format(lab=shlex.quote(str(ROOT / "lab")), export=export, doctor=doctor, run=run)


@click.command()
@click.option("--once", is_flag=True, help="Stop at the end; exit 0 if every check passed.")
@click.option("--logs", is_flag=True, help="Print the bot's log lines too.")
def main(once: bool, logs: bool) -> None:
    """Play a contributor's conversation with the bot, the nightly runs of a hardware lab, and tests on request."""
    sys.exit(asyncio.run(play(once=once, logs=logs)))


if __name__ == "__main__":
    main()
