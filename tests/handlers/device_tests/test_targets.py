"""Which targets accept requests, and which of them a name means."""

from __future__ import annotations

import pytest

from bot.results.settings.results import Results
from bot.results.settings.targets import TargetSettings
from handlers.device_tests.store import JobRequests
from handlers.device_tests.targets import (
    labeled_targets,
    named_targets,
    nearest_targets,
    over_budget,
    pushed_targets,
    request_targets,
)

RESULTS = Results.model_validate(
    {
        "bucket": "device-results",
        "labs": {
            "example-lab": {
                "targets": {
                    "hexagon-v73": {"tier": 2, "label": "test: hexagon"},
                    "adreno": "nightly",
                    "mali": {"tier": 1, "paths": ("src/mali/**", "*.cl")},
                }
            },
            "other-lab": {"targets": {"hexagon-v73": {"tier": 2}, "cortex-m": {"tier": 1}}},
        },
    }
)
TARGETS = request_targets(RESULTS)
NAMES = ["example-lab/hexagon-v73", "example-lab/mali", "other-lab/hexagon-v73", "other-lab/cortex-m"]


def test_targets_of_tier_1_and_2_accept_requests() -> None:
    assert [target.full_name for target in TARGETS] == NAMES
    assert request_targets(None) == []


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("hexagon-v73", ["example-lab/hexagon-v73", "other-lab/hexagon-v73"]),
        ("Other-Lab/HEXAGON-v73", ["other-lab/hexagon-v73"]),
        ("mali", ["example-lab/mali"]),
        ("example-lab/cortex-m", []),
        ("hexagon", []),
        ("", []),
    ],
)
def test_a_name_means_a_target_of_any_lab_or_of_the_named_one(name: str, expected: list[str]) -> None:
    named = named_targets(RESULTS, [name])
    assert [target.full_name for target in named.targets] == expected
    assert named.unknown == (() if expected else (name,))


def test_a_nightly_target_is_recognized_but_accepts_no_requests() -> None:
    named = named_targets(RESULTS, ["adreno", "example-lab/Adreno", "mali", "MALI"])
    assert (named.nightly, named.unknown) == (("adreno", "example-lab/Adreno"), ())
    assert [target.full_name for target in named.targets] == ["example-lab/mali"]


@pytest.mark.parametrize(
    ("name", "nearest"),
    [("hexagon-v37", "hexagon-v73"), ("MALY", "mali"), ("other-lab/cortexm", "other-lab/cortex-m"), ("qqqqqqqq", "")],
)
def test_the_nearest_name_is_suggested(name: str, nearest: str) -> None:
    assert [*nearest_targets(name, TARGETS), ""][0] == nearest


@pytest.mark.parametrize(
    ("label", "names"),
    [
        ("test: Hexagon", ["example-lab/hexagon-v73"]),
        ("test: hexagon-v73", ["other-lab/hexagon-v73"]),
        ("test: adreno", []),
        ("bug", []),
    ],
)
def test_a_label_asks_for_its_target(label: str, names: list[str]) -> None:
    assert [target.full_name for target in labeled_targets(TARGETS, label)] == names


@pytest.mark.parametrize(
    ("changed", "names"),
    [
        (["src/mali/deep/tile.cc"], ["example-lab/mali", "other-lab/cortex-m"]),
        (["a/b/kernel.cl"], ["example-lab/mali", "other-lab/cortex-m"]),
        (["README.md"], ["other-lab/cortex-m"]),
        ([], ["other-lab/cortex-m"]),
        (None, ["example-lab/mali", "other-lab/cortex-m"]),
    ],
)
def test_tier_1_tests_a_push_that_changes_its_files(changed: list[str] | None, names: list[str]) -> None:
    assert [target.full_name for target in pushed_targets(TARGETS, changed)] == names


@pytest.mark.parametrize(
    ("used", "budget"),
    [((39, 9), ""), ((40, 0), "40/day"), ((39, 10), "10/day"), ((41, 11), "40/day")],
)
def test_budgets_apply_to_everybody_and_to_each_person(used: tuple[int, int], budget: str) -> None:
    settings = TargetSettings(tier=2, budget="40/day", budget_per_person="10/day")
    assert over_budget(settings, JobRequests(*used)) == budget
    assert over_budget(TargetSettings(tier=2), JobRequests(*used)) == ""
