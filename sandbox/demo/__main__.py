"""Play it: `python -m sandbox.demo [--once] [--verbose]`."""

from __future__ import annotations

import asyncio
import os
import shlex
import signal
import sys
import time
import webbrowser
from collections.abc import Mapping, Sequence
from contextlib import suppress

import click

from bot.core.logs import configure
from sandbox.demo.conversation import Conversation
from sandbox.demo.device_requests import DeviceRequests
from sandbox.demo.lab import ROOT
from sandbox.demo.new_lab import NewLab
from sandbox.demo.nightly_runs import NightlyRuns
from sandbox.demo.promises import Promise, check_promises, promises
from sandbox.demo.stage import LOG, DemoStage, stage

INTRODUCTION = "Starting GitHub, Jenkins, S3 and the bot on this machine, and playing two weeks of two labs …"
READY = "Ready after {seconds:.0f} s.\n"
MEANWHILE = "\nMeanwhile a contributor, two labs and two agents act on new pull requests, for about a minute …"
PASSED = "{count} checks passed after {seconds:.0f} s: each page above, and all that people, labs and agents did."
BE_A_LAB = """
To be a lab, type this in another terminal, in an empty folder:

  echo 'def test_adds(): assert 1 + 1 == 2' > test_ops.py
  python3 -m venv venv && . venv/bin/activate && pip install --quiet {lab} pytest
  {export}
  {doctor}
  {run}
"""
WHERE = "The log is {log}; with -v, all of it is printed. Press Ctrl-C to stop."
NO_BROWSER = ("CI", "NO_BROWSER")
"""Variables of environments in which no browser is opened."""
DISPLAYS = ("DISPLAY", "WAYLAND_DISPLAY")

BROKEN, INTERRUPTED = 1, 128 + signal.SIGINT


async def play(*, once: bool, verbose: bool) -> int:
    """Play the demo until it ends or is interrupted; returns the exit code."""
    task = asyncio.current_task()
    assert task is not None
    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, task.cancel)
    try:
        return await _play_demo(once=once, verbose=verbose)
    except asyncio.CancelledError:
        return INTERRUPTED


async def _play_demo(*, once: bool, verbose: bool) -> int:
    started_at = time.monotonic()
    click.echo(INTRODUCTION)
    async with stage(verbose=verbose) as demo:
        click.echo(READY.format(seconds=time.monotonic() - started_at))
        click.echo(listed(promises(demo)))
        click.echo(MEANWHILE)
        if not once and has_browser(os.environ):
            await asyncio.to_thread(webbrowser.open, promises(demo)[0].url)
        try:
            await _act(demo)
        except AssertionError as error:
            click.echo(f"\n✘ {error}\nThe log is {LOG}.", err=True)
            return BROKEN
        click.echo(PASSED.format(count=len(demo.passed), seconds=time.monotonic() - started_at))
        if not once:
            click.echo(_be_a_lab(demo))
            click.echo(WHERE.format(log=LOG))
            with suppress(asyncio.CancelledError):
                await asyncio.Event().wait()
    return 0


async def _act(demo: DemoStage) -> None:
    await check_promises(demo)
    await Conversation(demo).act()
    await NightlyRuns(demo).act()
    await NewLab(demo).act()
    await DeviceRequests(demo).act()
    assert not demo.github.violations, f"the bot broke GitHub's rules: {demo.github.violations}"


def listed(things: Sequence[Promise]) -> str:
    """Return a line for each promise, with the addresses below each other."""
    width = max(len(promise.title) for promise in things) + 1
    return "\n".join(f"  {promise.title + ':':{width}} {promise.url}   {promise.hint}" for promise in things)


def has_browser(environment: Mapping[str, str], platform: str = sys.platform) -> bool:
    """Return whether a browser can be opened: somebody is there, and has a display."""
    if any(environment.get(name) for name in NO_BROWSER):
        return False
    return platform in ("darwin", "win32") or any(environment.get(name) for name in DISPLAYS)


def _be_a_lab(demo: DemoStage) -> str:
    """Return the commands for another terminal with which to act as a lab of this demo."""
    export, doctor, run = demo.lab_commands
    run = run.replace(" -- ", " --sha nightly -- ")
    return BE_A_LAB.format(lab=shlex.quote(str(ROOT / "lab")), export=export, doctor=doctor, run=run)


@click.command()
@click.option("--once", is_flag=True, help="Check every page and act, and stop; exit 0 if each check passed.")
@click.option("-v", "--verbose", is_flag=True, help="Print all that happens, which is otherwise only in the log.")
def main(once: bool, verbose: bool) -> None:
    """Show two weeks of a compiler and its labs, and play people, labs and agents on a simulated GitHub."""
    LOG.parent.mkdir(exist_ok=True)
    with LOG.with_suffix(".bot.log").open("w", encoding="utf-8") as log:
        configure(stream=log)  # of the bot that plays the two weeks in this process
        sys.exit(asyncio.run(play(once=once, verbose=verbose)))


if __name__ == "__main__":
    main()
