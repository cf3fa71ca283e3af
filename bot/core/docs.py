"""Parts of Markdown files that are generated from the code, between markers, so that they cannot go stale."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

BEGIN = "<!-- generated: {name} -->"
END = "<!-- end of generated: {name} -->"


def replace_block(text: str, name: str, content: str) -> str:
    """Return a Markdown text with what stands between the markers of `name` replaced.

    Raises ValueError if the text does not hold the two markers once each, in their order.
    """
    begin, end = BEGIN.format(name=name), END.format(name=name)
    before, found, rest = text.partition(begin)
    _, ended, after = rest.partition(end)
    if not found or not ended or begin in rest or end in before + after:
        raise ValueError(f"the text must hold {begin} and then {end}, each once")
    return f"{before}{begin}\n{content.strip()}\n{end}{after}"


def table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a Markdown table; cells are Markdown and may hold any character but a line end."""
    lines = [header, ["---"] * len(header), *rows]
    return "\n".join("| " + " | ".join(cell.replace("|", "\\|") for cell in line) + " |" for line in lines)
