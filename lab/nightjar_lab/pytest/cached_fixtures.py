"""Cache the values of fixtures: each is computed once for the same arguments, and copied for each test."""

from __future__ import annotations

import copy
import copyreg
import dataclasses
import enum
import functools
import inspect
import os
import pickle
import types
from typing import TYPE_CHECKING, Any, Callable, Optional, overload

import pytest

from nightjar_lab.pytest import texts
from nightjar_lab.pytest.targets import TargetUseError, calling_line

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterable

DISABLE = ("NIGHTJAR_TEST_DISABLE_CACHE", "TVM_TEST_DISABLE_CACHE")
"""With one of these variables set to true, 1 or yes, every fixture is computed again for each test."""
PLAIN = (
    type(None), bool, int, float, complex, str, bytes, bytearray, range, slice, type(Ellipsis), type(NotImplemented),
    type, types.FunctionType, types.BuiltinFunctionType, enum.Enum,
)  # fmt: skip
CONTAINERS = (list, tuple, set, frozenset)
COPIES = ("__deepcopy__", "__reduce__", "__reduce_ex__", "__getnewargs__", "__getnewargs_ex__")
"""The methods by which a class defines how it is copied. Without one, a copy of a handle would be the same handle."""
FAILURES = (Exception, pytest.skip.Exception, pytest.fail.Exception, pytest.xfail.Exception)
Function = Callable[..., Any]
Computed = tuple[object, Optional[BaseException], Optional[types.TracebackType]]
"""A value, or the error of computing it and where that happened."""


class CachedValues:
    """The values, or errors, of one cached fixture."""

    ever = False

    def __init__(self, function: Function) -> None:
        self._function = function
        self._values: dict[Hashable, Computed] = {}
        CachedValues.ever = True

    def get(self, args: tuple[object, ...], kwargs: dict[str, object]) -> object:
        """Return a copy of the value for these arguments; if computing it failed, raise its error again."""
        if any(os.environ.get(name, "").strip().lower() in {"true", "1", "yes"} for name in DISABLE):
            return self._function(*args, **kwargs)
        key = tuple(map(type, args)), tuple(self._key(name, value) for name, value in sorted(kwargs.items()))
        if key not in self._values:
            self._values[key] = self._compute(args, kwargs)
        value, error, traceback = self._values[key]
        if error is not None:
            raise error.with_traceback(traceback)
        return copy.deepcopy(value)

    def clear(self) -> None:
        """Forget all values."""
        self._values.clear()

    def _compute(self, args: tuple[object, ...], kwargs: dict[str, object]) -> Computed:
        try:
            value = self._function(*args, **kwargs)
            if (uncopied_class := uncopied(value)) is not None:
                raise TypeError(texts.NO_COPY.format(name=self._function.__name__, kind=uncopied_class.__name__))
        except FAILURES as error:
            return None, error, error.__traceback__
        return value, None, None

    def _key(self, name: str, value: object) -> Hashable:
        try:
            return name, type(value), pickle.dumps(value)
        except Exception:  # whatever a class raises that cannot be pickled
            try:
                hash(value)
            except TypeError:
                values = {"argument": name, "kind": type(value).__name__}
                raise TypeError(texts.NO_KEY.format(name=self._function.__name__, **values)) from None
            return name, type(value), value


class CacheUses:
    """A plugin that clears each cached fixture after the last test that uses it."""

    def __init__(self, items: Iterable[pytest.Item]) -> None:
        self._caches: dict[str, list[CachedValues]] = {}
        self._waiting: dict[int, set[str]] = {}
        for item in items:
            for cache in _caches_of(item):
                self._caches.setdefault(item.nodeid, []).append(cache)
                self._waiting.setdefault(id(cache), set()).add(item.nodeid)

    @pytest.hookimpl(trylast=True)
    def pytest_runtest_teardown(self, item: pytest.Item) -> None:
        """Count a test as done, whatever its outcome."""
        for cache in self._caches.get(item.nodeid, ()):
            waiting = self._waiting[id(cache)]
            waiting.discard(item.nodeid)
            if not waiting:
                cache.clear()


@overload
def fixture(function: Function, /) -> Any: ...
@overload
def fixture(*, cache_return_value: bool = False) -> Callable[[Function], Any]: ...
def fixture(function: Function | None = None, /, *, cache_return_value: bool = False) -> Any:
    """Make a fixture, once for each test. With `cache_return_value`, each gets a copy of the value for its arguments.

    Caching is for slow values that depend on only a few parameters of a test. Each worker of pytest-xdist has its own
    values. Only values that define how they are copied can be cached.
    """
    location = calling_line()

    def make(function: Function) -> Any:
        return pytest.fixture(_cached(function, location) if cache_return_value else function)

    return make if function is None else make(function)


def uncopied(value: object) -> type | None:
    """Return the class of the first object in a value that does not define how it is copied, or None."""
    pending, seen = [value], set()
    while pending:
        current = pending.pop()
        if id(current) in seen or isinstance(current, PLAIN):
            continue
        seen.add(id(current))
        kind = type(current)
        if kind is dict:
            pending += [*current, *current.values()]  # type: ignore[misc, attr-defined]
        elif kind in CONTAINERS:
            pending += current  # type: ignore[arg-type]
        elif _says_how(kind):
            continue
        elif dataclasses.is_dataclass(current):
            pending += [getattr(current, field.name, None) for field in dataclasses.fields(current)]
        else:
            return kind
    return None


def _says_how(kind: type) -> bool:
    return kind in copyreg.dispatch_table or any(
        getattr(kind, name, None) is not getattr(object, name, None) for name in COPIES
    )


def _cached(function: Function, location: str) -> Function:
    if any(
        check(function)
        for check in (inspect.isgeneratorfunction, inspect.iscoroutinefunction, inspect.isasyncgenfunction)
    ):
        raise TargetUseError(texts.NOT_CACHED.format(where=location, name=function.__name__))
    values = CachedValues(function)

    @functools.wraps(function)
    def from_cache(*args: object, **kwargs: object) -> object:
        return values.get(args, kwargs)

    from_cache.__signature__ = inspect.signature(function)  # type: ignore[attr-defined]
    del from_cache.__wrapped__  # so that pytest calls this, and not what it wraps
    from_cache.nightjar_cache = values  # type: ignore[attr-defined]
    return from_cache


def _caches_of(item: pytest.Item) -> Iterable[CachedValues]:
    # Not public, and the same from pytest 7.0 to 9.1.
    info = getattr(item, "_fixtureinfo", None)
    definitions = info.name2fixturedefs.values() if info is not None else ()
    caches = (
        getattr(definitions_of_name[-1].func, "nightjar_cache", None)
        for definitions_of_name in definitions
        if definitions_of_name
    )
    return [cache for cache in caches if cache is not None]
