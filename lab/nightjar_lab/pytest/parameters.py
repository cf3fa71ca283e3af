"""Make parameters as fixtures: `parameter` for all combinations, `parameters` for values that belong together."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Any

import pytest

from nightjar_formats.items import first_of
from nightjar_lab.pytest import texts
from nightjar_lab.pytest.targets import TargetUseError, calling_line

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

Ids = Any
"""The values that pytest accepts as `ids`: texts, or a function from a value to a text."""


class ParameterSets:
    """Numbers of the calls of `parameters`, by which the fixtures of one call find each other again."""

    ever = False
    numbers = itertools.count()


def parameter(*values: object, ids: Ids = None, by_dict: Mapping[str, object] | None = None) -> Any:
    """Return a fixture with one value for each test: all combinations of all parameters that a test takes.

    `by_dict` gives IDs and values at once. Assign the fixture to the name that tests take, in a module or a class.
    """
    location = calling_line()
    if by_dict is not None:
        if values or ids is not None:
            raise TargetUseError(texts.BY_DICT.format(where=location))
        ids, values = list(by_dict), tuple(by_dict.values())
    if not values:
        raise TargetUseError(texts.NO_VALUES.format(where=location, function="parameter", example="1, 2"))
    _check_ids("parameter", values, ids, location)

    @pytest.fixture(params=values, ids=ids)
    def as_fixture(*_instance: object, request: pytest.FixtureRequest) -> object:
        return request.param

    return as_fixture


def parameters(*value_sets: Sequence[object], ids: Ids = None) -> list[Any]:
    """Return fixtures whose values belong together: each set has one value for each of them, and is one test.

    Assign them to the names that tests take: `size, layout = parameters((1, "NCHW"), (8, "NHWC"))`.
    """
    location = calling_line()
    if not value_sets:
        raise TargetUseError(texts.NO_VALUES.format(where=location, function="parameters", example="(1, 2), (3, 4)"))
    lengths = sorted({len(value_set) for value_set in value_sets})
    if len(lengths) > 1:
        raise TargetUseError(texts.OTHER_LENGTHS.format(where=location, lengths=" and ".join(map(str, lengths))))
    _check_ids("parameters", value_sets, ids, location)
    ParameterSets.ever = True
    number = first_of(ParameterSets.numbers)
    return [_one_of_set(number, values, ids) for values in zip(*value_sets)]


def parametrize_together(metafunc: pytest.Metafunc) -> None:
    """Parametrise a test by each call of `parameters` that it takes a fixture of."""
    groups: dict[int, dict[str, Any]] = {}
    for name in metafunc.fixturenames:
        definitions = metafunc._arg2fixturedefs.get(name)  # not public, and the same from pytest 7.0 to 9.1
        function: Any = definitions[-1].func if definitions else None
        if hasattr(function, "nightjar_set"):
            groups.setdefault(function.nightjar_set, {})[name] = function
    for functions in groups.values():
        ids = first_of(functions.values()).nightjar_ids
        rows = list(zip(*(function.nightjar_values for function in functions.values())))
        metafunc.parametrize(list(functions), rows, indirect=True, ids=ids)


def _one_of_set(number: int, values: tuple[object, ...], ids: Ids) -> Any:
    def as_fixture(*_instance: object, request: pytest.FixtureRequest) -> object:
        return request.param

    as_fixture.nightjar_set = number  # type: ignore[attr-defined]
    as_fixture.nightjar_values = values  # type: ignore[attr-defined]
    as_fixture.nightjar_ids = ids  # type: ignore[attr-defined]
    return pytest.fixture(as_fixture)


def _check_ids(function: str, values: Sequence[object], ids: Ids, location: str) -> None:
    if isinstance(ids, (list, tuple)) and len(ids) != len(values):
        raise TargetUseError(
            texts.OTHER_IDS.format(where=location, function=function, ids=len(ids), values=len(values))
        )
