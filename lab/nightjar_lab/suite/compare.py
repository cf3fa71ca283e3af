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
    for name, (output, expected_output) in zip(names, pairs):
        fault, error = _compare(output, expected_output, tolerance)
        errors += [error] if error else []
        faults += [f"{name} {fault}"] if fault else []
    if faults:
        suffix = texts.MORE_OUTPUTS.format(count=len(faults) - 1) if len(faults) > 1 else ""
        raise OutputMismatch(faults[0] + suffix, errors)
    return errors


def _pairs(outputs: Sequence[Any], expected: Sequence[Any]) -> tuple[list[str], list[tuple[Any, Any]]]:
    """Return the name and the two arrays of each output. Raises OutputMismatch if there are more or fewer outputs."""
    numpy = load_numpy()
    if not isinstance(outputs, (list, tuple)):
        raise OutputMismatch(texts.NO_SEQUENCE.format(found=type(outputs).__name__), [])
    if len(outputs) != len(expected):
        raise OutputMismatch(texts.OUTPUT_COUNT.format(found=len(outputs), expected=len(expected)), [])
    names, pairs = [], []
    for number, (output, expected_output) in enumerate(zip(outputs, expected)):
        if not (
            isinstance(expected_output, (list, tuple))
            and any(isinstance(element, numpy.ndarray) for element in expected_output)
        ):
            names.append(f"Output {number}")
            pairs.append((output, expected_output))
            continue
        if not isinstance(output, (list, tuple)) or len(output) != len(expected_output):
            length = len(output) if isinstance(output, (list, tuple)) else type(output).__name__
            raise OutputMismatch(
                texts.SEQUENCE_LENGTH.format(number=number, found=length, expected=len(expected_output)), []
            )
        names += [f"Output {number}[{place}]" for place in range(len(expected_output))]
        pairs += list(zip(output, expected_output))
    return names, pairs


def _compare(output: Any, expected_output: Any, tolerance: Tolerance) -> tuple[str, OutputError | None]:
    """Return why an output is wrong, empty if it is right, and its error if one could be measured."""
    numpy = load_numpy()
    if output is None or expected_output is None:
        return (
            ""
            if output is expected_output
            else texts.OUTPUT_MISSING.format(found=_kind(output), expected=_kind(expected_output))
        ), None
    actual, expected = numpy.asarray(output), numpy.asarray(expected_output)
    if actual.shape != expected.shape:
        return texts.OUTPUT_SHAPE.format(found=actual.shape, expected=expected.shape), None
    if actual.dtype != expected.dtype:
        return texts.OUTPUT_DTYPE.format(found=actual.dtype, expected=expected.dtype), None
    try:
        wide = {"c": numpy.complex128, "U": None, "S": None, "O": None}.get(expected.dtype.kind, numpy.float64)
        numbers = wide and (actual.astype(wide), expected.astype(wide))
    except (TypeError, ValueError):
        numbers = None
    if numbers is None:
        differ = int(numpy.count_nonzero(actual != expected))
        return (texts.OUTPUT_DIFFERS.format(count=differ, total=actual.size) if differ else ""), None
    return _distance(numbers[0], numbers[1], tolerance)


def _distance(
    actual: numpy.ndarray[Any, Any], expected: numpy.ndarray[Any, Any], tolerance: Tolerance
) -> tuple[str, OutputError | None]:
    """Compare arrays of the same shape. NaN equals NaN, and an infinity one of the same sign."""
    numpy = load_numpy()
    if not actual.size:
        return "", OutputError(0.0, 0.0, math.inf)
    with numpy.errstate(all="ignore"):
        is_same = (actual == expected) | (numpy.isnan(actual) & numpy.isnan(expected))
        is_undefined = ~is_same & ~(numpy.isfinite(actual) & numpy.isfinite(expected))
        # Infinite where one of the two is not a number, so that no statistic hides it.
        error = numpy.where(is_same, 0.0, numpy.where(is_undefined, math.inf, numpy.abs(actual - expected)))
        is_wrong = ~is_same & ~(error <= tolerance.absolute + tolerance.relative * numpy.abs(expected))
        is_wrong |= is_undefined
        numbers = OutputError(float(error.max()), float(error.mean()), _snr(actual, expected, error))
    count = int(numpy.count_nonzero(is_wrong))
    if not count:
        return "", numbers
    position = tuple(int(index) for index in numpy.argwhere(is_wrong)[0])
    fault = texts.OUTPUT_FAR.format(
        count=count,
        total=actual.size,
        largest=numbers.largest,
        place=list(position),
        found=actual[position],
        expected=expected[position],
        absolute=tolerance.absolute,
        relative=tolerance.relative,
    )
    return fault, numbers


def _snr(actual: numpy.ndarray[Any, Any], expected: numpy.ndarray[Any, Any], error: numpy.ndarray[Any, Any]) -> float:
    """Return 20 log10(|found| / |error|), as ExecuTorch's `compute_sqnr`; infinite where there is no error."""
    numpy = load_numpy()
    noise = float(numpy.linalg.norm(error.ravel()))
    if noise == 0:
        return math.inf
    signal = float(numpy.linalg.norm(numpy.where(numpy.isfinite(actual), actual, 0).ravel()))
    return 20 * math.log10(signal / noise) if signal and math.isfinite(signal) and math.isfinite(noise) else -math.inf


def _kind(value: Any) -> str:
    return "None" if value is None else type(value).__name__
