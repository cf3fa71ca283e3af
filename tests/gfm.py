"""Render texts with GitHub's own Markdown parser, cmark-gfm, to see how GitHub shows them."""

from html.parser import HTMLParser

import cmarkgfm  # type: ignore[import-untyped]


def rendered(markdown: str, *, raw_html: bool = False) -> str:
    """Return the HTML of a text; without `raw_html`, HTML in the text is left out."""
    options = cmarkgfm.Options.CMARK_OPT_UNSAFE if raw_html else 0
    return str(cmarkgfm.github_flavored_markdown_to_html(markdown, options=options))


class Page(HTMLParser):
    """The elements of a rendered text; `speech` is the text outside code."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.links: set[str] = set()
        self.speech = ""
        self._code = 0
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self.links |= {value or "" for name, value in attrs if name in ("href", "src")}
        self._code += tag in ("code", "pre")

    def handle_endtag(self, tag: str) -> None:
        self._code -= tag in ("code", "pre")
        self.speech += " "

    def handle_data(self, data: str) -> None:
        if not self._code:
            self.speech += data

    def handle_comment(self, data: str) -> None:
        self.tags.add("comment")
