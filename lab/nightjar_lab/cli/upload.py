"""`nightjar-lab upload`: the last step of a lab's job. The server's command of this name reads app.yaml besides."""

from __future__ import annotations

import json
import os
import secrets
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timezone
from glob import glob
from pathlib import Path
from typing import Any, TypeVar

import click

from nightjar_formats.errors import UserError
from nightjar_formats.model import MANIFEST, Claims, RunKey
from nightjar_formats.runs.offline_check import check_files
from nightjar_formats.runs.upload import (
    SUFFIXES,
    PackedRun,
    UploadFile,
    WriteOnce,
    pack,
    pieces,
    reports_and_artifacts,
    send,
)
from nightjar_formats.strict_json import read_json
from nightjar_formats.terminal import escape_controls
from nightjar_lab.bot_upload import BotStore
from nightjar_lab.bucket import LabBucket
from nightjar_lab.cli import texts
from nightjar_lab.cli.bot import bot_client, token_command_option
from nightjar_lab.cli.check import files_argument, format_option, report_lines
from nightjar_lab.cli.errors import needed, one_line_errors
from nightjar_lab.cli.options import (
    AS_WRITTEN,
    DEFAULT_PREFIX,
    PAIR,
    RUN_ID,
    SHA,
    SHARD,
    SUITE,
    TARGET,
    BotAddress,
    json_option,
    lab_option,
    repository_option,
)
from nightjar_lab.stored import BotsRun, UploadVerifier

TIMEOUT = 120.0
"""Seconds that an upload waits for the bot: four times the 30 seconds between two listings of a bucket."""

Command = TypeVar("Command", bound=Callable[..., Any])


@dataclass(frozen=True)
class UploadPlace:
    """The destination of a lab's uploads: a repository's folder in a bucket; without a bucket, the bot."""

    repository: str
    bucket: str
    prefix: str


def applied(options: Sequence[Callable[[Command], Command]], command: Command) -> Command:
    """Add options to a command, in their order."""
    for option in reversed(options):
        command = option(command)
    return command


def place_options(command: Command) -> Command:
    """Add the options for the destination of a run."""
    options: list[Callable[[Command], Command]] = [
        repository_option,
        click.option(
            "--bucket",
            envvar="NIGHTJAR_BUCKET",
            show_envvar=True,
            help="The S3 bucket. Default: upload through the bot, with NIGHTJAR_URL and NIGHTJAR_LAB_TOKEN.",
        ),
        click.option(
            "--prefix",
            envvar="NIGHTJAR_PREFIX",
            show_envvar=True,
            help=f"The folder in the bucket. Default: {DEFAULT_PREFIX}",
        ),
        lab_option,
        token_command_option,
    ]
    return applied(options, command)


def claim_options(command: Command) -> Command:
    """Add the options that describe a run in its manifest."""
    options: list[Callable[[Command], Command]] = [
        click.option("--run-id", type=RUN_ID, help="The name of this run. Default: a new one each time."),
        click.option(
            "--attempt",
            type=click.IntRange(1, 10_000),
            default=1,
            show_default=True,
            help="Which attempt this is.",
        ),
        click.option("--shard", type=SHARD, help="The shard of the suite, as in 1/4."),
        click.option(
            "--pull-request", type=click.IntRange(1, 2**31 - 1), help="The pull request whose head was tested."
        ),
        click.option(
            "--environment",
            "pairs",
            type=PAIR,
            multiple=True,
            metavar="KEY=VALUE",
            help="What the tests ran on.",
        ),
        click.option("--log-url", help="The address of the lab's log."),
    ]
    return applied(options, command)


def wait_options(command: Command) -> Command:
    """Add the options that say whether to wait for the bot."""
    options: list[Callable[[Command], Command]] = [
        click.option(
            "--url",
            "--api",
            "url",
            type=BotAddress(),
            envvar="NIGHTJAR_URL",
            show_envvar=True,
            help="The bot's address.",
        ),
        click.option(
            "--wait/--no-wait",
            "waits",
            default=None,
            help="Wait until the bot has stored or refused the run. Default: if its address is known.",
        ),
        click.option(
            "--timeout",
            type=click.FloatRange(0),
            default=TIMEOUT,
            show_default=True,
            help="Seconds to wait for the bot.",
        ),
    ]
    return applied(options, command)


def upload_options(command: Command) -> Command:
    """Add all options of an upload."""
    options: list[Callable[[Command], Command]] = [
        files_argument,
        place_options,
        click.option("--target", type=TARGET, required=True, help="The target that the tests ran on."),
        click.option("--sha", type=SHA, required=True, help="The commit that was tested."),
        click.option("--suite", type=SUITE, required=True, help="The suite; a commit may have several."),
        claim_options,
        click.option("--exit-status", type=int, help="The exit status of the test command."),
        click.option("--started-at", help="When the tests started, as in 2026-11-20T05:10:00Z."),
        click.option("--finished-at", help="When the tests ended."),
        click.option("--job", help="The ID of the job, if somebody requested this run."),
        format_option,
        click.option(
            "--file",
            "named_files",
            multiple=True,
            metavar="PATTERN",
            help="Logs, images and JSON for the run's page, as in 'plots/*.png'. FILE... may be log.txt as well.",
        ),
        click.option(
            "--compress", type=click.Choice(list(SUFFIXES)), help="Compress files that are not compressed yet."
        ),
        click.option("--check/--no-check", "checks", default=True, show_default=True, help="Check the files first."),
        click.option("--dry-run", is_flag=True, help="Print the manifest; send nothing."),
        wait_options,
        json_option,
    ]
    return applied(options, command)


@click.command(
    epilog=f"""{AS_WRITTEN}
    Examples:
      nightjar-lab upload --target adreno --sha "$SHA" --suite operators --exit-status "$STATUS" results.jsonl
      nightjar-lab upload ... te.xml log.txt --file 'plots/*.png'
      nightjar-lab upload ... --shard 1/4 --run-id "$BUILD-1" --compress gz te.xml relax.xml
    """,
)
@upload_options
def upload(**options: Any) -> None:
    """Upload the files of one run, and then the manifest that makes the bot read it.

    Nothing is ever overwritten. After a failure, the same command with the same --run-id continues where it stopped.
    Without a bucket, the files go through the bot at NIGHTJAR_URL, with NIGHTJAR_LAB_TOKEN. With one, AWS_* variables
    say where S3 is and who you are. With NIGHTJAR_URL, the command waits until the bot has stored the run, prints the
    addresses of its page and its check run, and exits with 1 and the reason if the bot refuses it.
    """
    with one_line_errors():
        upload_files(upload_place(options), options)


def upload_place(options: Mapping[str, Any]) -> UploadPlace:
    """Return where to upload. Raises `BadSettings`."""
    needed(options["lab"], "--lab", "NIGHTJAR_LAB", texts.WHAT_LAB)
    repository = needed(options["repository"], "--repository", "NIGHTJAR_REPOSITORY", texts.WHAT_REPOSITORY)
    if not options["bucket"]:
        needed(options["url"], "--url", "NIGHTJAR_URL", texts.WHAT_UPLOAD_URL)
        bot_client(options)
    prefix = DEFAULT_PREFIX if options["prefix"] is None else options["prefix"]
    return UploadPlace(repository, options["bucket"] or "", prefix)


def upload_files(place: UploadPlace, options: Mapping[str, Any]) -> None:
    """Upload as the options say, and print the progress. Raises `UserError` and `BadSettings`."""
    needed(options["lab"], "--lab", "NIGHTJAR_LAB", texts.WHAT_LAB)
    waits = wants_wait(options)
    paths: tuple[Path, ...] = options["paths"]
    run_id = options["run_id"] or new_run_id()
    key = RunKey(place.repository, options["lab"], options["target"], options["sha"], run_id)
    reports, artifacts = reports_and_artifacts(paths, named_files(options.get("named_files", ())))
    with tempfile.TemporaryDirectory(prefix="nightjar-") as folder:
        files = list(pieces(reports, options["format_name"], options["compress"], Path(folder), artifacts))
        if options["checks"]:
            _check([file.path for file in files if not file.is_artifact], options["format_name"])
        packed_run = pack(key, place.prefix, files, claims_of(options))
        uploaded, check_run = [], ""
        if not options["dry_run"]:
            verifier = verifier_of(options, key) if waits else None
            # The bot itself says whether it accepts an upload through it.
            uploaded = send_run(packed_run, place.bucket, options, verifier if place.bucket else None)
            check_run = wait_for_bot(verifier, key, options["timeout"])
    address = f"s3://{place.bucket}/{packed_run.folder}{MANIFEST}"
    if not place.bucket:
        address = verifier_of(options, key).page
    if options["as_json"]:
        click.echo(json.dumps(_as_json(packed_run, place, uploaded, check_run), indent=2))
    elif options["dry_run"]:
        click.echo(f"{address}\n{packed_run.manifest.decode()}", nl=False)
    else:
        click.echo(address)


def named_files(patterns: Sequence[str]) -> list[Path]:
    """Return the files that patterns match, sorted for each pattern. Raises `UserError` for one that matches none."""
    files: list[Path] = []
    for pattern in patterns:
        # A name may have brackets itself, and a pattern may be absolute, which `Path.glob` does not accept.
        paths = [pattern] if Path(pattern).exists() else sorted(glob(pattern, recursive=True))  # noqa: PTH207
        matches = [path for path in paths if Path(path).is_file()]
        if not matches:
            raise UserError(texts.NO_FILE_MATCHES.format(pattern=pattern))
        files += map(Path, matches)
    return files


def wants_wait(options: Mapping[str, Any]) -> bool:
    """Say whether to wait for the bot. Raises `BadSettings` where its address is not known."""
    if options["waits"]:
        needed(options["url"], "--url", "NIGHTJAR_URL", texts.WHAT_WAIT_URL)
    return bool(options["url"]) and options["waits"] is not False and bool(options["timeout"])


def verifier_of(options: Mapping[str, Any], key: RunKey) -> UploadVerifier:
    """Return the object that asks the bot about a run."""
    return UploadVerifier(options["url"], key, os.environ.get("NIGHTJAR_TOKEN", "").strip())


def wait_for_bot(verifier: UploadVerifier | None, key: RunKey, timeout: float) -> str:
    """Wait for the bot and print what it says about a run; return its check run's address, if it is written in time.

    Raises `UserError` if the bot does not store the run. Without a verifier, the text says so.
    """
    words = {"lab": key.lab, "target": key.target, "sha": key.sha, "repository": key.repository}

    def say(text: str, **values: str) -> None:
        click.echo(escape_controls(text.format(**words, **values)), err=True)

    if verifier is None:
        click.echo(texts.NOT_VERIFIED.format(**words), err=True)
        return ""

    def stored(run: BotsRun) -> None:
        say(texts.STORED, page=verifier.page)
        if not run.check_run:
            say(texts.CHECK_RUN_PENDING)

    address = verifier.wait(timeout, stored)
    say(texts.CHECK_RUN if address else texts.CHECK_RUN_LATER, address=address)
    return address


def new_run_id() -> str:
    """Return a new run ID, unique even if two jobs begin in the same second."""
    return f"{datetime.now(timezone.utc):%Y%m%dT%H%M%SZ}-{secrets.token_hex(4)}"


def claims_of(options: Mapping[str, Any]) -> Claims:
    """Return the claims of a run from the options."""
    index, _, total = (options["shard"] or "1/1").partition("/")
    return Claims(
        suite=options["suite"],
        attempt=options["attempt"],
        shard_index=int(index),
        shard_total=int(total),
        started_at=options.get("started_at") or "",
        finished_at=options.get("finished_at") or "",
        exit_status=options.get("exit_status"),
        pull_request=options["pull_request"],
        environment=dict(pair.split("=", 1) for pair in options["pairs"]),
        log_url=options["log_url"] or "",
        job=options.get("job") or "",
    )


def send_run(
    packed_run: PackedRun, bucket: str, options: Mapping[str, Any], verifier: UploadVerifier | None = None
) -> list[bool]:
    """Send a run to a bucket, or without one to the bot, and print the progress. Raises `UserError`.

    The verifier asks first whether the bot accepts results for the repository. Returns for each file, the manifest
    last, whether it was uploaded now.
    """
    uploaded = []

    def progress(file: UploadFile | None, written: bool) -> None:
        uploaded.append(written)
        state = texts.UPLOADED if written else texts.ALREADY_UPLOADED
        line = texts.FILE.format(name=file.name, bytes=file.bytes, state=state) if file else f"{MANIFEST}: {state}"
        click.echo(escape_controls(line), err=True)

    place: WriteOnce
    if bucket:
        place = lab_bucket = LabBucket(bucket)
        lab_bucket.check_credentials()
    else:
        place = BotStore(bot_client({**options, "lab": packed_run.key.lab}), packed_run)
    if verifier is not None:
        verifier.check_repository()
    click.echo(texts.RUN.format(run_id=packed_run.key.run_id), err=True)
    send(packed_run, place, progress)
    return uploaded


def _check(paths: Sequence[Path], format_name: str | None) -> None:
    report = check_files(paths, format_name)
    for line in report_lines(report):
        click.echo(line, err=True)
    if not report.good:
        raise UserError(texts.NOTHING_SENT)


def _as_json(packed_run: PackedRun, place: UploadPlace, uploaded: Sequence[bool], check_run: str) -> dict[str, Any]:
    written = [*uploaded] or [False] * (len(packed_run.pieces) + 1)
    names = [*(piece.name for piece in packed_run.pieces), MANIFEST]
    return {
        "bucket": place.bucket or None,
        "key": packed_run.folder + MANIFEST,
        "run_id": packed_run.key.run_id,
        "uploaded": dict(zip(names, written)),
        "check_run": check_run or None,
        "manifest": read_json(packed_run.manifest),
    }
