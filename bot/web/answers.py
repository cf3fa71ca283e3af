"""The sentence with which a page begins: the answer that its reader came for, with links in it. Pure."""

from __future__ import annotations

from collections.abc import Iterable

from pydantic import BaseModel, Field


class AnswerPart(BaseModel, extra="forbid"):
    """A part of a page's first sentence or of a next step, with the address that it leads to."""

    text: str
    href: str = Field(default="", description="A path of these pages or an address; empty if the part is no link.")
    is_command: bool = Field(default=False, description="Whether the text is a command, or another piece of code.")


def answer_text(parts: Iterable[AnswerPart]) -> str:
    """Return the sentence without its links, for descriptions and messages."""
    return "".join(part.text for part in parts).strip()
