"""The command line: `nightjar serve`, `worker`, `check-config`, and the commands of `LAZY`.

Exit status: 0 done, 1 failed, 2 bad usage. What was asked for goes to standard output, everything else to standard
error. What keeps a command from starting is one line there for each fault, and never a traceback.
"""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import click

from bot.cli.lazy import LazyGroup
from bot.cli.support import AS_WRITTEN, config_option, json_option, stopping_at_faults
from bot.core import logs
from bot.core.terminal import printable

CONFIG_IS_GOOD = "{path}: no faults; {count} configured"
WARNING = "{path}: warning: {warning}"
FILE_IS_GOOD = "{path}: no faults; whether app.yaml switches on what it sets cannot be seen here"


LAZY = {
    "backup": ("bot.cli.backup:backup", "Copy the SQLite database while a server works on it."),
    "restore": ("bot.cli.backup:restore", "Put a backup in the place of the SQLite database."),
    "ci": ("bot.cli.ci:ci", "Tell a CI what to do."),
    "doctor": ("bot.cli.doctor:doctor", "Check what the bot depends on, and say what to do."),
    "deliveries": ("bot.cli.deliveries:deliveries", "List what came in and what was done."),
    "replay": ("bot.cli.deliveries:replay", "Do a delivery again."),
    "token": ("bot.cli.token:token", "Make, list and revoke tokens for the API of private repositories."),
    "timer": ("bot.cli.timers:timer", "List what a clock starts, or start it now."),
    "results": ("bot.cli.results:results", "Check, upload and take in results of hardware labs."),
}


metrics_option = click.option(
    "--metrics-port",
    type=click.IntRange(0, 65535),
    default=None,
    help="Serve /metrics here, with /healthz and /readyz, and not on the main port; 0 takes a free one.",
)


@click.group(
    cls=LazyGroup, lazy=LAZY, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100}
)
@click.version_option(package_name="nightjar-ci", prog_name="nightjar")
def cli() -> None:
    """Carry webhooks from GitHub to handlers, and what they decide back.

    Secrets and places come from the environment: GITHUB_APP_ID, GITHUB_PRIVATE_KEY or GITHUB_PRIVATE_KEY_FILE,
    GITHUB_WEBHOOK_SECRET, DATABASE_URL. Everything else is in app.yaml.
    """
    # Before anything can log: standard output belongs to what was asked for.
    logs.configure()


@cli.command(
    short_help="Serve webhooks, and work.",
    epilog=f"""{AS_WRITTEN}
    Examples:
      nightjar serve
      nightjar serve --config app.yaml --host 0.0.0.0 --port 8080
    """,
)
@config_option
@click.option("--host", default="127.0.0.1", show_default=True, help="The address to listen on.")
@click.option(
    "--port",
    type=click.IntRange(0, 65535),
    default=8080,
    show_default=True,
    help='The port to listen on; 0 takes a free one, which the log line "serving" names.',
)
@metrics_option
def serve(config_path: Path, host: str, port: int, metrics_port: int | None) -> None:
    """Serve webhooks, and work: webhook server, worker and timers in one process.

    The log goes to standard error, as JSON lines unless that is a terminal. SIGTERM and SIGINT end the process when
    what is in progress has ended; a second one ends it at once, and nothing is lost by that.
    """
    _run(config_path, host, port, metrics_port)


@cli.command(
    short_help="Work without serving webhooks.",
    epilog=f"""{AS_WRITTEN}
    Example:
      DATABASE_URL=postgresql://... nightjar worker --config app.yaml
    """,
)
@config_option
@click.option("--host", default="127.0.0.1", show_default=True, help="The address of --metrics-port.")
@metrics_option
def worker(config_path: Path, host: str, metrics_port: int | None) -> None:
    """Work without serving webhooks: a further replica on the same PostgreSQL database."""
    _run(config_path, host, None, metrics_port)


def _run(config_path: Path, host: str, port: int | None, metrics_port: int | None) -> None:
    """Work, and serve where there is a port. What a server consists of is imported for a server alone."""
    from bot.app.serve import Address, run_until_stopped, start_logging
    from bot.config import load_config
    from bot.config.environment import Settings

    address, metrics = (Address(host, number) if number is not None else None for number in (port, metrics_port))
    with stopping_at_faults():
        config = load_config(config_path)
        settings = Settings.from_environment()
        start_logging(settings)
        asyncio.run(run_until_stopped(config, settings, address, metrics=metrics))


@cli.command(
    "check-config",
    short_help="Say what is wrong with app.yaml, or with a repository's own file.",
    epilog=f"""{AS_WRITTEN}
    Examples:
      nightjar check-config
      nightjar check-config deploy/app.yaml --json
      nightjar check-config .github/nightjar.yaml
    """,
)
@click.argument("path", type=click.Path(path_type=Path), default=Path("app.yaml"))
@click.option(
    "--repository-file", is_flag=True, help="PATH is a repository's own file, though not called .github/nightjar.yaml."
)
@json_option
def check_config(path: Path, repository_file: bool, as_json: bool) -> None:
    """Say what is wrong with a configuration file; PATH defaults to app.yaml.

    Each fault is a line: file:line:column: key: what is wrong, and what is allowed. The exit status is 1 if there are
    any. With --json, a list of them. What may be said and is hardly meant is a warning, on standard error. A file
    .github/nightjar.yaml is what a repository sets for itself.
    """
    from bot.cli.config_warnings import warnings_of
    from bot.config import check, load_config
    from bot.config.repository_file import is_repository_file, load_repository_file

    own = repository_file or is_repository_file(path)
    faults = check(path, load_repository_file if own else load_config)
    if as_json:
        click.echo(json.dumps([fault.as_json() for fault in faults], indent=2))
    elif faults:
        for fault in faults:
            click.echo(printable(str(fault)))
    elif own:
        click.echo(FILE_IS_GOOD.format(path=path))
    else:
        count = len(load_config(path).repositories)
        named = f"{count} repository" if count == 1 else f"{count} repositories"
        click.echo(CONFIG_IS_GOOD.format(path=path, count=named))
    if not faults and not own:
        for warning in warnings_of(load_config(path)):
            click.echo(printable(WARNING.format(path=path, warning=warning)), err=True)
    raise SystemExit(1 if faults else 0)


def main() -> None:
    """Run the command that the process was started with."""
    cli(prog_name="nightjar")


if __name__ == "__main__":
    main()
