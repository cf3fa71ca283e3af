"""`nightjar-lab nightly`: print the commit to test."""

from __future__ import annotations

import json
import os
from pathlib import Path

import click

from nightjar_formats.terminal import escape_controls
from nightjar_lab.cli import texts
from nightjar_lab.cli.errors import CommandFailed, needed, one_line_errors
from nightjar_lab.cli.options import (
    AS_WRITTEN,
    SHA,
    bucket_option,
    json_option,
    prefix_option,
    repository_option,
    url_option,
)
from nightjar_lab.nightly import (
    NightlyOfBot,
    NightlyOfBucket,
    NightlySource,
    nightly_commit,
    wait_for_nightly,
)

PAUSE = 60.0
TIMEOUT = 12 * 3600.0


@click.command(
    epilog=f"""{AS_WRITTEN}
    Examples:
      git checkout "$(nightjar-lab nightly)"
      while SHA=$(nightjar-lab nightly --wait); do ./test.sh "$SHA"; done
      nightjar-lab nightly --wait --after "$LAST" --timeout 3600
    """,
)
@repository_option
@url_option
@bucket_option
@prefix_option
@click.option("--wait", "waits", is_flag=True, help="Wait until there is another commit than the last one.")
@click.option("--after", "last_tested", type=SHA, help="The last commit that you tested, for --wait.")
@click.option(
    "--state",
    type=click.Path(path_type=Path, dir_okay=False),
    help="Where --wait remembers the last commit that it printed. Default: a file of the repository in "
    "~/.local/state/nightjar-lab. Two loops on one machine need a file each.",
)
@click.option(
    "--timeout",
    type=click.FloatRange(0),
    default=TIMEOUT,
    show_default=True,
    help="Seconds that --wait waits; then the exit status is 1.",
)
@click.option(
    "--pause",
    type=click.FloatRange(1),
    default=PAUSE,
    show_default=True,
    help="Seconds between two requests to the bot.",
)
@json_option
def nightly(
    repository: str | None,
    url: str | None,
    bucket: str | None,
    prefix: str,
    waits: bool,
    last_tested: str | None,
    state: Path | None,
    timeout: float,
    pause: float,
    as_json: bool,
) -> None:
    """Print the SHA of the commit to test.

    Asks the bot at NIGHTJAR_URL; without it, reads nightly.json in the bucket. NIGHTJAR_TOKEN is sent for a private
    repository. With --wait, prints the commit once it is another one than --after, or than the one that was printed
    last by --wait.
    """
    repository = needed(repository, "--repository", "NIGHTJAR_REPOSITORY", texts.WHAT_REPOSITORY)
    assert repository is not None
    source = source_of(repository, url, bucket, prefix)
    with one_line_errors():
        if waits:
            file = None if last_tested else state or state_file(repository)
            last = last_tested or read_state(file)
            commit = wait_for_nightly(source, last, pause=pause, timeout=timeout, report=_report)
            write_state(file, commit.sha)
        else:
            commit = nightly_commit(source)
    click.echo(json.dumps(dict(commit.fields), indent=2) if as_json else commit.sha)


def source_of(repository: str, url: str | None, bucket: str | None, prefix: str) -> NightlySource:
    """Return the source of the commit: the bot if its address is known, else the bucket. Raises `BadSettings`."""
    if url:
        return NightlyOfBot(url, repository, os.environ.get("NIGHTJAR_TOKEN", "").strip())
    name = needed(bucket, "--url (NIGHTJAR_URL) or --bucket", "NIGHTJAR_BUCKET", texts.WHAT_SOURCE)
    return NightlyOfBucket(name, prefix, repository)


def state_file(repository: str) -> Path:
    """Return the file that stores the last commit of a repository (XDG base directories)."""
    base = Path(os.environ.get("XDG_STATE_HOME") or Path.home() / ".local/state")
    return base / "nightjar-lab" / f"{repository.replace('/', '--')}.nightly"


def read_state(file: Path | None) -> str:
    """Return the commit that was printed last; empty if none was. Raises `CommandFailed`."""
    try:
        return file.read_text(encoding="ascii").strip() if file is not None else ""
    except FileNotFoundError:
        return ""
    except (OSError, ValueError) as error:
        raise CommandFailed(texts.STATE_UNREADABLE.format(file=file, reason=_reason(error))) from None


def write_state(file: Path | None, sha: str) -> None:
    """Store the printed commit atomically. Raises `CommandFailed`."""
    if file is None:
        return
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        new_file = file.with_name(f"{file.name}.new")
        new_file.write_text(f"{sha}\n", encoding="ascii")
        new_file.replace(file)
    except OSError as error:
        raise CommandFailed(texts.STATE_NOT_WRITTEN.format(file=file, reason=_reason(error))) from None


def _reason(error: Exception) -> str:
    return (getattr(error, "strerror", None) or type(error).__name__).lower()


def _report(text: str) -> None:
    click.echo(escape_controls(text), err=True)
