"""Store the reports of a lab's own command until they are uploaded, even if this process is killed.

A run has a folder of its own: `results/` with the reports, and `run.json`, which says where they go. The folder is
locked as long as its process lives, and is removed once everything is uploaded.
"""

from __future__ import annotations

import json
import shutil
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, replace
from datetime import datetime, timezone
from pathlib import Path

from filelock import FileLock, Timeout

from nightjar_formats.errors import UserError
from nightjar_formats.items import counted
from nightjar_formats.limits import MAX_ARTIFACTS, MAX_FILES
from nightjar_formats.model import Claims, RunKey
from nightjar_formats.runs.artifacts import artifact_fault, is_log
from nightjar_formats.runs.file_names import upload_names
from nightjar_formats.runs.junit_packs import joined
from nightjar_formats.runs.upload import PackedRun, UploadFile, pack, pieces
from nightjar_formats.strict_json import read_json
from nightjar_lab import texts
from nightjar_lab.result_files import PatternFiles, ReportPattern, ResultPaths, named_lines, result_paths

STATE, LOCK, RESULTS, FILES, JOINED = "run.json", "lock", "results", "files", "joined"
COPIES_PREFIX = "elsewhere-"
"""Begins the name of the folder with copies of files that the command wrote elsewhere."""
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

    @property
    def files(self) -> Path:
        """Return the folder into which the command writes its log and other files that people read."""
        return self.path / FILES

    @contextmanager
    def locked(self) -> Iterator[bool]:
        """Hold the lock of the folder; yield False if another process holds it."""
        lock = FileLock(self.path / LOCK)
        try:
            lock.acquire(blocking=False)
        except Timeout:
            yield False
            return
        try:
            yield True
        finally:
            lock.release()

    def save(self, run: PendingRun) -> None:
        """Store the run's description atomically."""
        for folder in (self.results, self.files):
            folder.mkdir(parents=True, exist_ok=True)
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
        """Return the run ready to upload; a run without reports gets an empty report. Raises `UserError`.

        If a run may not have as many files, JUnit reports are joined.
        """
        report_files = reports(self.results)
        if not report_files:
            empty = self.results / EMPTY_REPORT
            empty.write_text('<?xml version="1.0"?>\n<testsuites/>\n', encoding="utf-8")
            report_files = [empty]
        if len(report_files) > MAX_FILES:
            report_files = joined(report_files, self.path / JOINED)
        if len(report_files) > MAX_FILES:
            words = {"count": len(report_files), "most": MAX_FILES, "folder": self.results}
            raise UserError(texts.NOT_PACKED.format(**words))
        files = pieces(report_files, None, None, self.results, artifacts(self).files)
        return pack(run.key, run.prefix, list(files), run.claims)

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
    """Return the files of a folder and its subfolders that can be reports. Raises `UserError`."""
    return [path for path, _ in _result_paths(folder).files if not is_log(path.name)]


@dataclass
class RunArtifacts:
    """The log and the other files of a run that people read, and lines about those that are not uploaded."""

    files: list[Path] = field(default_factory=list)
    left_out: list[str] = field(default_factory=list)


def artifacts(run: RunFolder) -> RunArtifacts:
    """Return the artifacts of a run: logs beside its reports, and what the command wrote into `run.files`.

    A file of a type that is not accepted loses no results: it is left out. Raises `UserError`.
    """
    written = _result_paths(run.files) if run.files.is_dir() else ResultPaths()  # an older version made no such folder
    result = RunArtifacts(left_out=written.left_out)
    logs = [path for path, _ in _result_paths(run.results).files if is_log(path.name)]
    for path in (*logs, *(path for path, _ in written.files)):
        with path.open("rb") as file:
            fault = artifact_fault(file, upload_names([path])[0])
        if fault:
            result.left_out.append(fault)
        else:
            result.files.append(path)
    if (more := len(result.files) - MAX_ARTIFACTS) > 0:
        result.left_out.append(texts.ARTIFACTS_LEFT_OUT.format(files=counted(more, "file"), most=MAX_ARTIFACTS))
        del result.files[MAX_ARTIFACTS:]
    return result


def left_out(folder: Path) -> list[str]:
    """Return a line for each file of a folder that is not uploaded, and why. Raises `UserError`."""
    return named_lines(_result_paths(folder).left_out)


def _result_paths(folder: Path) -> ResultPaths:
    try:
        return result_paths(folder)
    except OSError as error:
        raise UserError(texts.RESULTS_UNREADABLE.format(folder=folder, reason=error.strerror)) from None


def collect_files(folder: Path, patterns: Sequence[ReportPattern], since: float) -> list[PatternFiles]:
    """Copy what the command wrote elsewhere into a folder of the run; return the matches of each pattern.

    `since` is the start of the command in seconds since 1970: older files and links are not copied, but the matches
    name them. Raises `UserError` and OSError.
    """
    matches = [pattern.matches(since) for pattern in patterns]
    # A file of several patterns is one file.
    paths = list(dict.fromkeys(path for match in matches for path in match.files))
    written = [path.relative_to(folder) for path, _ in _result_paths(folder).files]
    names = upload_names([*written, *paths])[len(written) :]
    if paths:
        # A new folder, in which the command cannot have made a link through which we would write.
        copies = Path(tempfile.mkdtemp(prefix=COPIES_PREFIX, dir=folder))
        for path, name in zip(paths, names):
            shutil.copyfile(path, copies / name, follow_symlinks=False)
    return matches


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
