"""The key `docs`: which status says that a pull request's docs are built, and where they are."""

from __future__ import annotations

from typing import Annotated

from pydantic import AfterValidator, Field, StringConstraints

from bot.config.keys import Keys
from bot.config.repository_keys import ConfigKey
from bot.config.texts import UNKNOWN_PLACEHOLDER
from bot.config.types import Says, StatusContext
from bot.core.patterns import Pattern
from bot.core.urls import encrypted_link
from handlers.docs_link.texts import PLACEHOLDER_IN_HOST

PLACEHOLDERS = ("number", "build", "sha")
"""The placeholders of a link: number of the pull request, build in the status's target URL, head SHA."""

_BRACES = Pattern(r"\{[^{}]*\}|[{}]")
_HOST = Pattern(r"[a-z]+://[^/?#]*", ignore_case=True)


def _checked_link(link: str) -> str:
    """Return a link whose placeholders are valid; raise ValueError for any other."""
    known = ", ".join(f"{{{name}}}" for name in PLACEHOLDERS)
    for found in _BRACES.finditer(link):
        if found[0].strip("{}") not in PLACEHOLDERS or len(found[0]) == 1:
            raise ValueError(UNKNOWN_PLACEHOLDER.format(written=found[0], known=known))
        if (host := _HOST.match(link)) and found.start() < host.end():
            raise ValueError(PLACEHOLDER_IN_HOST.format(written=found[0]))
    # Digits stand in for the values: a brace is no character of an address.
    encrypted_link(_BRACES.sub("0", link))
    return link


Link = Annotated[
    str,
    StringConstraints(max_length=1000),
    AfterValidator(_checked_link),
    Says("an https address, as in https://docs.example.org/PR-{number}/{build}/index.html"),
]


class DocsLink(Keys):
    """A link to the docs that CI built of a pull request's head, in the sticky comment."""

    context: StatusContext = Field(
        description="Context of the commit status that succeeds when the docs are built.",
        examples=["docs/pr-head"],
    )
    link: Link = Field(
        description=(
            "Address of the docs. `{number}` is the pull request, `{build}` comes from the status's "
            "target URL (`…PR-NUMBER/BUILD…`), `{sha}` is the head."
        ),
        examples=["https://docs.example.org/PR-{number}/{build}/index.html"],
    )


DOCS = ConfigKey(
    "docs",
    DocsLink,
    description="Links the docs that CI built for the head, in the sticky comment.",
    example={"context": "docs/pr-head", "link": "https://docs.example.org/PR-{number}/{build}/index.html"},
    position=110,
)
KEYS = (DOCS,)
