"""Store the reports of a lab's own command until they are uploaded, even if this process is killed.

A run has a folder of its own: `results/` with the reports, and `run.json`, which says where they go. The folder is
locked as long as its process lives, and is removed once everything is uploaded.
"""

from __future__ import annotations

import fcntl
import json
import os
import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from datetime import datetime, timezone
from pathlib import Path
from typing import IO

from nightjar_formats.errors import UserError
from nightjar_formats.model import Claims, RunKey
from nightjar_formats.runs.file_names import is_file_name
from nightjar_formats.runs.upload import PackedRun, UploadFile, pack, pieces
from nightjar_formats.strict_json import read_json
from nightjar_lab import texts
from nightjar_lab.upload import MOST_FILES, is_result

STATE, LOCK, RESULTS = "run.json", "lock", "results"
EMPTY_REPORT = "nightjar-run.xml"
KILLED = 137
"""The exit status of a command that was killed together with us: 128 plus the number of SIGKILL."""
CAPABILITIES = b'{"$report_type": "NightjarCapabilities"'
"""The beginning of the line in the plugin's report that says which targets can be tested."""
MOST_CAPABILITIES, MOST_NAME = 50, 64
MOST_TARGETS, MOST_LINE = 1000, 1 << 16
"""The most targets of all reports, and the most bytes of a line read at once: a stranger may have written it."""
REPORT_OPTIONS = ("--junitxml", "--junit-xml", "--report-log")
"""Options of pytest that name a report."""


@dataclass(frozen=True)
class PendingRun:
    """A run that is not uploaded yet: its key, its bucket, and the values of its manifest."""

    bucket: str
    prefix: str
    key: RunKey
    claims: Claims

    def check(self) -> None:
        """Raise `UserError` if the bot would refuse the run, so that this shows before hours of tests."""
        pack(self.key, self.prefix, [UploadFile(Path("te.xml"), "te.xml", 0, "0" * 64)], self.claims)


class RunFolder:
    """The folder of a run."""

    def __init__(self, path: Path) -> None:
        self.path = path

    @property
    def results(self) -> Path:
        """Return the folder into which the command writes its reports."""
        return self.path / RESULTS

    @contextmanager
    def locked(self) -> Iterator[bool]:
        """Hold the lock of the folder; yield False if another process holds it."""
        with (self.path / LOCK).open("w") as file:
            yield _lock(file)

    def save(self, run: PendingRun) -> None:
        """Store the run's description atomically."""
        self.results.mkdir(parents=True, exist_ok=True)
        new_file = self.path / f"{STATE}.new"
        description = {"bucket": run.bucket, "prefix": run.prefix, "key": asdict(run.key), "claims": asdict(run.claims)}
        new_file.write_text(json.dumps(description, indent=2), encoding="utf-8")
        new_file.replace(self.path / STATE)

    def load(self) -> PendingRun:
        """Return the run's description; a run that was killed gets `KILLED` as its exit status. Raises `UserError`."""
        try:
            description = read_json((self.path / STATE).read_text(encoding="utf-8"))
            run = PendingRun(
                description["bucket"],
                description["prefix"],
                RunKey(**description["key"]),
                Claims(**description["claims"]),
            )
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise UserError(texts.RUN_UNREADABLE.format(folder=self.path, kind=type(error).__name__)) from None
        if run.claims.finished_at:
            return run
        return replace(run, claims=replace(run.claims, finished_at=self._last_written(), exit_status=KILLED))

    def packed_run(self, run: PendingRun) -> PackedRun:
        """Return the run ready to upload; a run without reports gets an empty report. Raises `UserError`."""
        report_files = reports(self.results)
        if not report_files:
            empty = self.results / EMPTY_REPORT
            empty.write_text('<?xml version="1.0"?>\n<testsuites/>\n', encoding="utf-8")
            report_files = [empty]
        if len(report_files) > MOST_FILES:
            raise UserError(texts.TOO_MANY_FILES.format(most=MOST_FILES))
        return pack(run.key, run.prefix, list(pieces(report_files, None, None, self.results)), run.claims)

    def remove(self) -> None:
        """Remove the folder and everything in it."""
        shutil.rmtree(self.path, ignore_errors=True)

    def _last_written(self) -> str:
        times = [path.stat().st_mtime for path in (self.path / STATE, *reports(self.results))]
        return iso_time(max(times))


def pending_runs(folder: Path) -> list[RunFolder]:
    """Return the runs of a folder that are not uploaded yet, oldest first."""
    folders = [path.parent for path in folder.glob(f"*/{STATE}")]
    return [RunFolder(path) for path in sorted(folders)]


def reports(folder: Path) -> list[Path]:
    """Return the files of a folder that can be reports: regular ones of an allowed name, with content, no links."""
    report_files = []
    with os.scandir(folder) as entries:
        for entry in entries:
            if is_file_name(entry.name):
                file_stat = entry.stat(follow_symlinks=False)
                if is_result(file_stat):
                    report_files.append(Path(entry.path))
    return sorted(report_files)


def collect_reports(
    run: RunFolder, command: Sequence[str], report_patterns: Sequence[str], since: float
) -> tuple[list[Path], list[Path]]:
    """Copy the reports that the command wrote elsewhere into the run's folder.

    Return the reports that are older than `since`, the start of the command in seconds since 1970, and those that are
    links: with a link, the command could make us upload a file that it must not read. Reports that pytest's options
    name count only if the command wrote nothing into the folder itself, or each test would be reported twice.
    """
    all_patterns = [*report_patterns, *(() if reports(run.results) else reports_of_pytest(command))]
    stale, links = [], []
    for pattern in all_patterns:
        # A pattern may be absolute, and those of pathlib may not.
        base = Path(pattern)
        for path in sorted(base.parent.glob(base.name)) if base.parent.is_dir() else ():
            if not path.is_file():
                continue
            if path.is_symlink() or path.stat().st_nlink != 1:
                links.append(path)
                continue
            if path.stat().st_mtime < since - 2:  # some file systems store times in steps of one or two seconds
                stale.append(path)
            else:
                copy = run.results / path.name
                # If the command made a link here, copying would overwrite the target of the link.
                copy.unlink(missing_ok=True)
                shutil.copyfile(path, copy)
    return stale, links


def capabilities_of(folder: Path) -> str:
    """Return the targets that can be tested according to the reports in a folder, for the manifest; empty if unknown.

    A stranger's tests may have written into the reports, so only printable names count.
    """
    usable_targets: dict[str, bool] = {}
    for path in reports(folder):
        with path.open("rb") as file:
            while line := file.readline(MOST_LINE):
                if line.startswith(CAPABILITIES):
                    for name, usable in _capabilities(line).items():
                        if name in usable_targets or len(usable_targets) < MOST_TARGETS:
                            usable_targets[name] = usable
    names = [name for name, usable in usable_targets.items() if usable]
    return ", ".join(names[:MOST_CAPABILITIES])


def _capabilities(line: bytes) -> dict[str, bool]:
    try:
        targets: dict[str, object] = read_json(line)["targets"]
        return {name: reason == "" for name, reason in targets.items() if name.isprintable() and len(name) <= MOST_NAME}
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return {}


def reports_of_pytest(command: Sequence[str]) -> list[str]:
    """Return the report files that pytest's options name."""
    paths = []
    for number, word in enumerate(command):
        option, equals, value = word.partition("=")
        if option in REPORT_OPTIONS:
            next_words = command[number + 1 : number + 2]
            paths += [value] if equals else list(next_words)
    return paths


def iso_time(seconds: float) -> str:
    """Return a time in seconds since 1970 in the format of a manifest."""
    return datetime.fromtimestamp(seconds, timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")


def _lock(file: IO[str]) -> bool:
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True
