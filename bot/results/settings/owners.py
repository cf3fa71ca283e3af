"""The items of `owners`: who looks after which tests."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field, StringConstraints

from bot.config.keys import Keys
from bot.config.types import Says
from bot.results.settings.renames import TestPattern

MAX_OWNED, MAX_OWNERS = 1_000, 10
"""Entries that the list, and the owners of one entry, may have."""
EXAMPLE_TEST, EXAMPLE_OWNERS = "tests/python/relay/*", ["octocat", "octo-org/compiler-team"]

OwnerName = Annotated[
    str,
    # Without characters that need an escape, which is long: an issue has room for little text. The pattern does not
    # limit the length: to repeat all letters of the world a hundred times takes a megabyte in each model of this type.
    StringConstraints(max_length=101, pattern=r"^@?\w(?:[\w ./()+-]*[\w)])?$"),
    Says("a login, a team or another name: up to 100 letters, digits, spaces and . / ( ) + -, after an @ or not"),
]


class OwnedTests(Keys):
    """One test, or all whose IDs begin alike, and who looks after it."""

    test: TestPattern = Field(
        description="The ID of the test, or the beginning of IDs followed by a star; a star alone is every test.",
        examples=[EXAMPLE_TEST],
    )
    owners: tuple[OwnerName, ...] = Field(
        max_length=MAX_OWNERS,
        description="Logins, teams or any text. Pages and issues show them and mention nobody. Empty: nobody.",
        examples=[EXAMPLE_OWNERS],
    )


OwnedTestList = Annotated[tuple[OwnedTests, ...], Field(max_length=MAX_OWNED)]
