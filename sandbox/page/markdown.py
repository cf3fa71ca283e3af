"""Comments as GitHub shows them: Markdown, a handful of HTML tags, and no hidden markers."""

from __future__ import annotations

import re
from collections.abc import Sequence
from html import escape
from typing import Any

from markdown_it import MarkdownIt
from markdown_it.renderer import RendererHTML
from markdown_it.token import Token

_COMMENT = re.compile(r"<!--.*?-->", re.DOTALL)
# Tags that GitHub keeps and that bots use, without attributes; all others are shown as text.
_ALLOWED = re.compile(r"(</?(?:details|summary|sub|sup|br|kbd|b|i|strong|em|p|ul|ol|li|code|pre)\s*/?>)")


def rendered(text: str) -> str:
    """Return Markdown as HTML that is safe to show, whatever the text is."""
    return str(_MARKDOWN.render(text))


class _Renderer(RendererHTML):
    def html_block(self, tokens: Sequence[Token], idx: int, options: Any, env: Any) -> str:
        return _tamed(tokens[idx].content)

    def html_inline(self, tokens: Sequence[Token], idx: int, options: Any, env: Any) -> str:
        return _tamed(tokens[idx].content)


def _tamed(html: str) -> str:
    """Escape everything except allowed tags, and drop HTML comments."""
    parts = _ALLOWED.split(_COMMENT.sub("", html))
    return "".join(part if _ALLOWED.fullmatch(part) else escape(part) for part in parts)


_MARKDOWN = MarkdownIt("commonmark", {"html": True, "breaks": True}, renderer_cls=_Renderer)
_MARKDOWN.enable(["table", "strikethrough"])
