"""`nightjar results upload`: the last step of a lab's job."""

from __future__ import annotations

import json
import os
import secrets
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import click
from nightjar_formats.model import TARGET_NAME, TARGET_WORDS, Claims, RunKey
from nightjar_formats.refused import Refused
from nightjar_formats.runs.manifest import MANIFEST
from nightjar_formats.runs.offline_check import check_files
from nightjar_formats.runs.upload import SUFFIXES, Parcel, Piece, named, pack, pieces, send

from bot.app.load import load_config
from bot.aws.bucket import Bucket
from bot.aws.client import Aws, check_environment
from bot.cli.ci_decide import AddressOrNothing
from bot.cli.results import texts
from bot.cli.results.group import files_argument, format_option, report_lines
from bot.cli.results.verify import UploadVerifier
from bot.cli.support import AS_WRITTEN, REPOSITORY, Matching, config_option, json_option, stopping_at_faults
from bot.config.results import Results
from bot.core.errors import UserError
from bot.core.patterns import Pattern
from bot.core.terminal import printable
from bot.results.ingest.admission import lab_of

DEFAULT_PREFIX = "results/"
WAIT = 120.0
"""Seconds that an upload waits for the bot: four times the pause between two listings of a bucket."""

_SHARD = Pattern(r"([1-9][0-9]{0,4})/([1-9][0-9]{0,4})")


SEGMENT = Matching(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}", "a name of letters, digits, . _ and -, as in example-lab")
TARGET = Matching(TARGET_NAME, TARGET_WORDS)
SHA = Matching(r"[0-9a-f]{40}", "the whole SHA of a commit, 40 hexadecimal digits in small letters")
RUN_ID = Matching(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}", "a name of up to 100 letters, digits, . _ and -")
SUITE = Matching(r"[A-Za-z0-9][A-Za-z0-9._+ /-]{0,99}", "up to 100 letters, digits, blanks and . _ + / -")
SHARD = Matching(_SHARD.source, "the shard's number and how many there are, as in 1/4")
PAIR = Matching(r"(?s)[^=]+=.*", "KEY=VALUE")


@dataclass(frozen=True, slots=True)
class UploadPlace:
    """Where a lab uploads to: a repository's folder of a bucket."""

    repository: str
    bucket: str
    prefix: str


@click.command(
    epilog=f"""{AS_WRITTEN}
    Examples:
      nightjar results upload --repository octocat/compiler --bucket device-results \\
          --lab example-lab --target adreno --sha "$SHA" --suite operators --exit-status "$STATUS" results.jsonl
      nightjar results upload ... --shard 1/4 --run-id "$BUILD-1" --compress gz te.xml relax.xml
    """,
)
@files_argument
@click.option(
    "--repository", type=REPOSITORY, envvar="NIGHTJAR_REPOSITORY", show_envvar=True, help="The repository: OWNER/NAME."
)
@click.option("--bucket", envvar="NIGHTJAR_BUCKET", show_envvar=True, help="The S3 bucket.")
@click.option(
    "--prefix",
    envvar="NIGHTJAR_PREFIX",
    show_envvar=True,
    help=f"The folder in the bucket. Default: {DEFAULT_PREFIX}",
)
@click.option(
    "--lab",
    type=SEGMENT,
    required=True,
    envvar="NIGHTJAR_LAB",
    show_envvar=True,
    help="Your lab in app.yaml.",
)
@click.option("--target", type=TARGET, required=True, help="The target that the tests ran on.")
@click.option("--sha", type=SHA, required=True, help="The commit that was tested.")
@click.option("--suite", type=SUITE, required=True, help="The suite; a commit may have several.")
@click.option("--run-id", type=RUN_ID, help="The name of this run. Default: a new one each time.")
@click.option(
    "--attempt",
    type=click.IntRange(1, 10_000),
    default=1,
    show_default=True,
    help="Which attempt this is.",
)
@click.option("--shard", type=SHARD, help="The shard of the suite, as in 1/4.")
@click.option("--exit-status", type=int, help="The exit status of the test command.")
@click.option("--pull-request", type=click.IntRange(1, 2**31 - 1), help="The pull request whose head was tested.")
@click.option("--started-at", help="When the tests started, as in 2026-11-20T05:10:00Z.")
@click.option("--finished-at", help="When the tests ended.")
@click.option(
    "--environment",
    "pairs",
    type=PAIR,
    multiple=True,
    metavar="KEY=VALUE",
    help="What the tests ran on.",
)
@click.option("--log-url", help="The address of the lab's log.")
@click.option("--job", help="The ID of the job, if somebody requested this run.")
@format_option
@click.option("--compress", type=click.Choice(list(SUFFIXES)), help="Compress files that are not compressed yet.")
@click.option("--check/--no-check", "checks", default=True, show_default=True, help="Check the files first.")
@click.option("--dry-run", is_flag=True, help="Print the manifest; send nothing.")
@click.option(
    "--api",
    type=AddressOrNothing(),
    envvar="NIGHTJAR_URL",
    show_envvar=True,
    help="Where the bot is.",
)
@click.option(
    "--wait", type=click.FloatRange(0), default=WAIT, show_default=True, help="Seconds to wait for the bot, with --api."
)
@config_option
@json_option
@click.pass_context
def upload(ctx: click.Context, /, paths: tuple[Path, ...], as_json: bool, **options: Any) -> None:
    """Upload the files of one run, and then the manifest that makes the bot read it.

    Nothing is ever overwritten. After a failure, the same command with the same --run-id continues where it stopped.
    Repository, bucket and prefix come from app.yaml if it names exactly one. AWS_* variables say where S3 is and who
    you are. With --api, the command waits until the bot has stored the run, and the exit status is 1 if the bot does
    not.
    """
    with stopping_at_faults():
        chosen = ctx.get_parameter_source("config_path") is not click.core.ParameterSource.DEFAULT
        place = _place(options, must_exist=chosen)
        # Two jobs may begin in the same second.
        run_id = options["run_id"] or f"{datetime.now(UTC):%Y%m%dT%H%M%SZ}-{secrets.token_hex(4)}"
        key = RunKey(place.repository, options["lab"], options["target"], options["sha"], run_id)
        named(paths)
        with tempfile.TemporaryDirectory(prefix="nightjar-") as folder:
            files = list(pieces(paths, options["format_name"], options["compress"], Path(folder)))
            if options["checks"]:
                _check([file.path for file in files], options["format_name"])
            parcel = pack(key, place.prefix, files, _claims(options))
            uploaded = [] if options["dry_run"] else _send_verified(parcel, place, options["api"], options["wait"])
    if as_json:
        click.echo(json.dumps(_as_json(parcel, place, uploaded), indent=2))
    elif options["dry_run"]:
        click.echo(f"s3://{place.bucket}/{parcel.folder}{MANIFEST}\n{parcel.manifest.decode()}", nl=False)
    else:
        click.echo(f"s3://{place.bucket}/{parcel.folder}{MANIFEST}")
        known = texts.STORED if options["api"] and options["wait"] else texts.NOT_VERIFIED
        click.echo(known.format(lab=key.lab, target=key.target, sha=key.sha, repository=key.repository), err=True)


def _check(paths: Sequence[Path], format_name: str | None) -> None:
    report = check_files(paths, format_name)
    for line in report_lines(report):
        click.echo(line, err=True)
    if not report.good:
        raise UserError(texts.NOTHING_SENT)


def _send_verified(parcel: Parcel, place: UploadPlace, url: str, wait: float) -> list[bool]:
    """Send a run, and wait until the bot has stored it where its address is known. Raises `UserError`."""
    if not (url and wait):
        return _send(parcel, place)
    verifier = UploadVerifier(url, parcel.key, os.environ.get("NIGHTJAR_TOKEN", "").strip())
    verifier.check_repository()
    uploaded = _send(parcel, place)
    verifier.wait(wait)
    return uploaded


def _send(parcel: Parcel, place: UploadPlace) -> list[bool]:
    """Send a run and print the progress; return for each file, the manifest last, whether it was uploaded now."""
    check_environment()
    uploaded = []

    def progress(piece: Piece | None, written: bool) -> None:
        uploaded.append(written)
        state = texts.UPLOADED if written else texts.ALREADY_THERE
        line = texts.FILE.format(name=piece.name, bytes=piece.bytes, state=state) if piece else f"{MANIFEST}: {state}"
        click.echo(printable(line), err=True)

    click.echo(texts.RUN.format(run_id=parcel.key.run_id), err=True)
    with closing(Aws()) as aws:
        send(parcel, Bucket(aws, place.bucket), progress)
    return uploaded


def _claims(options: dict[str, Any]) -> Claims:
    shard = _SHARD.fullmatch(options["shard"] or "1/1")
    assert shard is not None  # click has checked it
    return Claims(
        suite=options["suite"],
        attempt=options["attempt"],
        shard_index=int(shard[1]),
        shard_total=int(shard[2]),
        started_at=options["started_at"] or "",
        finished_at=options["finished_at"] or "",
        exit_status=options["exit_status"],
        pull_request=options["pull_request"],
        environment=dict(pair.split("=", 1) for pair in options["pairs"]),
        log_url=options["log_url"] or "",
        job=options["job"] or "",
    )


def _place(options: dict[str, Any], *, must_exist: bool) -> UploadPlace:
    """Return where to upload, from the options and app.yaml. Raises `ConfigError` and `UserError`."""
    path: Path = options["config_path"]
    repository, bucket, prefix = options["repository"], options["bucket"], options["prefix"]
    why = texts.NO_CONFIG.format(path=path)
    if must_exist or path.exists():
        found = {name: one.results for name, one in load_config(path).repositories.items() if one.results is not None}
        chosen = list(_chosen(found, repository))
        if len(chosen) == 1:
            ((repository, results),) = chosen
            _check_lab(results, repository, options)
            bucket, prefix = bucket or results.bucket, results.prefix if prefix is None else prefix
        elif repository and found:
            # The bot reads no run of a repository that its app.yaml does not name.
            raise UserError(texts.OTHER_REPOSITORY.format(path=path, repository=repository))
        else:
            why = (texts.SEVERAL_REPOSITORIES if found else texts.NO_RESULTS).format(path=path)
    for option, value in (("repository", repository), ("bucket", bucket)):
        if not value:
            variable = f"NIGHTJAR_{option.upper()}"
            raise UserError(texts.MISSING_OPTION.format(option=f"--{option}", why=why, variable=variable))
    return UploadPlace(repository, bucket, DEFAULT_PREFIX if prefix is None else prefix)


def _chosen(found: dict[str, Results], repository: str | None) -> Iterator[tuple[str, Results]]:
    for name, results in found.items():
        if repository is None or name.lower() == repository.lower():
            yield name, results


def _check_lab(results: Results, repository: str, options: dict[str, Any]) -> None:
    try:
        lab_of(RunKey(repository, options["lab"], options["target"], options["sha"], ""), results)
    except Refused as refused:
        raise UserError(str(refused)) from None


def _as_json(parcel: Parcel, place: UploadPlace, uploaded: Sequence[bool]) -> dict[str, Any]:
    written = [*uploaded] or [False] * (len(parcel.pieces) + 1)
    return {
        "bucket": place.bucket,
        "key": parcel.folder + MANIFEST,
        "run_id": parcel.key.run_id,
        "uploaded": dict(zip([*(piece.name for piece in parcel.pieces), MANIFEST], written, strict=True)),
        "manifest": json.loads(parcel.manifest),
    }
