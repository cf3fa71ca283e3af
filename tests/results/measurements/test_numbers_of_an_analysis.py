"""The numbers of some series: another formula, or another constant, is a decision (docs/signal.md)."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random

import pytest

from bot.results.measurements.changes import analysis_of
from bot.results.measurements.noise import Noise, common_divisor, noise_of, rounding_unit


def near(values: Sequence[float]) -> object:
    return pytest.approx(values, rel=1e-8, abs=1e-12)


def series(seed: str, *levels: tuple[float, int], deviation: float = 0.02, digits: int = 6) -> list[float]:
    """Return nights at one level after another, with noise and some outliers."""
    rng = Random(seed)
    values = [level * (1 + rng.gauss(0, deviation)) for level, nights in levels for _ in range(nights)]
    for night in range(13, len(values) - 20, 37):
        values[night] *= 1.2
    return [round(value, digits) for value in values]


SERIES = {
    "a rise and a fall": series("a", (412, 90), (467, 30), (430, 20)),
    "a long history": series("b", (12, 400), (12.6, 12)),
    "negative values": [value - 500 for value in series("c", (412, 60), (300, 15))],
    "rounded to a digit": series("d", (5.2, 70), (6.1, 12), deviation=0.01, digits=1),
    "never varied": [5.0] * 40 + [6.0] * 4,
    "few nights": series("e", (412, 22)),
    "steps of the last digit": [5.0] * 60 + [6.0, 5.0] * 8,
}

ANALYSES: dict[str, tuple[list[tuple[int, int, int | None]], list[float]]] = {
    "a rise and a fall": (
        [(90, 94, 120), (120, 122, None)],
        [
            414.455187057,
            472.996443403,
            462.643765263,
            483.580785627,
            470.236259323,
            437.498322,
            426.248699896,
            449.044845883,
            431.728650658,
            409.271417482,
            523.791767684,
        ],
    ),
    "a long history": (
        [(400, 410, None)],
        [11.9452338574, 12.4722172495, 12.2759690884, 12.6716027059, 12.4895665203, 11.7183944677, 15.3565194376],
    ),
    "negative values": (
        [(60, 63, None)],
        [-88.1400184333, -201.5422885, -211.332708831, -191.751868169, -200.881294308, -223.783766574, -106.183401531],
    ),
    "rounded to a digit": (
        [(70, 79, None)],
        [5.20654337328, 6.07484482501, 6.00107811432, 6.14951829403, 6.08976177089, 5.90226293824, 7.29520543483],
    ),
    "never varied": ([], [5.0, 3.96128141367, 6.55798301586]),
    "few nights": ([], [413.000886198, 389.653483115, 447.130358217]),
    "steps of the last digit": ([], [5.09199688074, 4.03957364114, 6.67864581213]),
}
NOISES = {
    "quiet": [
        -0.00131187365314,
        0.0207152676004,
        0.0,
        0.0,
        1.3e-05,
        -0.0750292009199,
        0.0569262110855,
        0.00766761566695,
        0.000993426548653,
        0.000201914385381,
        6.80746167508e-08,
        1.02368292883,
        150.0,
        0.0206885351857,
        -0.017550767011,
        0.0132791303389,
    ],
    "outliers": [
        -0.00114791294824,
        0.0161819065483,
        0.0,
        1.0,
        2.5e-06,
        -0.0443136405808,
        0.241496902952,
        0.00647633905084,
        0.0449449092319,
        8.75064458065e-05,
        0.00112531792199,
        1.0,
        30.0,
        0.0169147126165,
        -0.0124039732626,
        0.0111601254793,
    ],
    "rounded": [
        0.000164891758044,
        0.0212353502683,
        1.17728220557,
        1.0,
        2.5e-06,
        -0.0814810506175,
        0.0818108341336,
        0.0291171307808,
        0.00531832560289,
        0.000912976185154,
        7.86935609781e-06,
        1.0,
        30.0,
        0.047197004168,
        -0.0396063209358,
        0.042626920311,
    ],
}
BEYOND = {"quiet": (0, 0, 47), "outliers": (5, 0, 11), "rounded": (0, 0, 19)}


def numbers_of(values: Sequence[float]) -> tuple[list[tuple[int, int, int | None]], list[float]]:
    """Return the nights of the changes that a series shows, and all its levels and bounds."""
    analysis = analysis_of(values)
    nights = [(change.begin, change.confirmed, change.end) for change in analysis.changes]
    levels = [number for each in analysis.changes for number in (each.before, each.after, each.low, each.high)]
    rest = [] if analysis.level is None else [analysis.level]
    return nights, [*levels, *rest, *(analysis.predicted or ())]


@pytest.mark.parametrize("name", SERIES)
def test_the_changes_of_a_series_and_what_is_expected_next(name: str) -> None:
    nights, levels = numbers_of(SERIES[name])
    assert (nights, levels) == (ANALYSES[name][0], near(ANALYSES[name][1]))


def described(noise: Noise) -> list[float]:
    """Return the numbers of a noise and what it says about new nights."""
    chances = [noise.chance(offsets, 40) for offsets in ([0.03, 0.05], [0.2, 0.01], [-0.04] * 5, [0.2, 0.2, 0.2])]
    sizes = [noise.center, noise.deviation, noise.blur, noise.has_tails, noise.most_chance, *noise.bounds(0.99, 40)]
    return [*sizes, *chances, noise.inflation(5), noise.freedom(3), noise.margin(5, 40), *noise.bounds(0.5, 20)]


def residuals(name: str) -> list[float]:
    rng = Random(name)
    nights = 300 if name == "quiet" else 60
    return [rng.gauss(0, 0.02) + (0.2 if name == "outliers" and night % 12 == 0 else 0.0) for night in range(nights)]


@pytest.mark.parametrize(("name", "unit"), [("quiet", 0.0), ("outliers", 0.0), ("rounded", 0.05)])
def test_what_noise_explains(name: str, unit: float) -> None:
    noise = noise_of(residuals(name), unit)
    assert described(noise) == near(NOISES[name])
    assert (noise.beyond(5, 1), noise.beyond(5, -1), noise.beyond(1, 1)) == BEYOND[name]


@pytest.mark.parametrize(
    ("values", "divisor", "unit"),
    [
        ([5.13, 6.27, 6.27], 0.57, 0.01),
        ([0.90, 0.85], 0.05, 0.05),
        ([12.5, 25.0], 12.5, 0.1),
        ([700.0, 1050.0], 350.0, 1.0),
        ([-3.0, 3.0], 3.0, 1.0),
        ([0.0, 0.0], 0.0, 0.0),
        ([1e-5, 7.0], 7.0, 1e-5),
        ([30.0, 33.0, 36.0], 3.0, 3.0),
        ([29.0, 32.0], 1.0, 1.0),
    ],
)
def test_the_unit_to_which_values_are_rounded(values: list[float], divisor: float, unit: float) -> None:
    assert (common_divisor(values), rounding_unit(values)) == near((divisor, unit))
