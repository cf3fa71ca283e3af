"""The targets of a lab: as a list of names, or with what people may request of each."""

from __future__ import annotations

import pytest
from nightjar_formats.model import TARGET_WORDS

from bot.app.load import parse_config
from bot.config import ConfigError
from bot.results.settings.results import Lab
from bot.results.settings.targets import LONGEST_TEST, TargetSettings, per_day
from bot.results.settings.texts import LONG_TEST
from handlers.device_tests.model import MOST_ATTEMPTS, QUEUE_SECONDS
from handlers.results.config import LAB_RESULTS
from tests.settings import enabled

CONFIG = "repositories:\n  octocat/a:\n    results: {bucket: b-1, labs: {a: {targets: %s}}}\n"
PLACE = "app.yaml:3:%d: repositories.octocat/a.results.labs.a.targets"
NIGHTLY = TargetSettings()


def lab(targets: str) -> Lab:
    results = enabled(parse_config((CONFIG % targets).encode(), "app.yaml").repositories["octocat/a"], LAB_RESULTS)
    return results.labs["a"]


@pytest.mark.parametrize(
    "targets", ["[x, y]", "{x: nightly, y: nightly}", "{x: , y: {}}", "{x: nightly, y: {tier: 3}}"]
)
def test_a_list_of_names_is_targets_that_accept_no_requests(targets: str) -> None:
    assert dict(lab(targets).targets) == {"x": NIGHTLY, "y": NIGHTLY}
    assert not NIGHTLY.takes_requests


def test_a_target_says_what_may_be_requested_of_it() -> None:
    written = """{
        hexagon-v73: {tier: 2, label: "test: hexagon", paths: ["src/target/hexagon/**"], slots: 2, timeout: 90m,
                      suites: [operators], budget: 40/day, budget_per_person: 5/day, sticky: true},
        adreno: nightly, mali: {tier: 1}}"""
    targets = lab(written).targets
    assert list(targets) == ["hexagon-v73", "adreno", "mali"]
    hexagon = targets["hexagon-v73"]
    assert (hexagon.tier, hexagon.slots, hexagon.suites, hexagon.sticky) == (2, 2, ("operators",), True)
    assert (per_day(hexagon.budget), per_day(hexagon.budget_per_person), per_day(None)) == (40, 5, None)
    assert hexagon.timeout_seconds == 5400
    assert [name for name, target in targets.items() if target.takes_requests] == ["hexagon-v73", "mali"]
    assert [targets[name].label_of(name) for name in ("hexagon-v73", "mali")] == ["test: hexagon", "test: mali"]


def test_a_check_run_ends_long_before_github_would_end_it() -> None:
    """Each attempt waits for a device, and then takes as long as it may."""
    assert lab("{x: {timeout: 3d}}").targets["x"].timeout_seconds == LONGEST_TEST
    assert MOST_ATTEMPTS * (QUEUE_SECONDS + LONGEST_TEST) < 14 * 86_400


@pytest.mark.parametrize(
    ("targets", "column", "fault"),
    [
        ("[1]", 48, ": must have only names as items; put a number in quotes, and write keys of targets as a mapping"),
        ("[a b]", 39, f": must be {TARGET_WORDS}"),
        ("{'a b': nightly}", 49, f".a b: must be {TARGET_WORDS}"),
        ("{x: 2}", 52, ".x: is a number; it must be nightly, or a mapping of keys"),
        ("{x: on}", 52, ".x: is text; it must be nightly, or a mapping of keys"),
        ("{x: {tier: 4}}", 59, ".x.tier: must be 1 (every pull request), 2 (on request) or 3 (nightly only)"),
        ("{x: {slots: 0}}", 60, ".x.slots: must be a whole number from 1 to 100"),
        ("{x: {budget: 40/h}}", 61, ".x.budget: must be a number of tests per day, as in 40/day"),
        ("{x: {timeout: 73h}}", 62, f".x.timeout: {LONG_TEST}"),
        ("{x: {timeout: 3w}}", 62, ".x.timeout: must be a time such as 30s, 15m, 6h or 7d"),
        (
            "{x: {teir: 1}}",
            53,
            ".x.teir: unknown key (did you mean tier?); allowed: tier, label, paths, slots, timeout, suites, budget, "
            "budget_per_person, sticky, searches, repair_within",
        ),
    ],
)
def test_a_fault_is_named_with_its_place(targets: str, column: int, fault: str) -> None:
    with pytest.raises(ConfigError) as caught:
        lab(targets)
    assert str(caught.value) == PLACE % column + fault
