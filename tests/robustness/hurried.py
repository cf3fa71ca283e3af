"""Start the bot as `nightjar serve` and `nightjar worker` do, with two waits shortened for tests.

`python -m tests.robustness.hurried serve --config app.yaml --host 127.0.0.1 --port 0`
"""

from __future__ import annotations

import argparse
from pathlib import Path

from bot.app.address import Address
from bot.app.load import load_config
from bot.app.serve import run_until_stopped
from bot.cli.support import start_logging
from bot.config.environment import Settings
from bot.core import logs
from bot.core.event_loop import run_on_fastest_loop
from bot.engine.service import WorkerPace
from bot.github.limits.ledger import Allowance

CHECK_AFTER = 0.5
"""Seconds until the check for a lost write; with the bot's own 12, each of a hundred kills would wait that long."""
ALLOWANCE = Allowance(rest_points_per_minute=9000)
"""GitHub's limits of writes, with more points: a hundred installations start in the same second, and for each, the App
spends points of its own on several tokens, 5 points each."""


def main() -> None:
    """Run the bot until a signal stops it."""
    parser = argparse.ArgumentParser()
    parser.add_argument("command", choices=["serve", "worker"])
    parser.add_argument("--config", type=Path)
    parser.add_argument("--host", default="127.0.0.1")
    parser.add_argument("--port", type=int, default=0)
    arguments = parser.parse_args()
    logs.configure()
    config, settings = load_config(arguments.config), Settings.from_environment()
    start_logging(settings)
    address = Address(arguments.host, arguments.port) if arguments.command == "serve" else None
    run_on_fastest_loop(
        run_until_stopped(config, settings, address, WorkerPace(check_after=CHECK_AFTER), allowance=ALLOWANCE)
    )


if __name__ == "__main__":
    main()
