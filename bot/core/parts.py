"""Share parts of one process between features and modules, each under a typed key.

As aiohttp's `AppKey`: https://docs.aiohttp.org/en/stable/web_advanced.html#application-s-config
"""

from __future__ import annotations

from typing import Any, Generic, TypeVar, cast

T = TypeVar("T")

MISSING = "no feature provides the part {name}"


class PartKey(Generic[T]):
    """The key of one part of the type `T`; `name` is for error texts."""

    def __init__(self, name: str) -> None:
        self.name = name


class PartMap:
    """The parts of one process."""

    def __init__(self) -> None:
        self._parts: dict[PartKey[Any], Any] = {}

    def __getitem__(self, key: PartKey[T]) -> T:
        """Return a part. Raises LookupError if nobody provides it."""
        if key not in self._parts:
            raise LookupError(MISSING.format(name=key.name))
        return cast("T", self._parts[key])

    def __setitem__(self, key: PartKey[T], part: T) -> None:
        """Provide a part."""
        self._parts[key] = part
