"""The text of the sticky comment: one comment per pull request, in sections that handlers own. No I/O."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from bot.core.patterns import SPACE, Pattern

MARKER = "<!-- nightjar:sticky -->"
SIZE_LIMIT = 65_536
"""Characters that GitHub accepts in a comment."""
UNFOLDED = "\n\n</details>"
CUT = "\n\n*(cut: this section was longer than a comment can hold)*"

_BOUNDARY = Pattern(
    r"<!-- nightjar:section:(?P<begins>[a-z0-9-]{1,40}) -->\n|\n<!-- nightjar:end:(?P<ends>[a-z0-9-]{1,40}) -->"
)
_ANY_MARKER = Pattern(rf"<!--[{SPACE}]*nightjar:", ignore_case=True)
_LINE_END = Pattern(r"\r+\n")
SECTION_NAME = Pattern(r"[a-z0-9-]{1,40}")


@dataclass(frozen=True, slots=True)
class PostedComment:
    """The parts of a pull request's comment that this module reads."""

    id: int
    author_id: int
    body: str
    updated_at: str


def is_sticky(comment: PostedComment, author_id: int) -> bool:
    """Return whether a comment is ours *and* marked: anybody can quote or forge a marker."""
    return comment.author_id == author_id and comment.body.startswith(MARKER)


def sections_of(body: str) -> dict[str, str]:
    """Return the sections of a sticky comment, in their order; drop any other text."""
    # If somebody edits the comment in a browser, its lines end in CRLF.
    lines = _LINE_END.sub("\n", body)
    boundaries = list(_BOUNDARY.finditer(lines))
    last_end = {boundary["ends"]: boundary.start() for boundary in boundaries}
    sections: dict[str, str] = {}
    name, start = "", 0
    for boundary in boundaries:
        begins = boundary["begins"]
        if not name and begins and last_end.get(begins, -1) >= boundary.end():
            name, start = begins, boundary.end()
        elif name and boundary["ends"] == name:
            sections[name], name = lines[start : boundary.start()], ""
    return sections


def with_section(sections: Mapping[str, str], name: str, text: str, *, first: bool = False) -> dict[str, str]:
    """Return the sections with one replaced, added at the end, or removed if its text is empty.

    `first`: put it before all others.
    """
    if not SECTION_NAME.fullmatch(name):
        raise ValueError(f"a section is named by lowercase letters, digits and hyphens, not {name!r}")
    # A marker inside a section's text would end the section early and break its neighbors.
    clean = _ANY_MARKER.sub("<!-- ", _LINE_END.sub("\n", text)).strip()
    remaining = {key: value for key, value in sections.items() if key != name}
    changed = {name: clean, **remaining} if first else {**sections, name: clean}
    return {key: value for key, value in changed.items() if value}


def merged_sections(twins: Iterable[PostedComment]) -> dict[str, str]:
    """Merge the sections of several sticky comments that a race created; the newest of each section wins."""
    merged: dict[str, str] = {}
    for comment in sorted(twins, key=lambda twin: (twin.updated_at, twin.id)):
        merged |= sections_of(comment.body)
    return merged


def render(sections: Mapping[str, str]) -> str:
    """Return the text of the comment; empty if there is no section."""
    if not sections:
        return ""
    frame = sum(len(_frame(name, "")) + 2 for name in sections) + len(MARKER)  # plus the empty line before it
    share = (SIZE_LIMIT - frame) // len(sections)
    framed_sections = [_frame(name, _cut(text, share)) for name, text in sections.items()]
    return "\n\n".join([MARKER, *framed_sections])


def _frame(name: str, text: str) -> str:
    return f"<!-- nightjar:section:{name} -->\n{text}\n<!-- nightjar:end:{name} -->"


def _cut(text: str, limit: int) -> str:
    """Cut a text, at the end of a line if possible: half a code span would no longer disable the mentions in it."""
    if len(text) <= limit:
        return text
    start = text[: limit - len(CUT) - len(UNFOLDED)]
    start = start[: start.rfind("\n")] if "\n" in start else start
    lines = start.splitlines()
    # An unclosed <details> would hide the sections after it. Ours are never nested.
    opened = sum(line.startswith("<details>") for line in lines) > lines.count("</details>")
    return start + (UNFOLDED if opened else "") + CUT
