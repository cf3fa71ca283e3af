"""What the tests of report files measure, for `nightjar results measurements FILE...`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from nightjar_formats.measurements import Measurement
from nightjar_formats.readers import read
from nightjar_formats.refused import Refused
from nightjar_formats.terminal import escape_controls

from bot.cli.results import texts
from bot.core.errors import UserError
from bot.results.measurements.texts import number_text


class MeasuredTest(NamedTuple):
    """A measurement of a test in a file."""

    file: str
    test: str
    measurement: Measurement


def measured_tests(paths: Sequence[Path]) -> Iterator[MeasuredTest]:
    """Yield what the tests of some report files measure, in the order of the files; all formats that labs may send.

    Raises `UserError` for a file that cannot be read, or that the bot would refuse.
    """
    for path in paths:
        try:
            with path.open("rb") as stream:
                for case in read(stream, path.name):
                    yield from (MeasuredTest(path.name, case.own_name, measured) for measured in case.measurements)
        except Refused as error:
            raise UserError(str(error)) from error
        except OSError as error:
            raise UserError(texts.NOT_READ.format(path=path, reason=error.strerror or error)) from error


def row_of_measured(measured: MeasuredTest) -> tuple[str, ...]:
    """Return a row of the table: file, test, name, value with its unit, which direction is better, and samples."""
    file, test, (name, value, unit, better, samples) = measured
    text = texts.VALUE.format(value=number_text(value), unit=unit and f" {unit}")
    return tuple(map(escape_controls, (file, test, name, text, str(better), str(len(samples) or ""))))
