"""A lab's files, checked on its own machine as the bot will read them."""

from __future__ import annotations

import gzip
import hashlib
import json
from pathlib import Path
from typing import Any

import pytest
from nightjar_formats.limits import MAX_FILE_BYTES
from nightjar_formats.model import Counts, RunKey
from nightjar_formats.runs.offline_check import check_files, check_run, key_of
from nightjar_formats.runs.texts import NO_TEST

SHA = "0d1a26e67d8f5eaf1f6ba5c57fc3c7d91ac0fd1c"
JUNIT = """<testsuites name="pytest tests"><testsuite name="pytest" errors="0" failures="99" skipped="0" tests="99">
<testcase classname="tests.test_ops" name="test_add" file="tests/test_ops.py" line="3" time="0.1"/>
<testcase classname="tests.test_ops" name="test_sub" file="tests/test_ops.py" line="9" time="0.1">
<failure message="assert 1 == 2">E   assert 1 == 2</failure></testcase>
<testcase classname="tests.test_ops" name="test_gpu" file="tests/test_ops.py" line="12" time="0">
<skipped type="pytest.skip" message="no device">tests/test_ops.py:13: no device</skipped></testcase>
<testcase classname="" name="tests.test_new" time="0">
<error message="collection failure">E   ImportError</error></testcase>
<testcase classname="tests.test_ops" name="test_hang" file="tests/test_ops.py" line="20" time="0">
<error message="failed on setup with &quot;worker 'gw1' crashed while running 'tests/test_ops.py::test_hang'&quot;"/>
</testcase></testsuite></testsuites>
"""


def broken(count: int) -> str:
    cases = "".join(
        f'<testcase classname="" name="tests.test_{n}" time="0">'
        '<error message="collection failure">E ImportError</error></testcase>'
        for n in range(count)
    )
    return f'<testsuites name="pytest tests"><testsuite name="pytest">{cases}</testsuite></testsuites>'


def write(folder: Path, name: str, content: str | bytes) -> Path:
    path = folder / name
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


def test_tests_are_counted_independently_of_the_files_own_counts(tmp_path: Path) -> None:
    report = check_files([write(tmp_path, "ops.xml", JUNIT)])
    [file] = report.files
    assert report.good
    assert (file.format, file.cases) == ("junit", 5)
    assert file.counts == Counts(passed=1, failed=1, errored=2, skipped=1)
    assert (file.collection_errors, file.crashes) == (1, 1)


def test_compressed_files_are_read_by_their_content(tmp_path: Path) -> None:
    [file] = check_files([write(tmp_path, "ops.xml.gz", gzip.compress(JUNIT.encode()))]).files
    assert (file.format, file.counts.passed) == ("junit", 1)


def test_the_files_of_a_run_are_checked_together(tmp_path: Path) -> None:
    other_report = JUNIT.replace("test_add", "test_mul").replace("test_sub", "test_div")
    report = check_files([write(tmp_path, "a.xml", JUNIT), write(tmp_path, "b.xml", other_report)])
    assert report.counts == Counts(passed=2, failed=2, errored=2, skipped=1)


@pytest.mark.parametrize(
    ("name", "content", "problem"),
    [
        ("a.xml", b"\x00\x01\x02" * 100, "is in none of the formats junit"),
        ("a.xml", "", "is empty"),
        ("a.xml", JUNIT[:-40], "a.xml"),
        ("a.zip", b"PK\x03\x04" + bytes(100), "a zip archive"),
        ("a.csv", "name,result\nadd,Pass\n", "is in none of the formats junit"),
    ],
)
def test_a_file_that_would_be_refused_is_reported_with_its_name(
    tmp_path: Path, name: str, content: str | bytes, problem: str
) -> None:
    report = check_files([write(tmp_path, name, content)])
    assert not report.good
    [file] = report.files
    assert problem in file.problem
    assert name in file.problem


def test_a_folder_or_a_missing_file_is_reported(tmp_path: Path) -> None:
    report = check_files([tmp_path, tmp_path / "missing.xml"])
    folder, missing = report.files
    assert "is a folder" in folder.problem
    assert missing.problem == f"{tmp_path / 'missing.xml'} cannot be read: no such file or directory"


def test_a_file_that_is_too_large_is_not_opened(tmp_path: Path) -> None:
    path = tmp_path / "ops.xml"
    with path.open("wb") as file:
        file.truncate(MAX_FILE_BYTES + 1)
    [report] = check_files([path]).files
    assert "has more than 64 MiB" in report.problem


def test_a_wrong_format_is_refused_with_the_reason(tmp_path: Path) -> None:
    [report] = check_files([write(tmp_path, "ops.xml", JUNIT)], "ctrf").files
    assert report.format == "ctrf"
    assert report.problem


def test_a_run_without_usable_results_gets_a_warning(tmp_path: Path) -> None:
    report = check_files([write(tmp_path, "a.xml", broken(3)), write(tmp_path, "b.xml", broken(5))])
    assert report.good  # readable, but the failures are the lab's
    [warning] = report.warnings
    assert "5 of 5 test files could not be imported" in warning


def test_a_file_without_a_test_gets_one_warning(tmp_path: Path) -> None:
    report = check_files([write(tmp_path, "a.xml", "<testsuites/>")])
    assert report.good
    assert [*report.files[0].warnings, *report.warnings] == [NO_TEST]


def run_folder(root: Path, *, sha: str = SHA, **fields: Any) -> Path:
    """Lay out a run as in the bucket."""
    folder = root / "octocat" / "compiler" / "example-lab" / "adreno" / SHA / "run-1"
    folder.mkdir(parents=True)
    write(folder, "ops.xml", JUNIT)
    entry = {"name": "ops.xml", "bytes": len(JUNIT), "sha256": hashlib.sha256(JUNIT.encode()).hexdigest()}
    manifest = {"schema": 1, "sha": sha, "suite": "ops", "files": [entry], **fields}
    write(folder, "manifest.json", json.dumps(manifest))
    return folder


def test_a_run_is_checked_with_everything_in_its_manifest(tmp_path: Path) -> None:
    folder = run_folder(tmp_path)
    for path in (folder, folder / "manifest.json"):
        report = check_run(path)
        assert report.good
        assert report.manifest is not None
        assert report.counts.passed == 1
        assert report.warnings == ()
    assert key_of(folder) == RunKey("octocat/compiler", "example-lab", "adreno", SHA, "run-1")


def test_a_run_of_another_commit_than_its_folder_is_refused(tmp_path: Path) -> None:
    report = check_run(run_folder(tmp_path, sha="f" * 40))
    assert not report.good
    assert f"the folder is for {SHA}" in report.problems[0]


def test_a_folder_with_another_layout_than_the_bucket_is_still_checked(tmp_path: Path) -> None:
    folder = run_folder(tmp_path).rename(tmp_path / "somewhere")
    report = check_run(folder)
    assert report.good
    assert "does not end with OWNER" in report.warnings[0]
    assert report.counts.passed == 1


def test_files_that_differ_from_the_manifest_are_reported(tmp_path: Path) -> None:
    folder = run_folder(tmp_path)
    write(folder, "ops.xml", JUNIT.replace("test_add", "test_adx"))
    assert "its SHA-256 is" in check_run(folder).files[0].problem
    write(folder, "ops.xml", JUNIT + " ")
    assert "but manifest.json says" in check_run(folder).files[0].problem
    (folder / "ops.xml").unlink()
    assert check_run(folder).files[0].problem == "ops.xml has not arrived"


def test_a_wrong_or_missing_manifest_is_reported(tmp_path: Path) -> None:
    folder = run_folder(tmp_path, suite=7, attempt="one")
    assert "attempt must be a whole number" in check_run(folder).problems[0]
    for content in ("{", "[]", "null", '{"schema": 1}', "[" * 100_000):
        write(folder, "manifest.json", content)
        assert not check_run(folder).good
    (folder / "manifest.json").unlink()
    assert "has no manifest.json" in check_run(folder).problems[0]


def test_a_file_missing_in_the_manifest_is_reported(tmp_path: Path) -> None:
    folder = run_folder(tmp_path)
    write(folder, "core.dump", b"x")
    assert check_run(folder).warnings == ("core.dump is not in manifest.json, so the bot does not read it",)


def test_the_exit_status_reveals_a_crash_before_the_first_test(tmp_path: Path) -> None:
    empty = "<testsuites/>"
    entry = {"name": "none.xml", "bytes": len(empty), "sha256": hashlib.sha256(empty.encode()).hexdigest()}
    folder = run_folder(tmp_path, files=[entry], exit_status=139)
    write(folder, "none.xml", empty)
    (folder / "ops.xml").unlink()
    [warning] = check_run(folder).warnings
    assert "ended with exit status 139 before its first test" in warning


def test_repairs_by_the_bot_are_announced_before_the_upload(tmp_path: Path) -> None:
    content = "\n" + JUNIT.replace("assert 1 == 2", "assert \x1b[31m1\x00 == 2")
    report = check_files([write(tmp_path, "ops.xml", '<?xml version="1.0"?>' + content)])
    assert report.good
    [file] = report.files
    assert (file.cases, file.counts.failed) == (5, 1)
    [warning] = file.warnings
    assert warning.startswith("characters that a report must not hold, such as control characters, were replaced (4, ")
