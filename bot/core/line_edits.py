"""Edits of single lines of a file. Pure."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class LineEdits:
    """Lines to insert into a file, each before a line, and lines to remove; numbers begin with 1, before all edits.

    An inserted line has no line feed at its end.
    """

    path: str
    inserted: tuple[tuple[int, str], ...] = ()
    removed: tuple[int, ...] = ()

    def edited(self, raw: bytes) -> bytes:
        """Return the edited content of the file. Raises ValueError if it does not have one of the lines."""
        lines = raw.split(b"\n")
        if any(not 1 <= number <= len(lines) for number in (*self.removed, *(number for number, _ in self.inserted))):
            raise ValueError(self.path)
        insertions: dict[int, list[bytes]] = {}
        for number, text in self.inserted:
            insertions.setdefault(number, []).append(text.encode())
        removed = set(self.removed)
        edited = list[bytes]()
        for number, line in enumerate(lines, 1):
            edited += insertions.get(number, [])
            if number not in removed:
                edited.append(line)
        return b"\n".join(edited)
