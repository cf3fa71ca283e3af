"""Share parts of one process between features and modules, each under a typed key.

As aiohttp's `AppKey`: https://docs.aiohttp.org/en/stable/web_advanced.html#application-s-config
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Generic, Never, TypeVar

T = TypeVar("T")

MISSING = "no feature provides the part {name}"


class PartKey(Generic[T]):
    """The key of one part of the type `T`; `name` is for error texts."""

    def __init__(self, name: str) -> None:
        self.name = name


class PartMap(dict[PartKey[Any], Any]):
    """The parts of one process. Raises LookupError for a part that nobody provides."""

    if TYPE_CHECKING:

        def __getitem__(self, key: PartKey[T], /) -> T: ...
        def __setitem__(self, key: PartKey[T], part: T, /) -> None: ...

    def __missing__(self, key: PartKey[Any]) -> Never:
        raise LookupError(MISSING.format(name=key.name))
