"""`nightjar-lab`: what a lab runs beside its devices."""

from __future__ import annotations

import argparse
import logging
import os
import shlex
import signal
import sys
from collections.abc import Sequence
from pathlib import Path

from nightjar_lab import texts
from nightjar_lab.agent import Agent, AgentSettings, CannotStart, targets_of
from nightjar_lab.api import BotClient, token_of_command

MB = 1 << 20


def parser() -> argparse.ArgumentParser:
    """Return what reads the command line."""
    whole = argparse.ArgumentParser(prog="nightjar-lab", description="What a lab runs beside its devices.")
    commands = whole.add_subparsers(dest="command_name", required=True)
    agent = commands.add_parser(
        "agent",
        help="Claim jobs, test them, upload the results.",
        description=(
            "Claim jobs of a lab and run COMMAND for each, in a clean checkout. COMMAND writes its reports "
            "into the folder NIGHTJAR_RESULTS. NIGHTJAR_URL, NIGHTJAR_LAB and NIGHTJAR_LAB_TOKEN say where the bot is "
            "and who you are. COMMAND runs a stranger's code: isolate it, as docs/labs.md says."
        ),
    )
    agent.add_argument("--url", default=os.environ.get("NIGHTJAR_URL"), help="The bot's address (NIGHTJAR_URL).")
    agent.add_argument("--lab", default=os.environ.get("NIGHTJAR_LAB"), help="The lab in app.yaml (NIGHTJAR_LAB).")
    agent.add_argument("--target", action="append", default=[], help="A target with a device here; may be repeated.")
    agent.add_argument("--token-command", help="Prints a token, such as an OIDC token, instead of NIGHTJAR_LAB_TOKEN.")
    agent.add_argument("--folder", type=Path, default=Path("nightjar-agent"), help="Where the agent works.")
    agent.add_argument("--timeout", type=float, help="Seconds that a suite may take; at most what the bot allows.")
    agent.add_argument("--clone-url", help="A mirror to fetch commits from, instead of the address that the bot names.")
    agent.add_argument("--upload-command", help="Uploads the files of NIGHTJAR_RESULTS with credentials of your own.")
    agent.add_argument("--log-url", help="Where the log can be read; the check run links it.")
    agent.add_argument("--environment", action="append", default=[], metavar="KEY=VALUE", help="What the device is.")
    agent.add_argument("--least-free", type=int, default=1024, metavar="MB", help="Claim nothing with less space.")
    agent.add_argument("--once", action="store_true", help="Do one job, or none, and end.")
    agent.add_argument("command", nargs="*", help="The command that tests, after --.")
    return whole


def main(arguments: Sequence[str] | None = None) -> int:
    """Run `nightjar-lab`; return 0 done, 1 failed, 2 bad usage."""
    reader = parser()
    given = reader.parse_args(arguments)
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(message)s", stream=sys.stderr)
    token = os.environ.get("NIGHTJAR_LAB_TOKEN", "")
    for name, value, what in (
        ("NIGHTJAR_URL", given.url, "the bot's address"),
        ("NIGHTJAR_LAB", given.lab, "the lab's name in app.yaml"),
        ("--target", given.target, "a target with a device here"),
        ("NIGHTJAR_LAB_TOKEN", token or given.token_command, "the lab's token, or use --token-command"),
    ):
        if not value:
            reader.error(texts.MISSING.format(name=name, what=what))
    if not given.command:
        reader.error(texts.NO_COMMAND)
    settings = AgentSettings(
        targets=targets_of(given.target),
        command=tuple(given.command),
        folder=given.folder.resolve(),
        upload_command=tuple(shlex.split(given.upload_command or "")),
        clone_url=given.clone_url,
        log_url=given.log_url,
        timeout=given.timeout,
        least_free=given.least_free * MB,
        environment=tuple((key, value) for key, _, value in (one.partition("=") for one in given.environment)),
    )
    try:
        bot = BotClient(
            given.url,
            given.lab,
            token_of_command(shlex.split(given.token_command)) if given.token_command else lambda: token,
        )
    except ValueError as error:
        reader.error(str(error))
    agent = Agent(bot, settings)

    def stop(*_: object) -> None:
        agent.stop()
        if agent.idle:  # perhaps in a long poll; the bot gives no job to a client that has left
            raise SystemExit(0)

    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, stop)
    try:
        agent.run(once=given.once)
    except CannotStart as error:
        sys.stderr.write(f"{error}\n")
        return 1
    return 0
