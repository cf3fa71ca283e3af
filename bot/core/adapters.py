"""Read and write values of a type as JSON values, with pydantic."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, TypeVar

from pydantic import TypeAdapter  # noqa: TID251  # the one place that keeps them

T = TypeVar("T")

_adapters: Callable[[Any], TypeAdapter[Any]] = functools.cache(TypeAdapter)


def adapter_of(kind: type[T]) -> TypeAdapter[T]:
    """Return the adapter of a type, always the same one.

    Building one takes milliseconds, a third of what a whole command costs; pydantic advises to do it once:
    https://docs.pydantic.dev/latest/concepts/performance/#typeadapter-instantiated-once
    """
    return _adapters(kind)
