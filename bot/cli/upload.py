"""`nightjar results upload`: what a lab's job does last."""

from __future__ import annotations

import json
import secrets
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import click

from bot.aws.bucket import Bucket
from bot.aws.client import Aws, check_environment
from bot.cli.results import files_argument, format_option, told
from bot.cli.support import AS_WRITTEN, REPOSITORY, Matching, config_option, json_option, stopping_at_faults
from bot.config import load_config
from bot.config.results import Results
from bot.core.errors import UserError
from bot.core.patterns import Pattern
from bot.core.refused import Refused
from bot.core.terminal import printable
from bot.results.ingest.admission import lab_of
from bot.results.ingest.manifest import MANIFEST
from bot.results.ingest.offline_check import check_files
from bot.results.ingest.upload import SUFFIXES, Parcel, Piece, named, pack, pieces, send
from bot.results.model import RunKey
from bot.results.state import Claims

DEFAULT_PREFIX = "results/"
NOTHING_SENT = "nothing was uploaded; correct the files, or send them as they are with --no-check"
MISSING = "{option} is not given, and {why}; give it, or set {variable}"
NO_CONFIG = "there is no {path} to take it from"
NO_RESULTS = "{path} has no repository with results"
SEVERAL = "{path} has several repositories with results"
OTHER_REPOSITORY = "{path} has no results for {repository}"
EXPECT = """\
the bot reads it within a minute or so, and the check run is hardware/{lab}/{target} on {sha}
if there is none: the bot's /api/v1/repos/{repository}/results/runs?sha={sha} tells what became of the run, and why"""
WRITTEN, THERE = "uploaded", "there already"

_SHARD = Pattern(r"([1-9][0-9]{0,4})/([1-9][0-9]{0,4})")


SEGMENT = Matching(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}", "a name of letters, digits, . _ and -, as in example-lab")
SHA = Matching(r"[0-9a-f]{40}", "the whole SHA of a commit, 40 hexadecimal digits in small letters")
RUN_ID = Matching(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}", "a name of up to 100 letters, digits, . _ and -")
SUITE = Matching(r"[A-Za-z0-9][A-Za-z0-9._+ /-]{0,99}", "up to 100 letters, digits, blanks and . _ + / -")
SHARD = Matching(_SHARD.source, "the shard's number and how many there are, as in 1/4")
PAIR = Matching(r"(?s)[^=]+=.*", "KEY=VALUE")


@dataclass(frozen=True, slots=True)
class Place:
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
    "--repository", type=REPOSITORY, envvar="NIGHTJAR_REPOSITORY", show_envvar=True, help="Which project: OWNER/NAME."
)
@click.option("--bucket", envvar="NIGHTJAR_BUCKET", show_envvar=True, help="The S3 bucket.")
@click.option(
    "--prefix",
    envvar="NIGHTJAR_PREFIX",
    show_envvar=True,
    help=f"The folder in it; {DEFAULT_PREFIX} where nothing says.",
)
@click.option(
    "--lab", type=SEGMENT, required=True, envvar="NIGHTJAR_LAB", show_envvar=True, help="Who you are in app.yaml."
)
@click.option("--target", type=SEGMENT, required=True, help="What was tested on.")
@click.option("--sha", type=SHA, required=True, help="The commit that was tested.")
@click.option("--suite", type=SUITE, required=True, help="Which tests; a commit may have several suites.")
@click.option("--run-id", type=RUN_ID, help="A name for this run; one is made up where none is given.")
@click.option(
    "--attempt", type=click.IntRange(1, 10_000), default=1, show_default=True, help="Which time this commit is tested."
)
@click.option("--shard", type=SHARD, help="Which part of the suite, as in 1/4.")
@click.option("--exit-status", type=int, help="With what the tests' command ended.")
@click.option("--pull-request", type=click.IntRange(1, 2**31 - 1), help="The pull request whose head was tested.")
@click.option("--started-at", help="When the tests began, as in 2026-11-20T05:10:00Z.")
@click.option("--finished-at", help="When they ended.")
@click.option("--environment", "pairs", type=PAIR, multiple=True, metavar="KEY=VALUE", help="What they ran on.")
@click.option("--log-url", help="The page of the lab's own log.")
@format_option
@click.option("--compress", type=click.Choice(list(SUFFIXES)), help="Compress files that are not compressed yet.")
@click.option("--check/--no-check", "checks", default=True, show_default=True, help="Check the files first.")
@click.option("--dry-run", is_flag=True, help="Print the manifest; send nothing.")
@config_option
@json_option
@click.pass_context
def upload(ctx: click.Context, /, paths: tuple[Path, ...], as_json: bool, **options: Any) -> None:
    """Upload the files of one run, and then the manifest that makes the bot read it.

    Nothing is ever overwritten. After a failure the same command with the same --run-id goes on where it stopped.
    Repository, bucket and prefix are taken from app.yaml where there is one that names exactly one. AWS_* variables say
    where S3 is and who you are; nothing of GitHub is needed.
    """
    with stopping_at_faults():
        chosen = ctx.get_parameter_source("config_path") is not click.core.ParameterSource.DEFAULT
        place = _place(options, must_exist=chosen)
        run_id = options["run_id"] or f"{datetime.now(UTC):%Y%m%dT%H%M%SZ}-{secrets.token_hex(4)}"
        key = RunKey(place.repository, options["lab"], options["target"], options["sha"], run_id)
        named(paths)
        with tempfile.TemporaryDirectory(prefix="nightjar-") as folder:
            files = list(pieces(paths, options["format_name"], options["compress"], Path(folder)))
            if options["checks"]:
                _check([file.path for file in files], options["format_name"])
            parcel = pack(key, place.prefix, files, _claims(options))
            uploaded = [] if options["dry_run"] else _send(parcel, place)
    if as_json:
        click.echo(json.dumps(_as_json(parcel, place, uploaded), indent=2))
    elif options["dry_run"]:
        click.echo(f"s3://{place.bucket}/{parcel.folder}{MANIFEST}\n{parcel.manifest.decode()}", nl=False)
    else:
        click.echo(f"s3://{place.bucket}/{parcel.folder}{MANIFEST}")
        click.echo(EXPECT.format(lab=key.lab, target=key.target, sha=key.sha, repository=key.repository), err=True)


def _check(paths: Sequence[Path], format_name: str | None) -> None:
    report = check_files(paths, format_name)
    for line in told(report):
        click.echo(line, err=True)
    if not report.good:
        raise UserError(NOTHING_SENT)


def _send(parcel: Parcel, place: Place) -> list[bool]:
    """Send a run, and tell how far it is; return what was written now: a value for each file, the manifest's last."""
    check_environment()
    uploaded = []

    def progress(piece: Piece | None, written: bool) -> None:
        uploaded.append(written)
        what = f"{piece.name} ({piece.bytes:,} bytes)" if piece else MANIFEST
        click.echo(printable(f"{what}: {WRITTEN if written else THERE}"), err=True)

    click.echo(f"run {parcel.key.run_id}", err=True)
    with closing(Aws()) as aws:
        send(parcel, Bucket(aws, place.bucket), progress)
    return uploaded


def _claims(options: dict[str, Any]) -> Claims:
    shard = _SHARD.fullmatch(options["shard"] or "1/1")
    assert shard is not None  # click has looked at it
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
    )


def _place(options: dict[str, Any], *, must_exist: bool) -> Place:
    """Return where to upload: what was said, and what app.yaml says of it. Raises `ConfigError` and `UserError`."""
    path: Path = options["config_path"]
    repository, bucket, prefix = options["repository"], options["bucket"], options["prefix"]
    why = NO_CONFIG.format(path=path)
    if must_exist or path.exists():
        found = {name: one.results for name, one in load_config(path).repositories.items() if one.results is not None}
        chosen = list(_chosen(found, repository))
        if len(chosen) == 1:
            ((repository, results),) = chosen
            _must_know(results, repository, options)
            bucket, prefix = bucket or results.bucket, results.prefix if prefix is None else prefix
        elif repository and found:
            why = OTHER_REPOSITORY.format(path=path, repository=repository)
        else:
            why = (SEVERAL if found else NO_RESULTS).format(path=path)
    for option, value in (("repository", repository), ("bucket", bucket)):
        if not value:
            raise UserError(MISSING.format(option=f"--{option}", why=why, variable=f"NIGHTJAR_{option.upper()}"))
    return Place(repository, bucket, DEFAULT_PREFIX if prefix is None else prefix)


def _chosen(found: dict[str, Results], repository: str | None) -> Iterator[tuple[str, Results]]:
    for name, results in found.items():
        if repository is None or name.lower() == repository.lower():
            yield name, results


def _must_know(results: Results, repository: str, options: dict[str, Any]) -> None:
    try:
        lab_of(RunKey(repository, options["lab"], options["target"], options["sha"], ""), results)
    except Refused as refused:
        raise UserError(str(refused)) from None


def _as_json(parcel: Parcel, place: Place, uploaded: Sequence[bool]) -> dict[str, Any]:
    written = [*uploaded] or [False] * (len(parcel.pieces) + 1)
    return {
        "bucket": place.bucket,
        "key": parcel.folder + MANIFEST,
        "run_id": parcel.key.run_id,
        "uploaded": dict(zip([*(piece.name for piece in parcel.pieces), MANIFEST], written, strict=True)),
        "manifest": json.loads(parcel.manifest),
    }
