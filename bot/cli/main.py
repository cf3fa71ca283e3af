"""The command line: `nightjar serve`, `worker`, `check-config`, and the commands of `LAZY`.

Exit status: 0 done, 1 failed, 2 bad usage. Results go to standard output, everything else to standard error. If a
command cannot start, it prints one line for each error, and never a traceback.
"""

from __future__ import annotations

import functools
import gc
import json
import sys
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING

import click
from nightjar_formats.terminal import escape_controls
from nightjar_lab.cli.colors import ATTENTION, BAD, GOOD, colored
from nightjar_lab.cli.lazy import LazyGroup

from bot.cli.env_file import wants_setup
from bot.cli.support import (
    AS_WRITTEN,
    config_option,
    default_config,
    env_file_option,
    json_option,
    start_logging,
    stopping_at_faults,
)
from bot.cli.texts import CONFIG_VALID, CONFIG_WARNING, MENTIONS_SOMEBODY, REPOSITORY_FILE_VALID
from bot.core import logs

if TYPE_CHECKING:
    from bot.config import Config

LAZY = {
    "backup": ("bot.cli.backup:backup", "Back up the SQLite database, even while a server runs."),
    "restore": ("bot.cli.backup:restore", "Replace the SQLite database with a backup."),
    "database": ("bot.cli.database:database", "Move the database to another place."),
    "ci": ("bot.cli.ci:ci", "Decide for CI: what to run, and which images to use."),
    "doctor": ("bot.cli.doctor:doctor", "Check everything the bot depends on, and say how to fix each failure."),
    "deliveries": ("bot.cli.deliveries:deliveries", "List deliveries and what the bot did for each."),
    "replay": ("bot.cli.deliveries:replay", "Process a delivery again."),
    "token": ("bot.cli.token:token", "Create, list and revoke tokens for the API of private repositories."),
    "lab": ("bot.cli.token:lab", "Add a lab, and manage the tokens of labs."),
    "timer": ("bot.cli.timers:timer", "List timers, or run one now."),
    "schema": ("bot.cli.schema:schema", "Print the JSON Schema of app.yaml, or of a repository's own file."),
    "results": ("bot.cli.results.group:results", "Check, upload and ingest results of hardware labs."),
}


STDIN, STDIN_NAME = Path("-"), "<stdin>"

metrics_option = click.option(
    "--metrics-port",
    type=click.IntRange(0, 65535),
    default=None,
    help="Serve /metrics, /healthz and /readyz on this port instead of the main one; 0 picks a free port.",
)

watch_option = click.option(
    "--watch", is_flag=True, help="Take over app.yaml and its folder whenever a file changes, as after SIGHUP."
)


@click.group(
    cls=LazyGroup, lazy=LAZY, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100}
)
@click.version_option(package_name="nightjar-ci", prog_name="nightjar")
def cli() -> None:
    """Run and operate Nightjar, a GitHub App that automates CI.

    Secrets and addresses come from the environment, or from nightjar.env: GITHUB_APP_ID, GITHUB_PRIVATE_KEY or
    GITHUB_PRIVATE_KEY_FILE, GITHUB_WEBHOOK_SECRET, DATABASE_URL. Everything else is in app.yaml.
    """
    # Configure the log first: standard output is for results, standard error for the log.
    logs.configure()


@cli.command(
    short_help="Run the bot (webhooks, jobs, timers).",
    epilog=f"""{AS_WRITTEN}
    Examples:
      nightjar serve
      nightjar serve --config app.yaml --host 0.0.0.0 --port 8080
    """,
)
@config_option
@env_file_option(exposed=True)
@click.option("--host", default="127.0.0.1", show_default=True, help="The address to listen on.")
@click.option(
    "--port",
    type=click.IntRange(0, 65535),
    default=8080,
    show_default=True,
    help='The port to listen on; 0 picks a free one, which the log line "serving" names.',
)
@metrics_option
@watch_option
@click.option(
    "--remote-setup",
    is_flag=True,
    help="Without credentials: let other machines reach the set-up, at --host. Its address contains a token.",
)
def serve(
    config_path: Path, env_file: Path, host: str, port: int, metrics_port: int | None, watch: bool, remote_setup: bool
) -> None:
    """Run the bot: webhook server, worker and timers in one process.

    Without credentials, it first prints an address: open it in a browser to set the App up.

    The log goes to standard error, as JSON lines unless that is a terminal. After SIGTERM or SIGINT the process ends
    when its jobs in progress are done. A second signal ends it at once; no job is lost.

    After SIGHUP it takes over a changed app.yaml, or keeps the last good one and says why in the log and on /readyz.
    """
    with stopping_at_faults():
        if wants_setup(env_file, config_path):
            from bot.cli.setup import run_setup

            run_setup(config_path, env_file, host, port, metrics_port, remote=remote_setup, watch=watch)
            return
    _run(config_path, host, port, metrics_port, watch=watch)


@cli.command(
    short_help="Run jobs and timers without the webhook server.",
    epilog=f"""{AS_WRITTEN}
    Example:
      DATABASE_URL=postgresql://... nightjar worker --config app.yaml
    """,
)
@config_option
@env_file_option()
@click.option("--host", default="127.0.0.1", show_default=True, help="The address of --metrics-port.")
@metrics_option
@watch_option
def worker(config_path: Path, host: str, metrics_port: int | None, watch: bool) -> None:
    """Run jobs and timers without the webhook server: another replica on the same PostgreSQL database."""
    _run(config_path, host, None, metrics_port, watch=watch)


def _run(config_path: Path, host: str, port: int | None, metrics_port: int | None, *, watch: bool) -> None:
    """Run the worker, with a server if there is a port. Imports are here so that other commands start fast."""
    from bot.app.address import Address

    # What is imported stays. `freeze_startup_objects` enables it again.
    gc.disable()
    with stopping_at_faults(), ExitStack() as opened:
        # Before the imports, which take seconds: whoever connects meanwhile waits and is not refused.
        address, metrics = (
            Address(host, number).opened(opened) if number is not None else None for number in (port, metrics_port)
        )

        from bot.app.config_file import ConfigFile
        from bot.app.load import load_config
        from bot.app.serve import run_until_stopped
        from bot.config.environment import Settings
        from bot.core.event_loop import run_on_fastest_loop

        file = ConfigFile(config_path)
        config = load_config(config_path)
        settings = Settings.from_environment()
        start_logging(settings)
        run_on_fastest_loop(run_until_stopped(config, settings, address, metrics=metrics, file=file, watch=watch))


@cli.command(
    "check-config",
    short_help="Validate app.yaml, or a repository's own file.",
    epilog=f"""{AS_WRITTEN}
    Examples:
      nightjar check-config
      nightjar check-config deploy/app.yaml --json
      nightjar check-config .github/nightjar.yaml
      git show HEAD:app.yaml | nightjar check-config -
    """,
)
@click.argument("path", type=click.Path(path_type=Path, allow_dash=True), default=default_config)
@click.option(
    "--repository-file",
    is_flag=True,
    help="PATH is a repository's own file under another name than .github/nightjar.yaml.",
)
@json_option
def check_config(path: Path, repository_file: bool, as_json: bool) -> None:
    """Validate a configuration file with its folder (app.d for app.yaml); PATH defaults to app.yaml or nightjar.yaml.

    Prints one line per error: file:line:column: key: what is wrong, and what is allowed. With --json, prints a list of
    them. The exit status is 1 if there are any. Warnings go to standard error. A file named .github/nightjar.yaml is
    checked as a repository's own settings. With - as PATH, standard input is checked, which has no folder.
    """
    from bot.app.load import load_config, load_repository_file, parse_config, parse_own_file
    from bot.cli.config_warnings import place_of, warnings_of
    from bot.config import check
    from bot.config.load import merged_text, read_merged
    from bot.config.repository_file import is_repository_file
    from bot.config.source import MAX_BYTES

    is_own_file = repository_file or is_repository_file(path)
    raw = sys.stdin.buffer.read(MAX_BYTES + 1) if path == STDIN else None
    name = path if raw is None else STDIN_NAME

    def load_own_file(path: str | Path) -> object:
        return load_repository_file(path) if raw is None else parse_own_file(raw, STDIN_NAME)

    @functools.cache
    def load(path: str | Path) -> Config:
        return load_config(path) if raw is None else parse_config(raw, STDIN_NAME)

    faults = check(path, load_own_file if is_own_file else load)
    if as_json:
        click.echo(json.dumps([fault.as_json() for fault in faults], indent=2))
    elif faults:
        for fault in faults:
            click.echo(colored(escape_controls(str(fault)), BAD))
    elif is_own_file:
        click.echo(colored(REPOSITORY_FILE_VALID.format(path=name), GOOD))
    else:
        click.echo(colored(CONFIG_VALID.format(path=name, count=_counted(load(path))), GOOD))
    if not faults and not is_own_file:
        merged = read_merged(path)[0] if raw is None else merged_text(raw, STDIN_NAME)
        config = load(path)
        if "mentions" not in config.model_fields_set:
            click.echo(MENTIONS_SOMEBODY, err=True)
        for warning in warnings_of(config):
            file, line, column = place_of(merged, warning.keys)
            text = CONFIG_WARNING.format(path=file, line=line, column=column, warning=warning.text)
            click.echo(colored(escape_controls(text), ATTENTION), err=True)
    raise SystemExit(1 if faults else 0)


def _counted(config: Config) -> str:
    """Say how many repositories and patterns app.yaml has."""
    named = len(config.configured.named)
    patterns = len(config.configured.entries) - named
    counts = [(named, "repository", "repositories"), (patterns, "pattern", "patterns")]
    return " and ".join(f"{count} {one if count == 1 else many}" for count, one, many in counts if count)


def main() -> None:
    """Run the command of this process."""
    with stopping_at_faults():
        cli(prog_name="nightjar")


if __name__ == "__main__":
    main()
