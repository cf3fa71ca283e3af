"""Read and write values of a type as JSON values, with pydantic."""

from __future__ import annotations

import functools
from typing import Protocol, TypeVar, cast

from pydantic import TypeAdapter  # noqa: TID251  # the one place that keeps them

T = TypeVar("T")


class _Adapters(Protocol):
    """Returns the adapter of a type, always the same one."""

    def __call__(self, kind: type[T], /) -> TypeAdapter[T]: ...


adapter_of = cast("_Adapters", functools.cache(TypeAdapter))
"""Building an adapter takes milliseconds, a third of what a whole command costs; pydantic advises to do it once:
https://docs.pydantic.dev/latest/concepts/performance/#typeadapter-instantiated-once"""
