"""What people read about a change of a measurement."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from bot.results.measurements.changes import LevelChange

RATIO = "{name} {before} -> {after}{unit}, {share} % ({low} to {high})"
DIFFERENCE = "{name} {before} -> {after}{unit} ({low} to {high})"
EXACT = "{name} {before} -> {after}{unit}"
_WHOLE_PERCENT = 10
"""Smaller shares have a decimal."""
_MOST_TIMES = 1000
"""Of a larger rise, no share is shown."""
_MANY_DIGITS = 1e15
"""From this number on, numbers are written with an exponent: a double has no more exact digits."""


def change_text(name: str, unit: str, change: LevelChange) -> str:
    """Return the change in a line: `latency 412 -> 467 ms, +13 % (11 to 15)`; the interval has 95 % confidence."""
    unit = unit and f" {unit}"
    before, after = number_text(change.before), number_text(change.after)
    if change.low == change.high:
        return EXACT.format(name=name, before=before, after=after, unit=unit)
    if change.before <= 0 or change.high / _MOST_TIMES > change.before:
        low, high = number_text(change.low), number_text(change.high)
        return DIFFERENCE.format(name=name, before=before, after=after, unit=unit, low=low, high=high)
    shares = [100 * (level / change.before - 1) for level in (change.after, change.low, change.high)]
    digits = 0 if abs(shares[0]) >= _WHOLE_PERCENT else 1
    share, low, high = (f"{share:.{digits}f}" for share in shares)
    sign = "+" if change.is_rise else ""
    return RATIO.format(name=name, before=before, after=after, unit=unit, share=f"{sign}{share}", low=low, high=high)


def number_text(value: float) -> str:
    """Return a number with at least three digits, and all digits before the point up to `_MANY_DIGITS`."""
    number = value + 0.0  # -0.0 becomes 0.0
    return f"{number:,.0f}" if 100 <= abs(number) < _MANY_DIGITS else f"{number:.3g}"
