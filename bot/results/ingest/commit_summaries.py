"""Read from a commit's message what people recognize the commit by. Pure.

GitHub writes the number of the pull request into the first line: `Fuse softmax (#42)` when it squashes,
`Merge pull request #42 from hubot/fuse` when it merges; then the title is the next line with text.
"""

from __future__ import annotations

from bot.core.patterns import Pattern
from bot.results.state import CommitSummary

LONGEST_TITLE, LONGEST_AUTHOR = 200, 100
_SQUASHED = Pattern(r"^(?P<title>.*?) *\(#(?P<number>[0-9]{1,9})\)$")
_MERGED = Pattern(r"^Merge pull request #(?P<number>[0-9]{1,9}) from ")


def commit_summary(message: str, author: str, pull_request: int | None = None) -> CommitSummary:
    """Return the summary of a commit; `pull_request` is the one whose head it is, if it is one."""
    lines = [line for line in message[: 10 * LONGEST_TITLE].splitlines() if line.strip()]
    title = lines[0].strip() if lines else ""
    if squashed := _SQUASHED.search(title):
        title, number = squashed["title"] or title, int(squashed["number"] or 0)
    elif merged := _MERGED.search(title):
        title, number = (lines[1].strip() if len(lines) > 1 else title), int(merged["number"] or 0)
    else:
        number = 0
    return CommitSummary(title[:LONGEST_TITLE], author.strip()[:LONGEST_AUTHOR], pull_request or number or None)
