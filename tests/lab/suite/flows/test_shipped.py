"""The flows and suites that nightjar-lab declares, and the packages that each needs."""

from __future__ import annotations

import ast
import tomllib
from pathlib import Path

import pytest
from nightjar_lab.suite.discovery import FLOWS, SUITES, NotAvailable, entry_points, load_flow

from tests.running import ROOT

LAB = tomllib.loads((ROOT / "lab/pyproject.toml").read_text())["project"]
EXTRAS = LAB["optional-dependencies"]
HEAVY = {"onnxruntime": "onnxruntime", "tvm": "tvm", "executorch": "executorch"}
"""Packages that are not installed for the tests, and the extra that brings each."""


@pytest.mark.parametrize("group", [FLOWS, SUITES])
def test_each_declared_package_is_installed_with_its_module(group: str) -> None:
    declared = LAB["entry-points"][group]
    installed = {name: point.value for name, point in entry_points(group).items()}
    assert installed == declared
    for name, value in declared.items():
        module, _, attribute = value.partition(":")
        tree = ast.parse((ROOT / "lab" / Path(*module.split("."))).with_suffix(".py").read_text())
        assigned = {
            target.id: node.value.args[0].value
            for node in tree.body
            if isinstance(node, ast.Assign) and isinstance(node.value, ast.Call) and node.value.args
            for target in node.targets
            if isinstance(target, ast.Name) and isinstance(node.value.args[0], ast.Constant)
        }
        assert assigned[attribute] == name


@pytest.mark.parametrize("extra", ["onnx", "onnxruntime", "tvm", "executorch"])
def test_the_packages_of_an_extra_have_exact_versions_except_numpy(extra: str) -> None:
    assert [package for package in EXTRAS[extra] if "==" not in package] == ["numpy>=1.24"]


@pytest.mark.parametrize(
    ("flow", "missing", "backend"),
    [
        ("onnxruntime-cpu-int8-static", "onnxruntime", ""),
        ("tvm-llvm", "tvm", ""),
        ("xnnpack_dynamic_int8_per_channel", "torch", "xnnpack"),
        ("coreml", "torch", "coreml"),
    ],
)
def test_a_flow_with_missing_packages_names_them(flow: str, missing: str, backend: str) -> None:
    try:
        __import__(missing)
    except ImportError:
        with pytest.raises(NotAvailable, match=f"it needs the Python module {missing}") as reason:
            load_flow(flow)
        assert reason.value.backend == backend
    else:
        pytest.skip(f"{missing} is installed here")
