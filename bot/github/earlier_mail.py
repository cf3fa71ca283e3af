"""Find where the quoted e-mail begins in a comment that was sent as an e-mail reply. Pure.

GitHub removes most quoted e-mails from such comments, but not all: text that the mail program neither marks as a
quotation nor puts where GitHub expects it stays, and looks as if the person who replied had written it
(https://github.com/dependabot/feedback/issues/277). GitHub replaces e-mail addresses in it by asterisks.
"""

from __future__ import annotations

from math import inf

from bot.core.patterns import Pattern

_LINE_END = Pattern(r"\r\n|\r|\n")
_HEAD = Pattern(
    r"notifications@github\.com|@(?:no)?reply\.github\.com|\*{3}@\*{3}\.\*{3}"
    r"|^[ >]*-{2,} ?(?:original|forwarded) message ?-{2,}|^[ >-]*on\b.*\d.*\bwrote ?[:-]*$",
    ignore_case=True,
)


def typed_lines(text: str) -> list[str]:
    """Return the lines of a text as they were typed."""
    return _LINE_END.split(text)


def earlier_mail(text: str) -> float:
    """Return the number of the line, from 1, with the header of an earlier e-mail; infinite if there is none."""
    lines = enumerate(typed_lines(text), start=1)
    return next((number for number, line in lines if _HEAD.search(line.rstrip())), inf)
