"""A matrix has the runs that fit, one summary, and the reason of whatever does not run."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterable
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from nightjar_lab.main import kit
from nightjar_lab.suite.discovery import NotAvailable, UnknownEntryPoint
from nightjar_lab.suite.listing import ListedFlow
from nightjar_lab.suite.matrix import MatrixSelection, select_matrix
from ruamel.yaml import YAML

ROOT = Path(__file__).parents[3]
TOYS = "tests.lab.suite.toys"
FLOWS = {
    "tvm-llvm": ListedFlow("tvm-llvm", "flow", "tvm", model_format="onnx"),
    "tvm-llvm-fp16": ListedFlow("tvm-llvm-fp16", "flow", "tvm", model_format="onnx", quantization="float16"),
    "xnnpack": ListedFlow("xnnpack", "flow", "xnnpack", model_format="torch"),
    "coreml": ListedFlow("coreml", "flow", "coreml", reason="only macOS has it"),
    "onnxruntime-cpu": ListedFlow("onnxruntime-cpu", "flow", reason="no module"),
    "any:FLOW": ListedFlow("any:FLOW", "flow", "own"),
}
SUITES = {
    "onnx-node": ListedFlow("onnx-node", "suite", model_format="onnx"),
    "torch-ops": ListedFlow("torch-ops", "suite", model_format="torch"),
    "torch-models": ListedFlow("torch-models", "suite", reason="no module"),
}


def selected(flows: str = "", backends: str = "", suites: str = "") -> tuple[set[str], set[str]]:
    """Select of the flows and suites above; return the runs and the names of what is not available."""

    def describe(table: dict[str, ListedFlow], names: Iterable[str]) -> list[ListedFlow]:
        return [table[name] for name in names if name in table]

    matrix = select_matrix(
        MatrixSelection(*(tuple(words.split()) for words in (flows, backends, suites))),
        lambda names: describe(FLOWS, names),
        lambda names: describe(SUITES, names),
    )
    return {f"{flow.name} {suite.name}" for flow, suite in matrix.runs}, {entry.name for entry in matrix.unavailable}


def test_each_selected_flow_has_the_selected_suites_whose_models_it_takes() -> None:
    tvm = {"tvm-llvm onnx-node", "tvm-llvm-fp16 onnx-node"}
    missing = {"coreml", "onnxruntime-cpu", "torch-models"}
    assert selected() == ({*tvm, "xnnpack torch-ops"}, missing)
    assert selected("tvm-llvm xnnpack any:FLOW") == (
        {"tvm-llvm onnx-node", "xnnpack torch-ops", "any:FLOW onnx-node", "any:FLOW torch-ops"},
        set(),
    )
    assert selected(backends="tvm", suites="onnx-node") == (tvm, set())
    assert selected(backends="xnnpack coreml", suites="torch-ops torch-models") == (
        {"xnnpack torch-ops"},
        {"coreml", "torch-models"},
    )
    assert selected("onnxruntime-cpu tvm-llvm-fp16", "tvm") == ({"tvm-llvm-fp16 onnx-node"}, {"onnxruntime-cpu"})
    assert selected("tvm-llvm", suites="torch-ops") == (set(), set())
    with pytest.raises(NotAvailable, match="no flow that can be loaded has a backend qnn; there are: coreml, tvm, xnn"):
        selected(backends="qnn")
    with pytest.raises(UnknownEntryPoint, match="there is no flow named tvm; available: coreml"):
        selected("tvm")


def suite(*words: str) -> Result:
    return CliRunner().invoke(kit, ["suite", *words])


def test_a_matrix_runs_from_one_command_and_has_one_summary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    monkeypatch.delenv("QNN_SDK_ROOT", raising=False)
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(tmp_path / "step.md"))
    monkeypatch.chdir(tmp_path)
    Path("step.md").write_text("of another step\n")
    words = ["run", "--flow", f"{TOYS}:FLOW", "--flow", f"{TOYS}:INT8", "--flow", "qnn", "--suite", f"{TOYS}:SUITE"]
    done = suite(*words, "--filter", "add|mul", "--summary", "matrix.md", "--json")
    assert done.exit_code == 0, done.output
    reason = "QNN_SDK_ROOT is not set, and QnnBackend needs the SDK that it names"
    assert f"qnn is not available: {reason}\n" in done.stderr
    report = json.loads(done.stdout)
    assert [(run["flow"], run["quantization"], run["counts"]) for run in report["runs"]] == [
        (f"{TOYS}:FLOW", "", {"pass": 2}),
        (f"{TOYS}:INT8", "static int8", {"pass": 2}),
    ]
    assert report["not_run"] == [{"name": "qnn", "reason": reason}]
    assert all(len(Path(run["report"]).read_text().splitlines()) == 3 for run in report["runs"])
    summary = Path("matrix.md").read_text()
    assert f"| ` lists ` | ` static int8 ` | ` {TOYS}:SUITE ` | ` {TOYS}:INT8 ` | 2 | 0 | 0 | 100.0 % |  |" in summary
    assert f"| ` qnn ` | ` {reason} ` |" in summary
    assert Path("step.md").read_text() == "of another step\n" + summary
    # It goes on where it was.
    assert "2 of 3 cases have results" in suite(*words).stderr
    for option in (["--jsonl", "a.jsonl"], ["--report", "a.csv"], ["--upload"]):
        refused = suite(*words, *option)
        assert (refused.exit_code, "is for one flow and one suite" in refused.stderr) == (2, True)
    nothing = suite("run", "--flow", "qnn", "--flow", "qnn_8a8w", "--suite", f"{TOYS}:SUITE")
    assert (nothing.exit_code, "can run here" in nothing.stderr) == (1, True)
    assert nothing.stderr.startswith(f"qnn, qnn_8a8w are not available: {reason}\n")


def test_a_matrix_is_a_workflow_with_a_job_for_each_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    monkeypatch.chdir(tmp_path)
    command = ["nightjar-lab", "suite", "run", "--flow", f"{TOYS}:INT8", "--flow", "qnn", "--suite", f"{TOYS}:SUITE"]
    options = ["--filter", "a'd${{d}}|mul", "--limit", "1"]
    lab = ["--repository", "octocat/compiler", "--lab", "example-lab", "--url", "https://ci.example.org"]
    words = ["init", "--matrix", "--package", "nightjar_lab-0.1.0-py3-none-any.whl", *lab]
    done = CliRunner().invoke(kit, [*words, "--", *command, *options])
    assert done.exit_code == 0, done.output
    text = Path(".github/workflows/nightjar-suite.yml").read_text()
    workflow = YAML(typ="safe").load(text)
    job = workflow["jobs"]["suite"]
    assert job["strategy"]["matrix"]["include"] == [
        {"backend": "lists", "quantization": "static int8", "suite": f"{TOYS}:SUITE", "flow": f"{TOYS}:INT8"},
        {"backend": "qualcomm", "quantization": "", "suite": f"{TOYS}:SUITE", "flow": "qnn"},
    ]
    assert workflow["env"]["NIGHTJAR_URL"] == "https://ci.example.org"
    assert "secrets.NIGHTJAR_LAB_TOKEN" in text
    # The script of a job gives its command the words that were written here.
    script = job["steps"][1]["run"]
    assert "${{" not in script
    tool = tmp_path / ".venv/bin/nightjar-lab"
    tool.parent.mkdir(parents=True)
    tool.write_text('#!/bin/sh\nif [ "$1" = nightly ]; then echo 0d1a; else printf \'%s\\n\' "$@"; fi\n')
    tool.chmod(0o755)
    environment = {"PATH": os.environ["PATH"], "FLOW": "a b", "SUITE": "c"}
    said = subprocess.run(["sh", "-ec", script], env=environment, capture_output=True, text=True, check=True).stdout
    first = ["suite", "run", "--flow", "a b", "--suite", "c", "--upload", "--sha", "0d1a"]
    assert said.splitlines() == [*first, *options]
    for refusal, refused in (
        ("--matrix needs a command such as", [*words, "--", "pytest", "tests"]),
        ("--report cannot be in the command", [*words, "--", *command, "--report", "a.csv"]),
        ("of GitHub Actions only, not of gitlab", [*words, "--ci", "gitlab", "--", *command]),
        ("no flow named none", [*words, "--", *command[:3], "--flow", "none"]),
    ):
        assert refusal in CliRunner().invoke(kit, refused).stderr
