"""The parts of the method are what their sources define: the energy distance, Student's t, and what noise explains."""

from __future__ import annotations

from itertools import combinations, product
from random import Random

import pytest

from bot.results.measurements.energy import LEAST, newest_part
from bot.results.measurements.noise import noise_of, trimmed_mean
from bot.results.measurements.student import quantile, upper_tail


def distance(older: list[float], newest: list[float]) -> float:
    """Return the energy distance as Matteson and James define it."""
    left, right = len(older), len(newest)
    between = sum(abs(old - new) for old, new in product(older, newest)) / (left * right)
    in_older = sum(abs(first - second) for first, second in combinations(older, 2)) / (left * (left - 1) / 2)
    in_newest = sum(abs(first - second) for first, second in combinations(newest, 2)) / (right * (right - 1) / 2)
    return left * right / (left + right) * (2 * between - in_older - in_newest)


def test_the_newest_part_has_the_largest_energy_distance_from_the_rest() -> None:
    rng = Random("energy")
    for _ in range(40):
        size, most = rng.randint(4, 30), rng.randint(2, 12)
        values = [rng.gauss(0, 1) for _ in range(size)]
        changed = rng.randint(1, 9)
        values = [value + (5 if night >= size - changed else 0) for night, value in enumerate(values)]
        distances = {
            count: distance(values[:-count], values[-count:]) for count in range(LEAST, min(most, size - LEAST) + 1)
        }
        assert newest_part(values, most) == max(distances, key=lambda count: distances[count])


@pytest.mark.parametrize(
    ("freedom", "probability", "value"),
    [(5, 0.975, 2.571), (10, 0.975, 2.228), (30, 0.975, 2.042), (10, 0.9995, 4.587), (100, 0.9995, 3.390)],
)
def test_quantiles_are_those_of_the_tables(freedom: float, probability: float, value: float) -> None:
    assert quantile(probability, freedom) == pytest.approx(value, rel=0.01)
    assert upper_tail(quantile(probability, freedom), freedom) == pytest.approx(1 - probability)


def test_noise_is_that_of_the_ordinary_nights_and_knows_its_outliers_and_its_waves() -> None:
    rng = Random("noise")
    quiet = [rng.gauss(0, 0.02) for _ in range(300)]
    noise = noise_of(quiet)
    assert noise.deviation == pytest.approx(0.02, rel=0.1)
    assert not noise.has_tails
    assert noise.inflation(5) < 1.5
    assert not noise.explains([0.1, 0.1], 40)
    with_outliers = noise_of([*quiet[:-6], *([0.3] * 6)])
    assert with_outliers.deviation == pytest.approx(noise.deviation, rel=0.05)
    assert (with_outliers.beyond(5, 1), with_outliers.beyond(5, -1)) == (6, 0)
    assert with_outliers.explains([0.1, 0.1], 40)
    assert not with_outliers.explains([0.1] * 6, 40)
    waves = noise_of([value + 0.04 * (-1) ** (night // 10) for night, value in enumerate(quiet)])
    assert waves.inflation(5) > 2.5
    assert noise_of(quiet[:100]).has_tails
    assert noise_of([0.0] * 200).deviation > 0
    low, high = with_outliers.bounds(0.99, 40)
    assert low == pytest.approx(-0.055, abs=0.01)
    assert high == 0.3


def test_a_trimmed_mean_leaves_out_the_extremes() -> None:
    assert trimmed_mean([1, 2]) == 1.5
    assert trimmed_mean([1, 2, 90]) == 2
    assert trimmed_mean([-90.0, *[5.0] * 14, 90.0]) == 5
