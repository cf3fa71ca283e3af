"""Check results on the lab's own machine before the upload, reading them as the bot will.

Not checked is what only the bot knows: whether app.yaml names the lab, whether labs may test the commit, and how much
was uploaded today.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Optional

from nightjar_formats import readers
from nightjar_formats.columns import is_flaky, status_of
from nightjar_formats.columns.collect import Columns, collect, merge, read_names, split
from nightjar_formats.limits import MAX_FILE_BYTES, MAX_MANIFEST_BYTES
from nightjar_formats.model import BAD, MANIFEST, Counts, RunKey, SeenTest, Trouble
from nightjar_formats.readers.repairs import Repairs
from nightjar_formats.refused import Refused
from nightjar_formats.runs import texts
from nightjar_formats.runs.advice import CaseAdvice
from nightjar_formats.runs.artifacts import artifact_fault, is_log, media_type
from nightjar_formats.runs.file_names import path_faults
from nightjar_formats.runs.infra import FINISHED, infra
from nightjar_formats.runs.manifest import FileEntry, Manifest, RunFile, read_manifest, run_key
from nightjar_formats.runs.texts import FILE_MISSING, FILE_OF_OTHER_CONTENT, FILE_OF_OTHER_SIZE, FILE_TOO_LARGE
from nightjar_formats.strict_json import read_json

KEY_PARTS = 6
"""The number of folders in a run's key: owner, name, lab, target, SHA and run."""
CHUNK = 1 << 20
NONE = Counts()


@dataclass(frozen=True)
class MeasurementCount:
    """A measurement of a file or run, and the number of tests that have it."""

    name: str
    unit: str
    better: str
    tests: int


@dataclass(frozen=True)
class FileReport:
    """One file: `cases` counts attempts, `counts` tests; `problem` is why the bot would refuse it, or empty.

    `unreadable`: the problem is that this machine could not read the file, so nobody knows what the bot would do.
    """

    name: str
    format: str = ""
    cases: int = 0
    counts: Counts = NONE
    collection_errors: int = 0
    crashes: int = 0
    problem: str = ""
    warnings: tuple[str, ...] = ()
    unreadable: bool = False
    is_artifact: bool = False
    """It is the log or another file that people read, not a report; `format` is its type."""
    measurements: tuple[MeasurementCount, ...] = ()


@dataclass(frozen=True)
class RunReport:
    """The files of one run, and the problems of the whole run. `counts` covers all files."""

    files: tuple[FileReport, ...]
    counts: Counts = NONE
    problems: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()
    manifest: Manifest | None = None
    unreadable: bool = False

    @property
    def refused(self) -> bool:
        """Say whether the bot would refuse the run because of something that could be read."""
        return bool(self.problems and not self.unreadable) or any(
            file.problem and not file.unreadable for file in self.files
        )

    @property
    def good(self) -> bool:
        """Say whether the bot would accept the run, as far as the files show."""
        return not self.problems and not any(file.problem for file in self.files)

    def as_json(self) -> dict[str, Any]:
        """Return the report as JSON values."""
        return {
            "good": self.good,
            "counts": asdict(self.counts),
            "problems": self.problems,
            "warnings": self.warnings,
            "files": [asdict(file) for file in self.files],
        }


def check_files(paths: Sequence[Path], format: str | None = None) -> RunReport:
    """Check files that become one run and have no manifest yet. If `format` is None, each file's content decides it."""
    counts = Counter(path.name for path in paths)
    names = [path.name if counts[path.name] == 1 else str(path) for path in paths]
    checked = [
        _refused(name, fault) if fault else _check_artifact(path, name) if is_log(name) else _check(path, name, format)
        for path, name, fault in zip(paths, names, path_faults(paths))
    ]
    return _together(checked, exit_status=None)


def check_run(path: Path) -> RunReport:
    """Check the folder of a run, or the manifest in it, with the files that it names."""
    folder = path if path.is_dir() else path.parent
    try:
        with (folder / MANIFEST).open("rb") as file:
            raw = file.read(MAX_MANIFEST_BYTES + 1)
    except FileNotFoundError:
        return RunReport((), problems=(texts.NO_RUN.format(path=folder),), unreadable=True)
    except OSError as error:
        problem = texts.PATH_UNREADABLE.format(path=folder / MANIFEST, reason=_reason(error))
        return RunReport((), problems=(problem,), unreadable=True)
    key = key_of(folder)
    warnings = () if key is not None else (texts.NOT_LAID_OUT,)
    try:
        manifest = read_manifest(raw, key or RunKey("", "", "", _claimed_sha(raw), ""))
    except Refused as refused:
        return RunReport((), problems=(str(refused),), warnings=warnings)
    names = {entry.name for entry in manifest.all_files} | {MANIFEST}
    unnamed = sorted(entry.name for entry in folder.iterdir() if entry.name not in names)
    checked = [_check_entry(folder, entry) for entry in manifest.all_files]
    report = _together(checked, exit_status=manifest.claims.exit_status)
    warnings = (*warnings, *(texts.NOT_NAMED.format(name=name) for name in unnamed), *report.warnings)
    return RunReport(report.files, report.counts, report.problems, warnings, manifest)


def key_of(folder: Path) -> RunKey | None:
    """Return the key of a run from the path of its folder; None if the path does not end as in the bucket."""
    parts = folder.resolve().parts[-KEY_PARTS:]
    key_and_name = run_key("/".join((*parts, MANIFEST)), "")
    return key_and_name[0] if key_and_name else None


def is_run(path: Path) -> bool:
    """Say whether a path is checked as a run: it is a folder, or a manifest."""
    return path.is_dir() or path.name == MANIFEST


Checked = tuple[FileReport, Optional[Columns]]


def _check_entry(folder: Path, entry: RunFile) -> Checked:
    """Check a file of a run: whether it matches the manifest, and then its contents."""
    path = folder / entry.name
    try:
        size = path.stat().st_size
        if size != entry.bytes:
            return _refused(entry.name, FILE_OF_OTHER_SIZE.format(name=entry.name, found=size, expected=entry.bytes))
        if (sha256 := sha256_of(path)) != entry.sha256:
            return _refused(entry.name, FILE_OF_OTHER_CONTENT.format(name=entry.name, found=sha256))
    except FileNotFoundError:
        return _refused(entry.name, FILE_MISSING.format(name=entry.name))
    except OSError as error:
        return _unreadable(path, entry.name, error)
    return _check(path, entry.name, entry.format) if isinstance(entry, FileEntry) else _check_artifact(path, entry.name)


def sha256_of(path: Path) -> str:
    """Return the SHA-256 of a file's content in hexadecimal digits. Raises OSError."""
    with path.open("rb") as file:
        digest = hashlib.sha256()
        while piece := file.read(CHUNK):
            digest.update(piece)
        return digest.hexdigest()


def _check_artifact(path: Path, name: str) -> Checked:
    if path.is_dir():
        return _refused(name, texts.IS_FOLDER.format(path=path))
    try:
        with path.open("rb") as file:
            fault = artifact_fault(file, path.name)
    except OSError as error:
        return _unreadable(path, name, error)
    if fault:
        return _refused(name, fault)
    return FileReport(name, media_type(path.name) or "", is_artifact=True), None


def _check(path: Path, name: str, format: str | None) -> Checked:
    if path.is_dir():
        return _refused(name, texts.IS_FOLDER.format(path=path))
    advice, repairs = CaseAdvice(), Repairs()
    guessed = ""
    try:
        guessed = readers.format_named(format, name) if format else ""
        if path.stat().st_size > MAX_FILE_BYTES:
            return _refused(name, FILE_TOO_LARGE.format(name=name))
        with path.open("rb") as file:
            guessed = guessed or readers.format_of(file, name)
        with path.open("rb") as file:
            columns = collect(readers.read(file, name, guessed, repairs), advice.resolve)
    except Refused as refused:
        problem = str(refused)
        return _refused(name, problem if name in problem else f"{name}: {problem}", guessed)
    except OSError as error:
        return _unreadable(path, name, error)
    troubles = _troubles(columns)
    report = FileReport(
        name,
        guessed,
        advice.cases,
        _counts(columns),
        troubles[Trouble.COLLECTION],
        troubles[Trouble.CRASH],
        warnings=(*repairs.sentences(), *advice.warnings(guessed)),
        measurements=_measurements(columns),
    )
    return report, columns


def _refused(name: str, problem: str, format: str = "") -> Checked:
    return FileReport(name, format, problem=problem), None


def _unreadable(path: Path, name: str, error: OSError) -> Checked:
    problem = texts.PATH_UNREADABLE.format(path=path, reason=_reason(error))
    return FileReport(name, problem=problem, unreadable=True), None


def _together(checked: Sequence[Checked], *, exit_status: int | None) -> RunReport:
    """Check the files of a run together, as its check run will."""
    files = tuple(report for report, _ in checked)
    columns = merge(file_columns for _, file_columns in checked if file_columns is not None)
    warnings: tuple[str, ...] = ()
    if all(not file.problem for file in files) and (reason := infra(_seen(columns), None, exit_status=exit_status)):
        # A single file without any test reports that by itself.
        is_already_reported = not columns.tests and exit_status in FINISHED and len(files) == 1
        warnings = () if is_already_reported else (texts.LAB_PROBLEM.format(why=reason),)
    return RunReport(files, _counts(columns), warnings=warnings)


def _counts(columns: Columns) -> Counts:
    counts: Counter[str] = Counter()
    for packed, count in Counter(columns.tests.values()).items():
        byte, _ = split(packed)
        counts[str(status_of(byte))] += count
        counts["flaky"] += count if is_flaky(byte) else 0
    return Counts(**counts)


def _measurements(columns: Columns) -> tuple[MeasurementCount, ...]:
    tests = Counter(
        (measurement.name, measurement.unit, str(measurement.better))
        for measurements in columns.measurements.values()
        for measurement in measurements
    )
    return tuple(MeasurementCount(*kind, count) for kind, count in sorted(tests.items()))


def _troubles(columns: Columns) -> Mapping[Trouble, int]:
    reasons = list(columns.whys)
    bad = (number for test, number in columns.reasons.items() if status_of(split(columns.tests[test])[0]) in BAD)
    troubles: Counter[Trouble] = Counter()
    for number, count in Counter(bad).items():
        troubles[reasons[number].trouble] += count
    return troubles


def _seen(columns: Columns) -> dict[str, SeenTest]:
    reasons = list(columns.whys)
    seen = {}
    for test, (key, packed) in zip(read_names(columns.names), columns.tests.items()):
        byte, _ = split(packed)
        status = status_of(byte)
        assert status is not None  # `columns` has only tests that the run has
        number = columns.reasons.get(key)
        reason = reasons[number] if number is not None else None
        seen[test] = SeenTest(
            status, is_flaky(byte), reason.trouble if reason else Trouble.NONE, reason.message if reason else ""
        )
    return seen


def _claimed_sha(raw: bytes) -> str:
    """Return the commit that a manifest names, for a manifest outside of a bucket's folders."""
    with suppress(ValueError, AttributeError):
        return str(read_json(raw).get("sha"))
    return ""


def _reason(error: OSError) -> str:
    return (error.strerror or type(error).__name__).lower()
