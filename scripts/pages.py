"""Read headings, anchors, contents and links of Markdown pages, as GitHub shows them."""

from __future__ import annotations

import re
from collections.abc import Iterator

_FENCE = re.compile(r"^ *(```+)")
_HEADING = re.compile(r"^(#{1,6}) +(.+)$")
_LINK = re.compile(r"\]\(([^)\s]+)\)")
_CODE = re.compile(r"(`+)(?!`).*?(?<!`)\1(?!`)")
_LINKED = re.compile(r"\[([^\]]*)\]\([^)]*\)")


def prose(text: str) -> Iterator[tuple[int, str]]:
    """Yield each line outside code blocks with its number, from 1."""
    fence = ""
    for number, line in enumerate(text.splitlines(), 1):
        if marked := _FENCE.match(line):
            if not fence:
                fence = marked[1]
            elif marked[1] == fence:
                fence = ""
        elif not fence:
            yield number, line


def headings(text: str) -> list[tuple[int, str, str]]:
    """Return level, text and anchor of each heading.

    https://docs.github.com/get-started/writing-on-github/getting-started-with-writing-and-formatting-on-github/basic-writing-and-formatting-syntax#section-links
    """
    titles: list[tuple[int, str, str]] = []
    for _, line in prose(text):
        if heading := _HEADING.match(line):
            title = _LINKED.sub(r"\1", heading[2]).strip()
            anchor = re.sub(r"[^\w -]", "", title.lower()).replace(" ", "-")
            count = sum(
                earlier == anchor or re.fullmatch(rf"{re.escape(anchor)}-\d+", earlier) is not None
                for *_, earlier in titles
            )
            titles.append((len(heading[1]), title, f"{anchor}-{count}" if count else anchor))
    return titles


def contents(text: str) -> str:
    """Return a page's table of contents: its sections and their subsections."""
    lines: list[str] = []
    for level, title, anchor in headings(text):
        if level == 2:
            lines.append(f"- [{title}](#{anchor})")
        elif level == 3:
            lines.append(f"  - [{title}](#{anchor})")
    return "\n".join(lines)


def links(text: str) -> Iterator[tuple[int, str]]:
    """Yield the target of each link with its line. Links in code don't count."""
    for number, line in prose(text):
        yield from ((number, target) for target in _LINK.findall(_CODE.sub("", line)))
