"""A run continues where it was stopped, and refuses files that are not its own."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from nightjar_lab.main import kit
from nightjar_lab.suite.cli import repro_command, shell_word
from nightjar_lab.suite.outcome import SuiteOutcome
from nightjar_lab.suite.result import SuiteResult
from nightjar_lab.suite.result_file import FileUnusable, SuiteResultFile, read_results
from nightjar_lab.suite.runner import SuiteInfo
from nightjar_lab.suite.suite_run import CaseSelection, SuiteProgress

from tests.bucket import World
from tests.lab.suite import hostile, toys

HERE = "tests.lab.suite"
TOYS = ("--flow", f"{HERE}.toys:FLOW", "--suite", f"{HERE}.toys:SUITE")
INFO = SuiteInfo("toy", "lists", "1.0", "toys", "2.0", 120)
ROOT = Path(__file__).parents[3]
SHA, OTHER_SHA = "0d1a26e67d8f5eaf1f6ba5c57fc3c7d91ac0fd1c", "a" * 40


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    monkeypatch.chdir(tmp_path)
    return tmp_path


def suite(*words: object) -> Result:
    return CliRunner().invoke(kit, ["suite", *map(str, words)])


def result(case: str) -> SuiteResult:
    return SuiteResult(f"{case}[toy]", case, "toy", SuiteOutcome.PASS)


def test_a_run_is_continued_and_its_reports_are_complete(folder: Path) -> None:
    first = suite("run", *TOYS, "--limit", 1, "--jsonl", "a.jsonl")
    assert first.exit_code == 0, first.output
    assert len(read_results(Path("a.jsonl"))[1]) == 1
    second = suite("run", *TOYS, "--jsonl", "a.jsonl", "--report", "deep/a.csv", "--summary", "a.md")
    assert second.exit_code == 0, second.output
    assert "1 of 3 cases have results in a.jsonl; --fresh starts over" in second.stderr
    assert "3 cases of toys on toy:\n      3  pass\n" in second.stdout
    assert [line.partition(",")[0] for line in Path("deep/a.csv").read_text().splitlines()[1:]] == [
        "add[toy]",
        "mul[toy]",
        "sub[toy]",
    ]
    assert "**Pass**: 3/3 (100.0 %)" in Path("a.md").read_text()
    done = suite("run", *TOYS, "--jsonl", "a.jsonl", "--json")
    assert json.loads(done.stdout) == {"counts": {"pass": 3}, "missing": 0, "jsonl": "a.jsonl"}
    assert "**Pass**: 3/3" in suite("report", "a.jsonl").stdout


def test_a_killed_run_loses_only_the_case_in_progress(folder: Path) -> None:
    os.mkfifo(hostile.ANNOUNCED)
    command = [sys.executable, "-m", "nightjar_lab", "suite", "run", "--flow", f"{HERE}.hostile:FLOW"]
    command += ["--suite", f"{HERE}.hostile:KILLED", "--jsonl", "a.jsonl"]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    stopped = hostile.announced(folder)
    process.send_signal(signal.SIGKILL)
    process.communicate()
    assert [result_.case for result_ in read_results(Path("a.jsonl"))[1]] == ["pass_a", "pass_b"]
    assert hostile.has_ended(stopped)
    # The same command continues; Ctrl-C ends it with its reports.
    process = subprocess.Popen([*command, "--report", "a.csv"], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    stopped = hostile.announced(folder)
    process.send_signal(signal.SIGINT)
    output = process.communicate()[1].decode()
    assert process.returncode == 1
    assert "2 of 3 cases have results" in output
    assert output.endswith("no result yet for 1 case; repeat the command to continue\n")
    assert "Traceback" not in output
    assert len(Path("a.csv").read_text().splitlines()) == 3
    assert hostile.has_ended(stopped)


def test_a_process_started_by_a_case_ends_with_its_worker(folder: Path) -> None:
    os.mkfifo(hostile.ANNOUNCED)
    command = [sys.executable, "-m", "nightjar_lab", "suite", "run", "--flow", f"{HERE}.hostile:FLOW"]
    command += ["--suite", f"{HERE}.hostile:ORPHANS"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE)
    orphan = hostile.announced(folder)
    assert b"2  pass\n" in process.communicate()[0]
    assert hostile.has_ended(orphan)


def test_only_a_truncated_line_is_lost(folder: Path) -> None:
    path = folder / "a.jsonl"
    with SuiteResultFile(path, INFO) as file:
        file.append(result("add"))
        file.append(result("mul"))
    path.write_bytes(path.read_bytes()[:-20])
    with SuiteResultFile(path, INFO) as file:
        assert list(file.results) == ["add"]
        file.append(result("sub"))
    assert [result_.case for result_ in read_results(path)[1]] == ["add", "sub"]


def test_a_file_of_another_run_is_refused_with_the_remedy(folder: Path) -> None:
    path = folder / "a.jsonl"
    SuiteResultFile(path, INFO).close()
    other_suite = SuiteInfo("toy", "lists", "1.1", "toys", "2.0", 120)
    with pytest.raises(FileUnusable, match=r"another flow: toy 1.0, not toy 1.1; start over with --fresh"):
        SuiteResultFile(path, other_suite)
    SuiteResultFile(path, other_suite, fresh=True).close()
    assert read_results(path)[0]["flow"]["version"] == "1.1"


@pytest.mark.parametrize(
    ("stored", "current", "message"),
    [
        (SHA, OTHER_SHA, f"{SHA}, not {OTHER_SHA}"),
        ("", SHA, f"an unknown one, not {SHA}"),
        (SHA, "", f"{SHA}, not an unknown one"),
    ],
)
def test_results_of_another_commit_are_neither_continued_nor_overwritten(
    stored: str, current: str, message: str, folder: Path
) -> None:
    path = folder / "a.jsonl"
    with SuiteResultFile(path, INFO, sha=stored) as file:
        file.append(result("add"))
    with pytest.raises(FileUnusable, match=f"another commit: {message}; start over with --fresh"):
        SuiteResultFile(path, INFO, sha=current)
    with SuiteResultFile(path, INFO, sha=stored) as file:
        assert list(file.results) == ["add"]
    with SuiteResultFile(path, INFO, sha=current, fresh=True) as file:
        assert file.results == {}


def test_a_file_in_use_is_refused(folder: Path) -> None:
    with (
        SuiteResultFile(folder / "a.jsonl", INFO),
        pytest.raises(FileUnusable, match="another run writes"),
    ):
        SuiteResultFile(folder / "a.jsonl", INFO)


@pytest.mark.parametrize("option", ["--jsonl", "--report", "--summary"])
@pytest.mark.parametrize("place", ["/dev/full", "/dev/null", "pipe", ".", "file/below"])
def test_a_report_that_cannot_be_written_is_refused_before_the_run(option: str, place: str, folder: Path) -> None:
    os.mkfifo("pipe")
    Path("file").write_text("")
    refused = suite("run", *TOYS, option, place)
    assert refused.exit_code == 1
    assert place in refused.stderr
    assert "Traceback" not in refused.output
    assert not list(folder.glob("nightjar-suite/*.jsonl"))


def test_a_full_disk_ends_a_run_with_a_clear_error(folder: Path) -> None:
    path = folder / "a.jsonl"
    with SuiteResultFile(path, INFO) as file:
        os.close(file._descriptor)
        file._descriptor = os.open("/dev/full", os.O_WRONLY)
        with pytest.raises(FileUnusable, match=r"a.jsonl cannot be written: No space left on device"):
            file.append(result("add"))


def test_a_foreign_file_is_not_taken_for_state(folder: Path) -> None:
    (folder / "a.jsonl").write_text('{"a": 1}\n')
    with pytest.raises(FileUnusable, match="is not a JSONL file"):
        SuiteResultFile(folder / "a.jsonl", INFO)
    assert suite("report", "a.jsonl").exit_code == 1


def test_reports_of_shards_are_combined_and_those_of_other_flows_are_a_matrix(folder: Path) -> None:
    for number, case in enumerate(("add", "mul")):
        with SuiteResultFile(folder / f"{number}.jsonl", INFO) as file:
            file.append(result(case))
    assert "**Pass**: 2/2" in suite("report", "0.jsonl", "1.jsonl").stdout
    other_flow = SuiteInfo("other", "lists", "", "toys", "2.0", 1, quantization="static int8")
    SuiteResultFile(folder / "2.jsonl", other_flow).close()
    matrix = suite("report", "0.jsonl", "2.jsonl", "1.jsonl").stdout
    assert "| ` lists ` |  | ` toys ` | ` toy ` | 2 | 0 | 0 | 100.0 % |  |\n" in matrix
    assert "| ` lists ` | ` static int8 ` | ` toys ` | ` other ` | 0 | 0 | 0 | - |  |\n" in matrix
    refused = suite("report", "0.jsonl", "2.jsonl", "--report", "a.csv")
    assert (refused.exit_code, Path("a.csv").exists()) == (2, False)
    SuiteResultFile(folder / "3.jsonl", SuiteInfo("toy", "lists", "1.1", "toys", "2.0", 1)).close()
    mixed = suite("report", "0.jsonl", "3.jsonl")
    assert mixed.exit_code == 2
    assert "different versions" in mixed.stderr


def test_flows_and_suites_are_listed_with_the_reason_of_the_unavailable_ones(folder: Path) -> None:
    toys.install(
        folder, {"toy": f"{HERE}.toys:FLOW", "absent": "no_such_compiler:FLOW"}, {"toys": f"{HERE}.toys:SUITE"}
    )
    env = {**os.environ, "PYTHONPATH": f"{ROOT}{os.pathsep}{folder}"}
    words = [sys.executable, "-m", "nightjar_lab", "suite", "list", "--count", "toy", "toys", "absent"]
    listed = subprocess.run(words, env=env, capture_output=True, text=True, check=True).stdout
    lines = {line.split()[0]: line.split(maxsplit=2)[1:] for line in listed.splitlines()}
    assert lines["toys"] == ["suite", "2.0; 3 cases"]
    assert lines["toy"] == ["flow", "lists 1.0"]
    assert lines["absent"] == [
        "flow",
        "not available: it needs the Python module no_such_compiler, which is not installed here",
    ]


def test_one_case_is_run_again_with_all_details() -> None:
    done = suite("repro", "--flow", f"{HERE}.hostile:FLOW", "--suite", f"{HERE}.hostile:SUITE", "run_fails[hostile]")
    assert done.exit_code == 1
    assert f"Command:   nightjar-lab suite repro --flow {HERE}.hostile:FLOW --suite {HERE}.hostile:SUITE" in done.stdout
    assert ":SUITE -- run_fails\n" in done.stdout
    assert "Result:    run failed\nStage:     run\nError:     ValueError: no such op" in done.stdout
    assert "in act" in done.stdout
    unknown = suite("repro", *TOYS, "nothing")
    assert "toys has no case nothing" in unknown.stderr


def test_the_exit_status_of_a_comparison_says_whether_there_are_new_failures(folder: Path) -> None:
    Path("a.csv").write_text("Test ID,Result\na,Pass\nb,Fail\n")
    Path("b.csv").write_text("Test ID,Result\na,Fail\nb,Pass\n")
    worse = suite("diff", "a.csv", "b.csv")
    assert worse.exit_code == 1
    assert worse.stdout.startswith("New failures: 1\n  a\nFixed: 1\n  b\n")
    assert suite("diff", "a.csv", "a.csv").exit_code == 0
    assert json.loads(suite("diff", "a.csv", "b.csv", "--json").stdout)["new_failures"] == ["a"]
    assert "cannot be read: No such file" in suite("diff", "a.csv", "none.csv").stderr
    assert "is not a regular file" in suite("diff", "a.csv", "/dev/zero").stderr


@pytest.mark.parametrize(
    ("selection", "names"),
    [
        (CaseSelection(), "abcdefgh"),
        (CaseSelection(limit=4), "aceg"),
        (CaseSelection(limit=3), "acf"),
        (CaseSelection(limit=20), "abcdefgh"),
        (CaseSelection(shard=(1, 3)), "adg"),
        (CaseSelection(shard=(3, 3)), "cf"),
        (CaseSelection(limit=4, shard=(2, 2)), "cg"),
        (CaseSelection((re.compile("[d-f]"), re.compile("^a$"))), "adef"),
    ],
)
def test_cases_are_selected_by_pattern(selection: CaseSelection, names: str) -> None:
    assert "".join(selection.of("abcdefgh")) == names


def test_a_filter_is_a_regular_expression_and_one_without_a_match_is_named() -> None:
    assert "2 cases of toys on toy" in suite("run", *TOYS, "--filter", "^(add|su)").stdout
    refused = suite("run", *TOYS, "--filter", "^dd")
    assert refused.exit_code == 1
    assert "no case of toys has a name in which --filter finds anything" in refused.stderr
    pattern = suite("run", *TOYS, "--filter", "*add*")
    assert pattern.exit_code == 2
    assert "*add* is no regular expression: nothing to repeat at position 0. For any text, write .*" in pattern.stderr
    assert suite("run", *TOYS, "--shard", "5/4").exit_code == 2


def test_the_progress_has_a_rate_and_an_estimate() -> None:
    assert SuiteProgress(300, 120, 7, 20, 10.0).line == "120/300  7 failed  2.0 cases/s  1:30 left"
    assert SuiteProgress(300).line.endswith("0:00 left")


def test_the_command_of_a_case_can_be_pasted_into_a_shell() -> None:
    assert repro_command("f", "s", "a b's") == "nightjar-lab suite repro --flow f --suite s -- 'a b'\"'\"'s'"
    for name in ("a b", "it's", "\x1b[31m\n'\\n", "$(x)"):
        words = subprocess.run(["bash", "-c", f"printf %s {shell_word(name)}"], capture_output=True, check=True).stdout
        assert words.decode() == name


UPLOAD = ("--upload", "--sha", SHA, "--lab", "example-lab", "--repository", "octocat/compiler", "--run-id", "run-1")


def test_a_run_is_uploaded_with_its_metadata(aws_world: World) -> None:
    done = suite("run", *TOYS, *UPLOAD, "--bucket", aws_world.name, "--shard", "1/2")
    assert done.exit_code == 0, done.output
    place = f"results/octocat/compiler/example-lab/toy/{SHA}/run-1/"
    name = f"{HERE}.toys_SUITE-{HERE}.toys_FLOW-1of2.csv"
    assert sorted(aws_world.keys("")) == sorted([f"{place}manifest.json", f"{place}{name}"])
    read = aws_world.s3.get_object(Bucket=aws_world.name, Key=f"{place}manifest.json")["Body"].read()
    manifest = json.loads(read)
    assert (manifest["suite"], manifest["exit_status"]) == ("toys", 0)
    assert manifest["shard"] == {"index": 1, "total": 2}
    assert manifest["files"][0]["format"] == "executorch-csv"


def test_results_of_one_commit_are_not_uploaded_for_the_next_one(aws_world: World) -> None:
    assert suite("run", *TOYS, *UPLOAD, "--bucket", aws_world.name).exit_code == 0
    keys = aws_world.keys("")
    later_words = [OTHER_SHA if word == SHA else word for word in (*UPLOAD, "--bucket", aws_world.name)]
    [stored] = Path("nightjar-suite", SHA).glob("*.jsonl")
    refused = suite("run", *TOYS, *later_words, "--jsonl", stored)
    assert f"results of another commit: {SHA}, not {OTHER_SHA}; start over with --fresh" in refused.stderr
    assert (refused.exit_code, aws_world.keys("")) == (1, keys)
    # By itself, each commit has a file of its own.
    later = suite("run", *TOYS, *later_words)
    assert later.exit_code == 0, later.output
    assert "cases have results" not in later.stderr, "nothing of the earlier commit is continued"
    assert [key for key in aws_world.keys("") if OTHER_SHA in key]
    assert read_results(stored)[0]["commit"] == SHA


def test_the_commit_of_the_run_around_it_is_the_commit_of_the_results(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NIGHTJAR_SHA", SHA)
    assert suite("run", *TOYS, "--limit", 1).exit_code == 0
    assert "1 of 3 cases have results" in suite("run", *TOYS).stderr
    monkeypatch.setenv("NIGHTJAR_SHA", OTHER_SHA)
    assert "cases have results" not in suite("run", *TOYS, "--limit", 1).stderr
    assert sorted(path.name for path in Path("nightjar-suite").iterdir()) == sorted([SHA, OTHER_SHA])


def test_missing_upload_settings_are_named_before_the_run(folder: Path) -> None:
    assert "--sha" in suite("run", *TOYS, "--upload").stderr
    refused = suite("run", *TOYS, "--upload", "--sha", SHA, "--repository", "octocat/compiler", "--lab", "example-lab")
    assert refused.exit_code == 2
    assert "--url (NIGHTJAR_URL) is not set" in refused.stderr
    assert not list(folder.iterdir())
