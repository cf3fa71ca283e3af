"""`python -m tests.signal.measurements`: how often changes of measurements are reported rightly and wrongly.

Each seed is a series of a year for every kind of noise, and the same series with a change at its end. With `--write`,
update the tables in docs/signal.md; with `--otava`, also run Apache Otava on the same series.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from statistics import median
from typing import Protocol

import click

from bot.core.docs import replace_block, table
from bot.results.measurements.changes import analysis_of
from tests.signal.measured_noise import MONTH, NOISES, series
from tests.signal.otava import Otava, OtavaMissingError

PAGE = Path(__file__).parents[2] / "docs" / "signal.md"
BLOCK = "measurements"
HISTORY, AFTER = 360, 15
"""Nights without a change, and after one."""
CHANGES = {1.05: (3, 14), 1.1: (2, 14)}
"""The planted changes, and within how many nights they should be reported."""
FIXED_SHARE, FIXED_NIGHTS = 0.05, 30
"""The rule of simple tools: the newest two nights are 5 % above or below the median of a month before."""
OTAVA_SERIES, OTAVA_NIGHTS = 50, 150
"""The series that Otava reads, which takes a hundred times as long, and the nights before a change: three windows."""
HEADER = (
    "noise",
    "wrong reports in 1,000 months",
    "5 % rule",
    "Otava",
    "+5 % reported within 3 nights",
    "5 % rule",
    "Otava",
    "within 14 nights",
    "+10 % within 2 nights",
    "5 % rule",
    "Otava",
    "interval holds the true size",
    "predicted nights",
)
OURS, RULE, OTAVA = "ours", "5 % rule", "Otava"
NONE = "-"


class Method(Protocol):
    """Return the nights of a series, from a night on, at which it reports a change."""

    def __call__(self, values: Sequence[float], since: int) -> list[int]: ...


@dataclass(slots=True)
class MethodErrors:
    """What a method did: wrong reports, and for each planted change, how many nights its report took (0: none)."""

    wrong: int = 0
    months: int = 0
    delays: dict[str, list[int]] = field(default_factory=dict)

    def within(self, changed: float, nights: int) -> float:
        """Return the share of planted changes that were reported within so many nights."""
        delays = self.delays[str(changed)]
        return sum(0 < delay <= nights for delay in delays) / len(delays)


@dataclass(slots=True)
class NoiseErrors:
    """The errors of all methods in one kind of noise; `intervals` are those of reports, `held` have the true size."""

    months: int = 0
    methods: dict[str, MethodErrors] = field(default_factory=dict)
    intervals: int = 0
    held: int = 0
    predicted: int = 0

    @property
    def series(self) -> int:
        """Return the number of series."""
        return self.months * MONTH // HISTORY


def reports_of_fixed_rule(values: Sequence[float], since: int) -> list[int]:
    """Return the nights at which the newest two are 5 % from the median of the month before; it begins anew there."""
    reports, begin = list[int](), 0
    for night in range(max(since, 3), len(values)):
        before = values[max(begin, night - 1 - FIXED_NIGHTS) : night - 1]
        if len(before) < 2:
            continue
        level = median(before)
        shares = [value / level - 1 for value in values[night - 1 : night + 1]]
        if min(shares) > FIXED_SHARE or max(shares) < -FIXED_SHARE:
            reports.append(night)
            begin = night - 1
    return reports


class OtavaReports:
    """Reports of Otava. Without a change it sees the whole year at once, which is kinder than to ask it every night."""

    def __init__(self, otava: Otava) -> None:
        self._otava = otava

    def __call__(self, values: Sequence[float], since: int) -> list[int]:
        """Return the nights at which it reports a change."""
        if not since:
            return self._otava.change_points(values)
        begin, most = max(0, since - OTAVA_NIGHTS), max(nights for nights, _ in CHANGES.values())
        for night in range(since + 1, since + most):
            points = self._otava.change_points(values[begin : night + 1])
            if any(begin + point >= since - 1 for point in points):
                return [night]
        return []


def measured(
    noise: str, seeds: Iterable[int], methods: Mapping[str, Method], changes: Iterable[float] = CHANGES
) -> NoiseErrors:
    """Return the errors of our method, and of others, in the series of some seeds."""
    errors = NoiseErrors(methods={name: MethodErrors() for name in (OURS, *methods)})
    for seed in seeds:
        values = series(noise, Random(f"{noise} {seed}"), HISTORY + 1)
        analysis = analysis_of(values[:-1])
        assert analysis.predicted is not None
        errors.months += HISTORY // MONTH
        errors.methods[OURS].wrong += len(analysis.changes)
        for method_errors in errors.methods.values():
            method_errors.months += HISTORY // MONTH
        low, high = analysis.predicted
        errors.predicted += low <= values[-1] <= high
        for name, method in methods.items():
            errors.methods[name].wrong += len(method(values[:-1], 0))
        for changed in changes:
            values = series(noise, Random(f"{noise} {seed} after"), HISTORY + AFTER, changed, HISTORY)
            report = next((change for change in analysis_of(values).changes if change.confirmed >= HISTORY), None)
            nights = {name: next(iter(method(values, HISTORY)), None) for name, method in methods.items()}
            if report is not None:
                nights[OURS] = report.confirmed
                errors.intervals += 1
                errors.held += report.low <= changed * report.before <= report.high
            for name, method_errors in errors.methods.items():
                night = nights.get(name)
                delay = 0 if night is None else night - HISTORY + 1
                method_errors.delays.setdefault(str(changed), []).append(delay)
    return errors


def rows(measured_errors: dict[str, NoiseErrors]) -> Iterator[tuple[str, ...]]:
    """Yield the rows of the table."""
    for noise, errors in measured_errors.items():
        names = (OURS, RULE, OTAVA)
        wrong = [_rate(errors, name) for name in names]
        small, large = ([_within(errors, name, changed) for name in names] for changed in CHANGES)
        later = f"{errors.methods['ours'].within(1.05, CHANGES[1.05][1]):.1%}"
        held = f"{errors.held / max(1, errors.intervals):.1%}"
        yield (noise, *wrong, *small, later, *large, held, f"{errors.predicted / errors.series:.1%}")


def _rate(errors: NoiseErrors, name: str) -> str:
    if name not in errors.methods:
        return NONE
    return f"{1_000 * errors.methods[name].wrong / errors.methods[name].months:,.2f}"


def _within(errors: NoiseErrors, name: str, changed: float) -> str:
    return f"{errors.methods[name].within(changed, CHANGES[changed][0]):.1%}" if name in errors.methods else NONE


def seeds_of(text: str) -> range:
    """Return the seeds of an option such as 0-199, or of a single number."""
    first, _, last = text.partition("-")
    return range(int(first), int(last or first) + 1)


@click.command()
@click.option("--seeds", default="0-199", show_default=True, help="The first and the last seed, as in 0-199.")
@click.option("--json", "as_json", is_flag=True, help="Print counts as JSON.")
@click.option("--write", is_flag=True, help="Write the tables into docs/signal.md.")
@click.option("--otava", "with_otava", is_flag=True, help="Run Apache Otava too; installs it in a folder of its own.")
def main(seeds: str, as_json: bool, write: bool, with_otava: bool) -> None:
    """Simulate series of measurements, and print how often reports of changes are right."""
    of_seeds, methods = seeds_of(seeds), {RULE: reports_of_fixed_rule}
    errors = {noise: measured(noise, of_seeds, methods) for noise in NOISES}
    if with_otava:
        _add_otava(errors, of_seeds[:OTAVA_SERIES])
    text = table(HEADER, rows(errors))
    click.echo(json.dumps(_summary(errors), indent=2) if as_json else text)
    if write:
        PAGE.write_text(replace_block(PAGE.read_text(encoding="utf-8"), BLOCK, text), encoding="utf-8")


def _add_otava(errors: dict[str, NoiseErrors], seeds: range) -> None:
    try:
        otava = Otava()
    except OtavaMissingError as error:
        click.echo(f"Apache Otava could not be installed, so its columns are empty: {error}", err=True)
        return
    click.echo(f"Apache Otava {otava.version}, on the first {len(seeds)} series of each kind", err=True)
    for noise, noise_errors in errors.items():
        noise_errors.methods[OTAVA] = measured(noise, seeds, {OTAVA: OtavaReports(otava)}).methods[OTAVA]
    otava.close()


def _summary(errors: dict[str, NoiseErrors]) -> dict[str, object]:
    """Return the counts and shares of each kind of noise."""
    return {
        noise: {
            "months": noise_errors.months,
            "predicted": noise_errors.predicted / noise_errors.series,
            "intervals": noise_errors.intervals,
            "intervals_with_true_size": noise_errors.held,
            "methods": {
                name: {
                    "wrong": method.wrong,
                    "months": method.months,
                    "wrong_in_1000_months": 1_000 * method.wrong / method.months,
                    **{
                        f"{changed:.2f} within {nights} nights": method.within(changed, nights)
                        for changed, limits in CHANGES.items()
                        for nights in limits
                        if name != OTAVA or nights < AFTER - 1
                    },
                }
                for name, method in noise_errors.methods.items()
            },
        }
        for noise, noise_errors in errors.items()
    }


if __name__ == "__main__":
    main()
