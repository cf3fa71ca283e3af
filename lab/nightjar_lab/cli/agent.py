"""`nightjar-lab agent`: test what people requested, on a device of this machine."""

from __future__ import annotations

import logging
import os
import secrets
import shutil
import signal
import sys
from pathlib import Path

import click

from nightjar_formats.terminal import escape_controls
from nightjar_lab import texts as agent_texts
from nightjar_lab.agent import Agent, AgentSettings, CannotStart
from nightjar_lab.api import ABILITIES
from nightjar_lab.cli import texts
from nightjar_lab.cli.bot import bot_client, token_command_option, words_of
from nightjar_lab.cli.errors import BadSettings, CommandFailed, needed
from nightjar_lab.cli.options import PAIR, pass_option

MB = 1 << 20


class AgentFormatter(logging.Formatter):
    """Formats messages so that no text from outside can pass for a line of the agent or of the CI system.

    Each further line of a message begins with a bar, and GitHub Actions sees no workflow command in it.

    The runner obeys lines that begin with `::`, and `##[` anywhere in a line.
    https://docs.github.com/en/actions/reference/workflows-and-actions/workflow-commands
    """

    def format(self, record: logging.LogRecord) -> str:
        """Return the lines of a message."""
        first, *further_lines = (
            escape_controls(line).replace("##[", "## [") for line in super().format(record).splitlines()
        )
        further_lines = [f"| {line}" for line in further_lines]
        if further_lines and os.environ.get("GITHUB_ACTIONS"):
            token = secrets.token_hex(16)
            further_lines = [f"::stop-commands::{token}", *further_lines, f"::{token}::"]
        return "\n".join([first, *further_lines])


@click.command()
@click.option("--url", envvar="NIGHTJAR_URL", show_envvar=True, help="The bot's address.")
@click.option("--lab", envvar="NIGHTJAR_LAB", show_envvar=True, help="Your lab in app.yaml.")
@click.option("--target", "targets", multiple=True, help="A target with a device here; may be repeated.")
@token_command_option
@click.option(
    "--folder",
    type=click.Path(path_type=Path),
    default=Path("nightjar-agent"),
    show_default=True,
    help="The agent's working folder.",
)
@click.option("--timeout", type=float, help="Seconds that a suite may take; at most what the bot allows.")
@click.option("--clone-url", help="A mirror to fetch commits from, instead of the address that the bot names.")
@click.option("--upload-command", help="Uploads the files of NIGHTJAR_RESULTS with credentials of your own.")
@click.option("--log-url", help="Where the log can be read; the check run links it.")
@click.option("--environment", "pairs", type=PAIR, multiple=True, metavar="KEY=VALUE", help="What the device is.")
@pass_option
@click.option(
    "--least-free",
    type=int,
    default=1024,
    show_default=True,
    metavar="MB",
    help="Claim no job with less free disk space than this.",
)
@click.option(
    "--can",
    type=click.Choice(ABILITIES),
    multiple=True,
    help="What COMMAND can do: run only the tests of NIGHTJAR_TESTS; run each NIGHTJAR_REPEAT times; run in two "
    "checkouts in turn. May be repeated.",
)
@click.option("--once", is_flag=True, help="Do one job, or none, and end; status 1 if it fails.")
@click.argument("command", metavar="-- COMMAND...", nargs=-1, type=click.UNPROCESSED)
def agent(
    url: str | None,
    lab: str | None,
    targets: tuple[str, ...],
    token_command: str | None,
    folder: Path,
    timeout: float | None,
    clone_url: str | None,
    upload_command: str | None,
    log_url: str | None,
    pairs: tuple[str, ...],
    passed: tuple[str, ...],
    least_free: int,
    can: tuple[str, ...],
    once: bool,
    command: tuple[str, ...],
) -> None:
    """Claim jobs of a lab and run COMMAND for each, in a clean checkout.

    COMMAND writes its reports into the folder NIGHTJAR_RESULTS. NIGHTJAR_URL, NIGHTJAR_LAB and NIGHTJAR_LAB_TOKEN say
    where the bot is and who you are. COMMAND runs a stranger's code: isolate it, as docs/labs-security.md says.
    """
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(AgentFormatter("%(asctime)s %(levelname)s %(message)s"))
    logging.basicConfig(level=logging.INFO, handlers=[handler])
    needed(url, "--url", "NIGHTJAR_URL", texts.WHAT_URL)
    needed(lab, "--lab", "NIGHTJAR_LAB", texts.WHAT_LAB)
    needed(targets, "--target", "", texts.WHAT_TARGET)
    bot = bot_client({"url": url, "lab": lab, "token_command": token_command})
    if not command:
        raise BadSettings(agent_texts.NO_COMMAND)
    settings = AgentSettings(
        targets=_targets(targets),
        command=command,
        folder=folder.resolve(),
        upload_command=words_of("--upload-command", upload_command),
        clone_url=clone_url,
        log_url=log_url,
        timeout=timeout,
        least_free=least_free * MB,
        environment=tuple((key, value) for key, _, value in (pair.partition("=") for pair in pairs)),
        passed=passed,
        can=tuple(dict.fromkeys(can)),
    )
    if shutil.which("git") is None:
        raise CommandFailed(agent_texts.NO_GIT)
    worker = Agent(bot, settings)

    def stop(*_: object) -> None:
        worker.stop()
        if worker.idle:  # perhaps in a long poll; the bot gives no job to a client that has left
            raise SystemExit(0)

    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, stop)
    try:
        good = worker.run(once=once)
    except CannotStart as error:
        raise CommandFailed(str(error)) from None
    if once and not good:
        raise SystemExit(1)


def _targets(option_values: tuple[str, ...]) -> tuple[str, ...]:
    """Return the names of targets, each once."""
    return tuple(dict.fromkeys(name.strip() for part in option_values for name in part.split(",") if name.strip()))
