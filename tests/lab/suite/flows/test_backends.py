"""Real backends, in a separate environment: `make suite-test`. Elsewhere these tests are skipped."""

from __future__ import annotations

import json
import os
import subprocess
from collections import Counter
from pathlib import Path

import pytest

PYTHON = os.environ.get("NIGHTJAR_SUITE_PYTHON", "")
HAS_TORCH = (
    bool(PYTHON)
    and not subprocess.run([PYTHON, "-c", "import torch, executorch"], check=False, capture_output=True).returncode
)
needs_torch = pytest.mark.skipif(not HAS_TORCH, reason="needs PyTorch and ExecuTorch in the environment of suites")
pytestmark = pytest.mark.skipif(not PYTHON, reason="needs ONNX Runtime and Apache TVM: run make suite-test")


def run(folder: Path, flow: str, suite: str, *options: str) -> tuple[Counter[str], dict[str, dict[str, object]]]:
    """Run a suite on a flow; return how many cases had which outcome, and the records by case."""
    file = folder / "results.jsonl"
    command = [PYTHON, "-m", "nightjar_lab", "suite", "run", "--flow", flow, "--suite", suite, "--jsonl", str(file)]
    subprocess.run([*command, "--json", *options], cwd=folder, check=True, capture_output=True)
    records = [json.loads(line) for line in file.read_text().splitlines()]
    cases = {record["Test Case"]: record for record in records if "Test Case" in record}
    return Counter(str(record["Outcome"]) for record in cases.values()), cases


@pytest.mark.parametrize(
    ("flow", "outcomes"),
    [
        ("onnx-reference", {"pass": 12}),
        ("onnxruntime-cpu", {"pass": 12}),
        ("onnxruntime-cpu-int8", {"pass": 11, "output mismatch": 1}),
        ("onnxruntime-cpu-int8-static", {"pass": 10, "output mismatch": 2}),
        ("tvm-llvm", {"pass": 10, "lower failed": 2}),
        ("tvm-llvm-fp16", {"pass": 9, "lower failed": 2, "output mismatch": 1}),
    ],
)
def test_the_models_have_the_measured_outcomes_on_each_flow(
    tmp_path: Path, flow: str, outcomes: dict[str, int]
) -> None:
    # ONNX Runtime's product of 8-bit integers saturates on processors without VNNI, so that case has no fixed outcome.
    assert run(tmp_path, flow, "onnx-models", "--filter", "^(?!dynamically-quantized)")[0] == outcomes


@needs_torch
@pytest.mark.parametrize(("flow", "outcomes"), [("onnx-reference", {"pass": 15}), ("onnxruntime-cpu", {"pass": 15})])
def test_networks_of_pytorch_run_on_flows_of_onnx(tmp_path: Path, flow: str, outcomes: dict[str, int]) -> None:
    assert run(tmp_path, flow, "torch-models-onnx")[0] == outcomes


@needs_torch
def test_a_quantized_network_of_pytorch_differs_in_what_a_tolerance_of_8_bits_does_not_allow(tmp_path: Path) -> None:
    counts, cases = run(tmp_path, "onnxruntime-cpu-int8-static", "torch-models-onnx", "--filter", "^(gpt|resnet)$")
    assert counts == {"pass": 1, "output mismatch": 1}
    assert cases["gpt"]["Outcome"] == "output mismatch"


@needs_torch
def test_operators_with_named_outputs_can_be_exported(tmp_path: Path) -> None:
    _, cases = run(tmp_path, "xnnpack", "torch-ops", "--filter", "^(topk|jiterator_unary)-float32$")
    assert cases["topk-float32"]["Outcome"] == "pass"
    assert cases["jiterator_unary-float32"]["Outcome"] == "skip"


def test_tvm_names_the_operator_that_it_cannot_import(tmp_path: Path) -> None:
    _, cases = run(tmp_path, "tvm-llvm", "onnx-models", "--filter", "^lstm")
    assert str(cases["lstm"]["Error"]).endswith("not supported for frontend ONNX: LSTM")
    assert cases["lstm"]["Stage"] == "lower"


def test_tvm_reports_its_legalizations_and_the_size_of_the_library(tmp_path: Path) -> None:
    _, cases = run(tmp_path, "tvm-llvm", "onnx-models", "--filter", "^mlp$")
    assert cases["mlp"]["Delegated Ops"] == {
        "relax.add": 2,
        "relax.matmul": 2,
        "relax.nn.relu": 1,
        "relax.nn.softmax": 1,
    }
    assert cases["mlp"]["Undelegated Ops"] == {}
    assert float(str(cases["mlp"]["PTE Size (Kb)"])) > 10


def test_onnx_runtime_reports_which_nodes_its_provider_took(tmp_path: Path) -> None:
    _, cases = run(
        tmp_path, "onnxruntime-cpu", "onnx-node", "--filter", "test_castlike_INT4_to_", "--filter", "^test_abs$"
    )
    assert cases["test_abs"]["Delegated Ops"] == {"Abs": 1}
    packed = {name: record["Outcome"] for name, record in cases.items() if "INT4" in name}
    assert packed
    assert set(packed.values()) == {"pass"}, "values of less than a byte reach ONNX Runtime packed"


def test_random_cases_are_skipped_and_blame_nobody(tmp_path: Path) -> None:
    results, _ = run(tmp_path, "onnxruntime-cpu", "onnx-node", "--filter", "test_bernoulli")
    assert results == {"skip": 6}
