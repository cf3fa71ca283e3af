"""Ratios of two sides that run in turn, and changes that people read about together."""

from __future__ import annotations

from random import Random

import pytest
from nightjar_formats.measurements import Better
from nightjar_formats.model import TargetKey

from bot.results.measurements.groups import grouped, targets_of
from bot.results.measurements.moved import MovedSeries
from bot.results.measurements.pairs import LEAST_BLOCKS, ratio_of


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
