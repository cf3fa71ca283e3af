"""Parts of Markdown files that are generated from the code, between markers, so that they cannot go stale."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

BEGIN = "<!-- generated: {name} -->"
END = "<!-- end of generated: {name} -->"


def replace_block(text: str, name: str, content: str) -> str:
    """Return a Markdown text with new content between the markers of `name`.

    Raises ValueError if the text does not have the two markers once each, in their order.
    """
    begin, end = BEGIN.format(name=name), END.format(name=name)
    head, begin_marker, rest = text.partition(begin)
    _, end_marker, tail = rest.partition(end)
    if not begin_marker or not end_marker or begin in rest or end in head + tail:
        raise ValueError(f"the text must hold {begin} and then {end}, each once")
    return f"{head}{begin}\n{content.strip()}\n{end}{tail}"


def table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a Markdown table; cells are Markdown and may hold any character but a line end."""
    lines = [header, ["---"] * len(header), *rows]
    return "\n".join("| " + " | ".join(cell.replace("|", "\\|") for cell in line) + " |" for line in lines)
