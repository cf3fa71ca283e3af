"""Read and write values of a type as JSON values, with pydantic."""

from __future__ import annotations

import functools
from typing import Protocol, TypeVar, cast

from pydantic import TypeAdapter  # noqa: TID251  # the one place that keeps them

T = TypeVar("T")


class AdapterOf(Protocol):
    """The adapter of a type, always the same one.

    Building one takes milliseconds, a third of what a whole command costs; pydantic advises to do it once:
    https://docs.pydantic.dev/latest/concepts/performance/#typeadapter-instantiated-once
    """

    def __call__(self, kind: type[T], /) -> TypeAdapter[T]:
        """Return the adapter of a type."""
        ...


adapter_of = cast("AdapterOf", functools.cache(TypeAdapter))
