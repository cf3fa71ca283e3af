"""The items of `renames`: names of tests that changed, where the bot did not find that out by itself."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Annotated, Any, Self

from pydantic import AfterValidator, Field, GetCoreSchemaHandler, StringConstraints, create_model, model_validator
from pydantic_core import CoreSchema

from bot.config.keys import Keys
from bot.config.types import Says
from bot.core.aliases import BOUNDARIES, STAR, Aliases
from bot.results.settings.texts import (
    BARE_STAR,
    BOTH_WITH_STAR,
    RENAMED_IN_LOOP,
    RENAMED_TO_ITSELF,
    RENAMED_TWICE,
    STAR_AT_END,
)

MAX_RENAMES = 1_000
"""Entries that the list may have."""


def _checked_pattern(pattern: str) -> str:
    """Return a name or a prefix with its star; raise ValueError for a star elsewhere."""
    outside = pattern.removesuffix(STAR).partition("[")[0]
    if STAR in outside or (pattern.endswith(STAR) and len(pattern) > 1 and pattern[-2] not in BOUNDARIES):
        raise ValueError(STAR_AT_END)
    return pattern


TestPattern = Annotated[
    str,
    StringConstraints(max_length=1000, pattern=r"^[^\s\x00-\x1f\x7f](?:[^\x00-\x1f\x7f]*[^\s\x00-\x1f\x7f])?$"),
    AfterValidator(_checked_pattern),
    Says("the ID of a test, or the beginning of IDs with a star, as in kernel.poll.*"),
]

# `from` is a keyword of Python, so a class cannot declare it as a field.
_Renamed = create_model(
    "_Renamed",
    __base__=Keys,
    **{
        "from": (
            TestPattern,
            Field(
                description="The old ID of the test, or the beginning of old IDs followed by a star.",
                examples=["kernel.poll.*"],
            ),
        )
    },  # type: ignore[call-overload]
)


class RenamedTests(_Renamed):
    """One test, or all whose IDs begin alike, before and now."""

    to: TestPattern = Field(
        description="Its new ID. With a star, `from` needs one too; a star alone drops the beginning.",
        examples=["poll.*"],
    )

    @property
    def pair(self) -> tuple[str, str]:
        """Return the names before and now."""
        return getattr(self, "from"), self.to

    @model_validator(mode="after")
    def _leads_somewhere(self) -> Self:
        """Raise ValueError for a name that stays, and for a star on one side."""
        old, new = self.pair
        if old == STAR:
            raise ValueError(BARE_STAR)
        if old.endswith(STAR) != new.endswith(STAR):
            raise ValueError(BOTH_WITH_STAR)
        if old == new:
            raise ValueError(RENAMED_TO_ITSELF)
        return self


class Renames(tuple[RenamedTests, ...]):
    """The list, with the aliases that follow from it."""

    @cached_property
    def aliases(self) -> Aliases:
        """Return which names of tests stand for one another."""
        return Aliases(renamed.pair for renamed in self)

    @classmethod
    def __get_pydantic_core_schema__(cls, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        """Describe it as the list that it is, so that the JSON schema can show the default."""
        return handler(tuple[RenamedTests, ...])


def _consistent(renames: Sequence[RenamedTests]) -> Renames:
    """Return the list; raise ValueError for a name that is renamed twice, or leads back to itself."""
    known = set[str]()
    for old, _ in (renamed.pair for renamed in renames):
        if old in known:
            raise ValueError(RENAMED_TWICE.format(name=old))
        known.add(old)
    checked = Renames(renames)
    if loops := checked.aliases.loops():
        raise ValueError(RENAMED_IN_LOOP.format(names=", ".join(sorted(loops)[:10])))
    return checked


TestRenames = Annotated[tuple[RenamedTests, ...], Field(max_length=MAX_RENAMES), AfterValidator(_consistent)]
