"""Match one part of a path with a shell pattern, in time that no name of a file can make long."""

from __future__ import annotations

import re  # noqa: TID251  # each pattern matches one length only

_ELEMENT = re.compile(r"\[!?\]?[^\]]*\]|.", re.DOTALL)  # noqa: TID251  # nothing follows the repetition but its end
ANY_FOLDERS = "**"


class GlobPart:
    """A part of a path: a text, `**` for any number of folders, or a pattern with `*`, `?`, `[abc]` and `[!a-c]`.

    As in a shell, a name that begins with a dot matches only a part that begins with one. The pieces between two `*`
    match texts of one length, so the first match of each piece is as good as any other, and nothing backtracks. Raises
    ValueError for an invalid range, as in `[z-a]`.
    """

    def __init__(self, text: str, *, is_literal: bool = False) -> None:
        self.text = text
        self.is_any_folders = text == ANY_FOLDERS and not is_literal
        self.is_literal = is_literal or not any(character in text for character in "*?[")
        self._pieces: list[re.Pattern[str]] = []
        if not self.is_literal and not self.is_any_folders:
            sources = [""]
            for element in _ELEMENT.findall(text):
                if element == "*":
                    sources.append("")
                else:
                    sources[-1] += _one_character(element)
            sources[-1] += r"\Z"
            try:
                self._pieces = [re.compile(source, re.DOTALL) for source in sources]  # noqa: TID251  # of one length each
            except re.error as error:
                raise ValueError(error.msg) from None

    def matches(self, name: str) -> bool:
        """Say whether the part matches the whole name of a file or a folder."""
        if self.is_literal:
            return name == self.text
        if name.startswith(".") and not self.text.startswith("."):
            return False
        if self.is_any_folders:
            return True
        first, *others = self._pieces
        match = first.match(name)
        for piece in others:
            if match is None:
                return False
            match = piece.search(name, match.end())
        return match is not None


def _one_character(element: str) -> str:
    """Return a regular expression for an element of a pattern, which matches one character."""
    if element == "?":
        return "."
    if len(element) < 3:
        return re.escape(element)
    negated, inside = element[1] == "!", element[2:-1] if element[1] == "!" else element[1:-1]
    escaped = "".join(character if character == "-" else re.escape(character) for character in inside)
    return f"[{'^' if negated else ''}{escaped}]" if inside else re.escape(element)
