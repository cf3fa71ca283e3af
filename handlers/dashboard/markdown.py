"""Our own sentences in Markdown as HTML: code and emphasis, and nothing that leads anywhere."""

from __future__ import annotations

from functools import cache

from markdown_it import MarkdownIt
from markupsafe import Markup

QUIET = ("link", "autolink", "image", "html_inline", "linkify")
"""What a sentence of ours does not need, and what text of a lab in it must not become."""


def plain_html(text: str) -> Markup:
    """Render one line of Markdown; links and HTML in it stay text."""
    return Markup(_parser().renderInline(text))  # noqa: S704 (the parser escapes HTML, and renders no links)


@cache
def _parser() -> MarkdownIt:
    return MarkdownIt("commonmark", {"html": False}).disable(list(QUIET), ignoreInvalid=True)
