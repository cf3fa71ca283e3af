"""Flows and suites are found by entry point or by module, with a reason for each that cannot be loaded."""

from __future__ import annotations

from pathlib import Path

import pytest
from nightjar_lab.suite.case import SuiteCase
from nightjar_lab.suite.discovery import FLOWS, NotAvailable, UnknownEntryPoint, entry_points, load_flow, load_suite
from nightjar_lab.suite.flow import matches_pattern, matching

from tests.lab.suite import toys

HERE = "tests.lab.suite.toys"


@pytest.fixture
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    flows = {
        "toy": f"{HERE}:FLOW",
        "made": f"{HERE}:make_flow",
        "absent": "no_such_compiler:FLOW",
        "odd": f"{HERE}:data",
    }
    toys.install(tmp_path, flows, {"toys": f"{HERE}:SUITE"})
    monkeypatch.syspath_prepend(tmp_path)


@pytest.mark.usefixtures("installed")
def test_flows_and_suites_are_found_by_entry_point() -> None:
    assert {"toy", "made", "absent", "odd"} <= set(entry_points(FLOWS))
    assert load_flow("toy") is toys.FLOW
    assert load_flow("made") is toys.FLOW
    assert list(load_suite("toys").names()) == ["add", "mul", "sub"]


@pytest.mark.usefixtures("installed")
def test_a_flow_or_suite_that_cannot_be_loaded_has_its_reason() -> None:
    with pytest.raises(NotAvailable, match="it needs the Python module no_such_compiler"):
        load_flow("absent")
    with pytest.raises(NotAvailable, match="is not a Flow and returns none, but CaseData"):
        load_flow("odd")
    with pytest.raises(UnknownEntryPoint, match=r"there is no flow named tyo; available: .*toy"):
        load_flow("tyo")


def test_a_flow_is_loaded_by_its_module_without_an_installation() -> None:
    assert load_flow(f"{HERE}:FLOW") is toys.FLOW


@pytest.mark.parametrize(
    ("pattern", "name", "matches"),
    [
        ("test_add", "test_add", True),
        ("test_add", "test_add_bcast", False),
        ("test_*", "test_add", True),
        ("*[xnnpack]", "test_add[xnnpack]", True),
        ("*_?16", "test_bf16", False),
        ("*_?16", "test_f16_f16", True),
        ("*a*a*", "a", False),
        ("*a*b*", "xaxbx", True),
        ("a*ab", "aab", True),
        ("a*ab", "ab", False),
        ("*", "", True),
        ("", "", True),
        ("", "a", False),
        ("*ab*ab", "ab", False),
    ],
)
def test_a_pattern_matches_whole_names(pattern: str, name: str, matches: bool) -> None:
    assert matches_pattern(pattern, name) is matches


def test_a_pattern_has_a_reason() -> None:
    assert matching({"test_*": "no tests"}, "test_add") == "no tests"
    assert matching(("x", "test_*"), "test_add") == "test_*"
    assert matching(("x",), "test_add") is None


def test_the_seed_of_a_case_is_derived_from_its_name() -> None:
    assert SuiteCase("test_add", lambda _seed: toys.data()).seed == 57655605
