"""Render our own sentences, which are Markdown, as HTML with code and emphasis, but without links or images."""

from __future__ import annotations

from functools import cache

from markdown_it import MarkdownIt
from markupsafe import Markup

QUIET = ("link", "autolink", "image", "html_inline", "linkify")
"""Rules of Markdown that are off: our sentences need none, and text of a lab in a sentence must not use them."""


def plain_html(text: str) -> Markup:
    """Render one line of Markdown; links and HTML in it stay text."""
    return Markup(_parser().renderInline(text))  # noqa: S704 (the parser escapes HTML, and renders no links)


@cache
def _parser() -> MarkdownIt:
    return MarkdownIt("commonmark", {"html": False}).disable(list(QUIET), ignoreInvalid=True)
