"""Store sets as sorted lists.

Separate from `bot.engine.records`, so that processes for untrusted input need not import pydantic.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pydantic import GetCoreSchemaHandler
    from pydantic_core import CoreSchema


class _Sorted:
    """Has pydantic write a set as a sorted list.

    https://docs.pydantic.dev/latest/concepts/types/#handling-third-party-types
    """

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        from pydantic_core import core_schema

        schema = handler(source)
        schema["serialization"] = core_schema.plain_serializer_function_ser_schema(sorted)  # type: ignore[index]
        return schema


SORTED = _Sorted()
"""Annotates a set in a record; without it, each process would write the set in another order."""
