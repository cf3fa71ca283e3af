"""GitHub's own Markdown parser, cmark-gfm: the oracle for what a text looks like on GitHub."""

import cmarkgfm  # type: ignore[import-untyped]


def rendered(markdown: str, *, raw_html: bool = False) -> str:
    """Return the HTML of a text; without `raw_html`, HTML in the text is left out."""
    options = cmarkgfm.Options.CMARK_OPT_UNSAFE if raw_html else 0
    return str(cmarkgfm.github_flavored_markdown_to_html(markdown, options=options))
