"""Flows and suites of number lists: a model is a list of factors, and running it multiplies."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from nightjar_lab.suite.case import CaseData, SuiteCase, TestSuite
from nightjar_lab.suite.flow import Flow


def data(factors: Sequence[float] = (2.0, 3.0)) -> CaseData:
    return CaseData(list(factors), [[1.0, 1.0]], [list(factors)])


def lower(model: Any, _data: CaseData) -> Any:
    return tuple(model)


def run(program: Any, inputs: Sequence[Any]) -> list[Any]:
    return [[factor * element for factor, element in zip(program, inputs[0], strict=True)]]


FLOW = Flow("toy", "lists", lower, run, version="1.0")
INT8 = replace(FLOW, name="toy_int8", quantize=lambda model, _data: model, quantization="static int8")
SUITE = TestSuite.of("toys", [SuiteCase(name, lambda _seed: data()) for name in ("add", "mul", "sub")], version="2.0")


def make_flow() -> Flow:
    return FLOW


def install(folder: Path, flows: dict[str, str] | None = None, suites: dict[str, str] | None = None) -> None:
    """Lay out a distribution with these entry points, as pip does."""
    info = folder / "toys-1.0.dist-info"
    info.mkdir(parents=True, exist_ok=True)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: toys\nVersion: 1.0\n")
    lines = ["[nightjar_lab.flows]", *(f"{name} = {value}" for name, value in (flows or {}).items())]
    lines += ["[nightjar_lab.suites]", *(f"{name} = {value}" for name, value in (suites or {}).items())]
    (info / "entry_points.txt").write_text("\n".join(lines) + "\n")
