"""Compare outputs with the expected ones, with ExecuTorch's measures of error, and find those beyond a tolerance."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from nightjar_lab.suite import texts
from nightjar_lab.suite.case import Tolerance
from nightjar_lab.suite.result import OutputError

if TYPE_CHECKING:
    import numpy


class OutputMismatch(Exception):
    """An output is not as expected; the text says which and why. `errors` are those that could be measured."""

    def __init__(self, text: str, errors: Sequence[OutputError]) -> None:
        super().__init__(text)
        self.errors = tuple(errors)


class NumpyMissing(Exception):
    """NumPy is not installed; the text says how to install it."""


def load_numpy() -> Any:
    """Import NumPy, which only the suite needs. Raises NumpyMissing."""
    try:
        import numpy
    except ImportError as error:
        raise NumpyMissing(texts.NO_NUMPY.format(error=error)) from error
    return numpy


def compare_outputs(outputs: Sequence[Any], expected: Sequence[Any], tolerance: Tolerance) -> list[OutputError]:
    """Return the error of each output. Raises OutputMismatch for the first that is outside of the tolerance.

    An output is an array, None, or a list of arrays, whose elements are compared one by one.
    """
    names, pairs = _pairs(outputs, expected)
    errors: list[OutputError] = []
    faults: list[str] = []
    for name, (output, wanted) in zip(names, pairs):
        fault, error = _compare(output, wanted, tolerance)
        errors += [error] if error else []
        faults += [f"{name} {fault}"] if fault else []
    if faults:
        more = texts.MORE_OUTPUTS.format(count=len(faults) - 1) if len(faults) > 1 else ""
        raise OutputMismatch(faults[0] + more, errors)
    return errors


def _pairs(outputs: Sequence[Any], expected: Sequence[Any]) -> tuple[list[str], list[tuple[Any, Any]]]:
    """Return the name and the two arrays of each output. Raises OutputMismatch if there are more or fewer outputs."""
    numpy = load_numpy()
    if not isinstance(outputs, (list, tuple)):
        raise OutputMismatch(texts.NO_SEQUENCE.format(found=type(outputs).__name__), [])
    if len(outputs) != len(expected):
        raise OutputMismatch(texts.OUTPUT_COUNT.format(found=len(outputs), expected=len(expected)), [])
    names, pairs = [], []
    for number, (output, wanted) in enumerate(zip(outputs, expected)):
        if not (isinstance(wanted, (list, tuple)) and any(isinstance(one, numpy.ndarray) for one in wanted)):
            names.append(f"Output {number}")
            pairs.append((output, wanted))
            continue
        if not isinstance(output, (list, tuple)) or len(output) != len(wanted):
            found = len(output) if isinstance(output, (list, tuple)) else type(output).__name__
            raise OutputMismatch(texts.SEQUENCE_LENGTH.format(number=number, found=found, expected=len(wanted)), [])
        names += [f"Output {number}[{place}]" for place in range(len(wanted))]
        pairs += list(zip(output, wanted))
    return names, pairs


def _compare(output: Any, wanted: Any, tolerance: Tolerance) -> tuple[str, OutputError | None]:
    """Return why an output is wrong, empty if it is right, and its error if one could be measured."""
    numpy = load_numpy()
    if output is None or wanted is None:
        return (
            "" if output is wanted else texts.OUTPUT_MISSING.format(found=_kind(output), expected=_kind(wanted))
        ), None
    found, expected = numpy.asarray(output), numpy.asarray(wanted)
    if found.shape != expected.shape:
        return texts.OUTPUT_SHAPE.format(found=found.shape, expected=expected.shape), None
    if found.dtype != expected.dtype:
        return texts.OUTPUT_DTYPE.format(found=found.dtype, expected=expected.dtype), None
    try:
        wide = {"c": numpy.complex128, "U": None, "S": None, "O": None}.get(expected.dtype.kind, numpy.float64)
        numbers = wide and (found.astype(wide), expected.astype(wide))
    except (TypeError, ValueError):
        numbers = None
    if numbers is None:
        differ = int(numpy.count_nonzero(found != expected))
        return (texts.OUTPUT_DIFFERS.format(count=differ, total=found.size) if differ else ""), None
    return _distance(numbers[0], numbers[1], tolerance)


def _distance(
    found: numpy.ndarray[Any, Any], expected: numpy.ndarray[Any, Any], tolerance: Tolerance
) -> tuple[str, OutputError | None]:
    """Compare arrays of the same shape. NaN equals NaN, and an infinity one of the same sign."""
    numpy = load_numpy()
    if not found.size:
        return "", OutputError(0.0, 0.0, math.inf)
    with numpy.errstate(all="ignore"):
        same = (found == expected) | (numpy.isnan(found) & numpy.isnan(expected))
        odd = ~same & ~(numpy.isfinite(found) & numpy.isfinite(expected))
        # Infinite where one of the two is not a number, so that no statistic hides it.
        error = numpy.where(same, 0.0, numpy.where(odd, math.inf, numpy.abs(found - expected)))
        wrong = ~same & ~(error <= tolerance.absolute + tolerance.relative * numpy.abs(expected))
        wrong |= odd
        numbers = OutputError(float(error.max()), float(error.mean()), _snr(found, expected, error))
    count = int(numpy.count_nonzero(wrong))
    if not count:
        return "", numbers
    place = tuple(int(one) for one in numpy.argwhere(wrong)[0])
    fault = texts.OUTPUT_FAR.format(
        count=count,
        total=found.size,
        largest=numbers.largest,
        place=list(place),
        found=found[place],
        expected=expected[place],
        absolute=tolerance.absolute,
        relative=tolerance.relative,
    )
    return fault, numbers


def _snr(found: numpy.ndarray[Any, Any], expected: numpy.ndarray[Any, Any], error: numpy.ndarray[Any, Any]) -> float:
    """Return 20 log10(|found| / |error|), as ExecuTorch's `compute_sqnr`; infinite where there is no error."""
    numpy = load_numpy()
    noise = float(numpy.linalg.norm(error.ravel()))
    if noise == 0:
        return math.inf
    signal = float(numpy.linalg.norm(numpy.where(numpy.isfinite(found), found, 0).ravel()))
    return 20 * math.log10(signal / noise) if signal and math.isfinite(signal) and math.isfinite(noise) else -math.inf


def _kind(value: Any) -> str:
    return "None" if value is None else type(value).__name__
