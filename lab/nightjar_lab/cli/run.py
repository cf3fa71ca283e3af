"""`nightjar-lab run`: a lab's whole nightly run in one command."""

from __future__ import annotations

import shutil
import signal
import subprocess
import time
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from threading import Timer
from typing import Any

import click

from nightjar_formats.errors import UserError
from nightjar_formats.model import RunKey
from nightjar_formats.runs.offline_check import check_files
from nightjar_formats.terminal import escape_controls
from nightjar_lab.bot_upload import check_admission
from nightjar_lab.bucket import LabBucket
from nightjar_lab.cli import texts
from nightjar_lab.cli.bot import bot_client, has_token
from nightjar_lab.cli.check import report_lines
from nightjar_lab.cli.errors import BadSettings, needed, one_line_errors
from nightjar_lab.cli.nightly import source_of
from nightjar_lab.cli.options import AS_WRITTEN, DEFAULT_PREFIX, SHA, SUITE, TARGET, pass_option
from nightjar_lab.cli.upload import (
    claim_options,
    claims_of,
    new_run_id,
    place_options,
    send_run,
    upload_place,
    verifier_of,
    wait_for_bot,
    wait_options,
    wants_wait,
)
from nightjar_lab.command import StreamedCommand, clean_environment
from nightjar_lab.lab_run import (
    PendingRun,
    RunFolder,
    artifacts,
    capabilities_of,
    collect_files,
    iso_time,
    left_out,
    pending_runs,
    reports,
    reports_of_pytest,
)
from nightjar_lab.nightly import nightly_commit
from nightjar_lab.result_files import ReportPattern, named_lines

GRACE = 20.0
NIGHTLY, HEAD = "nightly", "HEAD"


@click.command(
    short_help="Run tests and upload their results.",
    epilog=f"""{AS_WRITTEN}
    Examples:
      nightjar-lab run --target adreno --suite operators -- pytest tests/python/operators
      nightjar-lab run --target adreno --shard 1/4 --environment device="Pixel 9" -- ./test.sh
      nightjar-lab run --target adreno --report 'build/*.xml' -- ctest --output-junit build/ctest.xml
      nightjar-lab run --resume
    """,
)
@place_options
@click.option("--target", type=TARGET, envvar="NIGHTJAR_TARGET", show_envvar=True, help="The target of the tests.")
@click.option("--suite", type=SUITE, default="tests", show_default=True, help="The suite; a commit may have several.")
@click.option(
    "--sha",
    default=HEAD,
    metavar="SHA|HEAD|nightly",
    help="The commit that is tested. HEAD, the default: that of the checkout here. nightly: what `nightly` prints.",
)
@claim_options
@pass_option
@click.option(
    "--report",
    "named",
    multiple=True,
    metavar="PATTERN",
    help="Reports that COMMAND writes elsewhere, as in 'build/**/*.xml'. One that matches none makes the run fail.",
)
@click.option(
    "--file",
    "named_files",
    multiple=True,
    metavar="PATTERN",
    help="Logs, images and JSON that COMMAND writes elsewhere, for the run's page, as in 'build/*.log'.",
)
@click.option(
    "--folder",
    type=click.Path(path_type=Path, file_okay=False),
    default=Path("nightjar-runs"),
    show_default=True,
    help="Where runs are stored until they are uploaded.",
)
@click.option(
    "--grace",
    type=click.FloatRange(0),
    default=GRACE,
    show_default=True,
    help="Seconds that COMMAND gets to write its report after SIGTERM or SIGINT.",
)
@click.option("--dry-run", is_flag=True, help="Run and check; print the manifest, and upload nothing.")
@click.option("--resume", is_flag=True, help="Upload what earlier runs could not upload; run nothing.")
@wait_options
@click.argument("command", metavar="-- COMMAND...", nargs=-1, type=click.UNPROCESSED)
def run(command: tuple[str, ...], **options: Any) -> None:
    """Run COMMAND, and upload the reports that it writes into the folder NIGHTJAR_RESULTS.

    For pytest, the plugin of this package writes the report; files of --junitxml and --report-log are found as well.
    The exit status is that of COMMAND. If COMMAND succeeds, it is 1 if the upload fails, if there is no report, or if a
    --report matches none. A run without a report says that COMMAND crashed.

    A log, images and JSON for people to read go into the folder NIGHTJAR_FILES. They are sent with the run, and its
    page shows them.

    After SIGTERM or SIGINT, COMMAND gets a SIGINT, and what it has reported is uploaded. If the upload fails or is
    killed, the run stays in the folder, and the next `run`, or `run --resume`, uploads it under the same run ID.
    COMMAND gets usual variables such as PATH, HOME and CUDA_*, but none that may hold a secret. It gets others if you
    name them with --pass-variable.
    """
    with one_line_errors():
        if options["resume"]:
            if command:
                raise BadSettings(texts.RESUME_RUNS_NOTHING)
            raise SystemExit(0 if _upload_pending(options, None) else 1)
        status = _CommandRun(command, options).run()
    raise SystemExit(status)


def commit_to_test(options: Mapping[str, Any], repository: str) -> str:
    """Return the SHA of the commit to test. Raises `BadSettings` and `UserError`."""
    option_value = str(options["sha"])
    if option_value == NIGHTLY:
        prefix = DEFAULT_PREFIX if options["prefix"] is None else options["prefix"]
        return nightly_commit(source_of(repository, options["url"], options["bucket"], prefix)).sha
    if option_value != HEAD:
        try:
            return str(SHA.convert(option_value, None, None))
        except click.BadParameter as error:
            raise BadSettings(f"--sha: {error.message}") from None
    try:
        completed = subprocess.run(["git", "rev-parse", "HEAD"], capture_output=True, text=True, check=True)  # noqa: S607
    except (OSError, subprocess.CalledProcessError):
        raise BadSettings(texts.NO_CHECKOUT) from None
    return completed.stdout.strip()


class _CommandRun:
    """Runs the command, collects its reports, and uploads them. Signals end the command first, then the upload."""

    def __init__(self, command: Sequence[str], options: Mapping[str, Any]) -> None:
        if not command:
            raise BadSettings(texts.NO_TEST_COMMAND)
        if shutil.which(command[0]) is None:
            raise BadSettings(texts.NOT_A_COMMAND.format(command=command[0]))
        bucket = options["bucket"] or ("dry-run" if options["dry_run"] else None)
        place = upload_place({**options, "bucket": bucket})
        target = needed(options["target"], "--target", "NIGHTJAR_TARGET", texts.WHAT_TARGET)
        self._waits = wants_wait(options)
        sha = commit_to_test(options, place.repository)
        key = RunKey(place.repository, options["lab"], target, sha, options["run_id"] or new_run_id())
        self._run = PendingRun(place.bucket, place.prefix, key, claims_of(options))
        self._run.check()
        runs = options["folder"].resolve()
        self._folder = RunFolder(runs / key.run_id)
        # Before the command runs: it may make links where the patterns begin.
        self._patterns = [_report_pattern(pattern, runs) for pattern in options["named"]]
        self._file_patterns = [_report_pattern(pattern, runs) for pattern in options["named_files"]]
        self._pytest_reports = [ReportPattern(path, runs, is_literal=True) for path in reports_of_pytest(command)]
        self._command = command
        self._options = options
        self._running: StreamedCommand | None = None
        self._grace: Timer | None = None
        """Kills the command some seconds after a signal."""
        self._has_reports = True
        """Whether the command left a report, and each pattern matched one."""

    def run(self) -> int:
        """Do the run and return the exit status."""
        if not self._options["dry_run"]:
            if self._run.bucket:
                LabBucket(self._run.bucket).check_credentials()
                if self._waits:
                    verifier_of(self._options, self._run.key).check_repository()
            if self._options["url"] and has_token(self._options):
                key, pull_request = self._run.key, self._run.claims.pull_request
                check_admission(bot_client(self._options), key.repository, [key.target], key.sha, pull_request)
        try:
            self._folder.save(self._run)
        except OSError as error:
            raise UserError(texts.FOLDER_UNUSABLE.format(folder=self._folder.path, reason=error.strerror)) from None
        with self._folder.locked() as has_lock:
            if not has_lock:
                raise BadSettings(texts.RUN_ID_IN_USE.format(run_id=self._run.key.run_id))
            for number in (signal.SIGTERM, signal.SIGINT):
                signal.signal(number, self._stop)
            try:
                status = self._test()
            except OSError as error:
                # As on a full disk. What the command wrote is not lost.
                folder, reason = self._folder.path, error.strerror or str(error)
                raise UserError(
                    texts.RUN_NOT_STORED.format(folder=folder, reason=reason, parent=folder.parent)
                ) from None
            if self._options["dry_run"]:
                packed_run = self._folder.packed_run(self._run)
                click.echo(packed_run.manifest.decode(), nl=False)
                self._folder.remove()
                return status or (0 if self._has_reports else 1)
            good = _upload_pending(self._options, self._folder)
        return status or (0 if good and self._has_reports else 1)

    def _test(self) -> int:
        key, claims = self._run.key, self._run.claims
        began, counter = time.time(), time.monotonic()
        self._save(started_at=iso_time(began))
        pull_request = {"NIGHTJAR_PULL_REQUEST": str(claims.pull_request)} if claims.pull_request else {}
        variables = {
            "NIGHTJAR_REPOSITORY": key.repository,
            "NIGHTJAR_SHA": key.sha,
            "NIGHTJAR_TARGET": key.target,
            "NIGHTJAR_SUITE": claims.suite,
            "NIGHTJAR_ATTEMPT": str(claims.attempt),
            "NIGHTJAR_RUN_ID": key.run_id,
            "NIGHTJAR_RESULTS": str(self._folder.results),
            "NIGHTJAR_FILES": str(self._folder.files),
            **pull_request,
        }
        self._running = StreamedCommand(self._command, clean_environment(variables, self._options["passed"]))
        status = self._running.wait()
        self._running = None
        if self._grace is not None:
            self._grace.cancel()
        self._collect(status, began)
        # From the monotonic clock, so that a jump of the clock cannot make a test end before it began.
        self._save(finished_at=iso_time(began + time.monotonic() - counter), exit_status=status)
        if capabilities := capabilities_of(self._folder.results):
            # The lab's own --environment wins.
            self._save(environment={"capabilities": capabilities, **self._run.claims.environment})
        if report_files := reports(self._folder.results):
            for line in report_lines(check_files(report_files)):
                click.echo(line, err=True)
        return status

    def _collect(self, status: int, since: float) -> None:
        """Copy reports that the command wrote elsewhere, and name what is not uploaded."""
        results = self._folder.results
        for line in left_out(results):
            _say(line)
        # Each test would be reported twice if pytest's plugin has written a report as well.
        of_pytest = [] if reports(results) else self._pytest_reports
        matches = collect_files(results, [*self._patterns, *of_pytest], since)
        for match in (*matches, *collect_files(self._folder.files, self._file_patterns, since)):
            stale = [texts.STALE_REPORT.format(path=_shown(path)) for path in match.stale]
            links = [texts.LINKED_REPORT.format(path=_shown(path)) for path in match.links]
            for line in named_lines(stale + links):
                _say(line)
        for match in matches:
            if not match.files and match.pattern in self._options["named"]:
                _say(texts.NO_MATCH.format(pattern=match.pattern))
                self._has_reports = False
        for line in named_lines(artifacts(self._folder).left_out):
            _say(line)
        if not reports(results):
            _say(texts.NO_REPORT.format(status=status))
            self._has_reports = False

    def _save(self, **claims: Any) -> None:
        self._run = replace(self._run, claims=replace(self._run.claims, **claims))
        self._folder.save(self._run)

    def _stop(self, number: int, _: object) -> None:
        if self._running is None:
            pending = pending_runs(self._folder.path.parent)
            _say(texts.UPLOAD_STOPPED.format(folder=self._options["folder"]) if pending else texts.WAIT_STOPPED)
            raise SystemExit(128 + number)
        if self._grace is not None:
            self._running.kill()
            return
        _say(texts.INTERRUPTED.format(seconds=self._options["grace"]))
        self._running.interrupt()
        self._grace = Timer(self._options["grace"], self._running.kill)
        self._grace.start()


def _report_pattern(pattern: str, runs: Path) -> ReportPattern:
    try:
        return ReportPattern(pattern, runs)
    except ValueError as error:
        raise BadSettings(texts.BAD_PATTERN.format(pattern=pattern, reason=error)) from None


def _shown(path: Path) -> str:
    """Return a path relative to the current folder if it is below it."""
    current = Path.cwd()
    return str(path.relative_to(current) if current in path.parents else path)


def _upload_pending(options: Mapping[str, Any], own_folder: RunFolder | None) -> bool:
    """Upload the pending runs of a folder, our own first.

    Returns whether our own upload succeeded; without an own run, whether all did.
    """
    folder = options["folder"].resolve()
    other_runs = [
        run_folder for run_folder in pending_runs(folder) if own_folder is None or run_folder.path != own_folder.path
    ]
    good = True
    uploaded: list[tuple[RunFolder, RunKey]] = []
    for run_folder in ([own_folder] if own_folder else []) + other_runs:
        with ExitStack() as stack:
            # Our own folder is locked already; the run of another one may still be running.
            if own_folder is not run_folder and not stack.enter_context(run_folder.locked()):
                continue
            try:
                uploaded.append((run_folder, _upload_run(run_folder, options)))
            except UserError as error:
                _say(str(error))
                _say(texts.NOT_UPLOADED.format(folder=run_folder.path, parent=options["folder"]))
                good = good and own_folder is not None and run_folder is not own_folder
    # After all uploads, since the bot may keep us waiting for each.
    for run_folder, key in uploaded:
        try:
            wait_for_bot(verifier_of(options, key) if wants_wait(options) else None, key, options["timeout"])
        except UserError as error:
            _say(str(error))
            good = good and own_folder is not None and run_folder is not own_folder
    if own_folder is None and not other_runs:
        _say(texts.NOTHING_PENDING.format(folder=options["folder"]))
    return good


def _upload_run(folder: RunFolder, options: Mapping[str, Any]) -> RunKey:
    """Upload a run and remove its folder, which is not needed whatever the bot says about the run later."""
    run = folder.load()
    send_run(folder.packed_run(run), run.bucket, options)
    folder.remove()
    return run.key


def _say(text: str) -> None:
    for line in text.splitlines():
        click.echo(escape_controls(line), err=True)
