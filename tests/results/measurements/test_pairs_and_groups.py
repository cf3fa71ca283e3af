"""Ratios of two sides that run in turn, and changes that people read about together."""

from __future__ import annotations

from dataclasses import replace
from random import Random

import pytest
from nightjar_formats.measurements import Better
from nightjar_formats.model import TargetKey
from nightjar_formats.pairs import LEAST_BLOCKS, MOST_RATIO, Ratio, ratio_of

from bot.results.measurements.groups import clearest_change, grouped, moved_likewise, targets_of
from bot.results.measurements.levels import MeasuredLevels
from bot.results.measurements.moved import MovedSeries

RATIO, SHORTER = (0.987565008896, 0.858724404801, 1.1357364963), (1.02006851585, 0.720952113412, 1.44328556319)
WIDEST = 0.141275595199


def test_a_linear_drift_cancels_out_of_a_ratio() -> None:
    rng = Random("drift")
    blocks = []
    for number in range(20):
        begin = 1 + 0.1 * number
        a, b, c, d = (begin + 0.01 * place + rng.gauss(0, 0.001) for place in range(4))
        blocks.append((a, b * 1.05, c * 1.05, d))
    ratio = ratio_of(blocks)
    assert ratio is not None
    assert ratio.excludes_one
    assert ratio.low < 1.05 < ratio.high
    assert ratio.width < 0.002
    assert ratio_of(blocks[: LEAST_BLOCKS - 1]) is None
    equal = ratio_of([(20.0, 20.0, 20.0, 20.0)] * LEAST_BLOCKS)
    assert equal is not None
    assert not equal.excludes_one
    assert equal.value == pytest.approx(1)


def test_a_ratio_has_an_interval_that_is_seldom_wrong_however_often_one_looks() -> None:
    blocks = [(10.0 + number % 3, 10.6 + number % 4, 10.2 + number % 2, 10.1 + number % 5) for number in range(9)]
    ratio, shorter = ratio_of(blocks), ratio_of(blocks[:LEAST_BLOCKS])
    assert ratio is not None
    assert shorter is not None
    assert (ratio.value, ratio.low, ratio.high) == pytest.approx(RATIO, rel=1e-9)
    assert (shorter.value, shorter.low, shorter.high) == pytest.approx(SHORTER, rel=1e-9)
    assert (ratio.width, ratio.largest) == pytest.approx(((ratio.high - ratio.low) / 2 / ratio.value, WIDEST))
    huge = ratio_of([(1e-300, 1e300, 1e300, 1e-300), (1.0, 1.0, 1.0, 1.0)] * LEAST_BLOCKS)
    assert huge is not None
    assert (huge.value, huge.low, huge.high) == (MOST_RATIO, 1 / MOST_RATIO, MOST_RATIO)
    assert [Ratio(2.0, low, high).excludes_one for low, high in ((1, 3), (1.1, 3), (0.5, 1), (0.5, 0.9))] == [
        *(False, True, False, True)
    ]


def change(target: str, test: str, commit: str, after: float, better: Better = Better.LOWER) -> MovedSeries:
    about = TargetKey("octocat/tvm", "example-lab", target)
    series = ("id", about, "operators", test, "latency", "ms", better)
    return MovedSeries(*series, commit, 0.0, "good", "confirmed", 0.0, 100.0, after, after - 1, after + 1, "", 0.0)


def test_changes_of_one_commit_are_one_group_on_a_target_and_on_several_if_they_are_the_same() -> None:
    changes = [
        change("rpi", "matmul", "aaa", 120.0),
        change("rpi", "conv", "aaa", 130.0),
        change("jetson", "conv", "aaa", 115.0),
        change("jetson", "matmul", "aaa", 118.0),
        change("orin", "matmul", "aaa", 80.0),
        change("rpi", "matmul", "bbb", 80.0),
    ]
    groups = grouped(changes)
    summary = [
        (group[0].since, [target.target for target in targets_of(group)], [item.test for item in group])
        for group in groups
    ]
    assert summary == [
        ("aaa", ["jetson", "rpi"], ["conv", "matmul", "conv", "matmul"]),
        ("aaa", ["orin"], ["matmul"]),
        ("bbb", ["rpi"], ["matmul"]),
    ]
    assert [item.is_worse for item in groups[0]] == [True] * 4
    assert not groups[1][0].is_worse
    assert change("rpi", "snr", "aaa", 80.0, Better.HIGHER).is_worse
    assert not change("rpi", "snr", "aaa", 80.0, Better.NONE).is_worse


def test_a_search_is_for_the_change_that_is_largest_beside_its_noise_on_all_targets_with_its_range() -> None:
    matmul, conv = change("rpi", "matmul", "aaa", 120.0), change("rpi", "conv", "aaa", 130.0)
    noisy = replace(conv, test="add", after=200.0, low=100.0, high=300.0)
    exact = replace(conv, name="nodes", after=101.0, low=101.0, high=101.0)
    assert clearest_change([matmul, conv, noisy]) == conv
    assert clearest_change([matmul, conv, exact]) == exact
    likewise = change("orin", "conv", "aaa", 115.0)
    others = [
        replace(likewise, good="older"),
        replace(likewise, test="matmul"),
        replace(likewise, after=80.0),
        replace(likewise, since="bbb"),
        replace(conv, name="throughput"),
    ]
    assert moved_likewise(conv, [matmul, conv, likewise, *others]) == [conv, likewise]


@pytest.mark.parametrize(
    ("levels", "value", "is_new"),
    [
        (MeasuredLevels(100, 400), 201, True),
        (MeasuredLevels(100, 400), 199, False),
        (MeasuredLevels(400, 100), 199, True),
        (MeasuredLevels(12, 11), 11, True),
        (MeasuredLevels(0, 10), 5, False),
        (MeasuredLevels(0, 10), 5.1, True),
        (MeasuredLevels(-10, 10), -1, False),
        (MeasuredLevels(100, 400), -5, False),
        (MeasuredLevels(-1.7e308, 1.7e308), 1.6e308, True),
    ],
)
def test_a_value_is_at_the_level_to_which_it_is_closer(levels: MeasuredLevels, value: float, is_new: bool) -> None:
    assert levels.is_new(value) is is_new
    assert levels.count_new([value, levels.before]) == (int(is_new), 2 - is_new)
