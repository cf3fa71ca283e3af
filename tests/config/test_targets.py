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
            ".x.teir: unknown key (did you mean tier?); allowed: tier, label, paths, slots, timeout, benchmark, "
            "suites, budget, budget_per_person, simulates, sticky, searches, repair_within, measurements",
        ),
    ],
)
def test_a_fault_is_named_with_its_place(targets: str, column: int, fault: str) -> None:
    with pytest.raises(ConfigError) as caught:
        lab(targets)
    assert str(caught.value) == PLACE % column + fault


def test_limits_of_measurements_are_those_of_the_target_then_of_all_and_names_come_before_patterns() -> None:
    text = """\
repositories:
  octocat/a:
    results:
      bucket: b-1
      measurements: {latency: {least: 5%}, "*_time": {least: 10%}, "*": {least: 3%}}
      labs: {a: {targets: {x: {measurements: {"lat*": {least: 7.5%}, lower*: {least: 0%}}}, y: nightly}}}
  octocat/b:
    results: {bucket: b-1, labs: {a: {targets: [x]}}}
"""
    repositories = parse_config(text.encode(), "app.yaml").repositories
    results, defaults = (enabled(repositories[name], LAB_RESULTS) for name in ("octocat/a", "octocat/b"))
    first, second = results.change_limits("a", "x"), results.change_limits("a", "y")
    names = ("latency", "quantize_time", "lower_bound", "size")
    assert [first.least(name, "ms") for name in names] == [0.075, 0.1, 0.0, 0.03]
    assert [second.least(name, "ms") for name in names] == [0.05, 0.1, 0.03, 0.03]
    units = ("ms", "B", "nodes")
    assert [defaults.change_limits("a", "removed").least("latency", unit) for unit in units] == [0.02, 0.01, 0.0]


def test_a_limit_of_measurements_is_a_share_in_percent() -> None:
    fault = r"measurements.latency.least: is a number; it must be a share in percent, as in 5%"
    with pytest.raises(ConfigError, match=fault):
        lab("{x: {measurements: {latency: {least: 0.05}}}}")
