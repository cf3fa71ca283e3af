"""`nightjar serve` without credentials: set up in a browser first, then serve."""

from __future__ import annotations

import os
from pathlib import Path
from urllib.parse import urlsplit

import click

from bot.app.address import Address
from bot.app.config_file import ConfigFile
from bot.app.load import load_config
from bot.app.serve import run_until_stopped
from bot.app.setup.run import SetupPlace, is_this_machine, set_up
from bot.app.setup.texts import CONTINUE_SETUP, NEW_ADDRESS, OPEN_ADDRESS, SETUP_HOST
from bot.cli.env_file import add_to_environment, lacks_credentials, read_env_file
from bot.cli.support import start_logging
from bot.config.environment import Settings
from bot.core.errors import SettingsError
from bot.core.event_loop import run_on_fastest_loop


def check_setup_host(host: str, config_path: Path) -> None:
    """Raise `SettingsError` or `ConfigError` for a host that others reach: what is missing, and how to set it up."""
    if is_this_machine(host):
        return
    try:
        Settings.from_environment()
    except SettingsError as error:
        raise SettingsError([*error.problems, SETUP_HOST.format(host=host)]) from None
    load_config(config_path)


def run_setup(
    config_path: Path, env_file: Path, host: str, port: int, metrics_port: int | None, *, remote: bool, watch: bool
) -> None:
    """Set up in a browser, and serve on the same port afterwards.

    Raises `SettingsError`, `StartError`, and what serving raises.
    """
    if not remote:
        check_setup_host(host, config_path)

    def load_settings() -> Settings:
        add_to_environment(read_env_file(env_file), os.environ)
        settings = Settings.from_environment()
        start_logging(settings)
        return settings

    begun = None if lacks_credentials() else load_settings()
    greeting = OPEN_ADDRESS if begun is None else CONTINUE_SETUP

    def announce(address: str) -> None:
        opened_port = urlsplit(address).port
        click.echo(greeting.format(address=address, port=opened_port, env=env_file, config=config_path), err=True)

    def announce_again(address: str) -> None:
        click.echo(NEW_ADDRESS.format(address=address), err=True)

    place = SetupPlace(host, port, env_file, config_path, announce, announce_again, load_settings, remote)
    finished = run_on_fastest_loop(set_up(place, begun))
    if finished is None:
        return
    metrics = Address(host, metrics_port) if metrics_port is not None else None
    try:
        file = ConfigFile(config_path)
        config, settings = load_config(config_path), load_settings()
        run_on_fastest_loop(
            run_until_stopped(
                config,
                settings,
                finished.address,
                metrics=metrics,
                extra_pages=finished.pages,
                file=file,
                watch=watch,
            )
        )
    finally:
        for listening in finished.address.listening:
            listening.close()
