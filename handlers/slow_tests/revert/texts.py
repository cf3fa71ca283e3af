"""What people read about reverts: the description of the pull request, and the answers to the command."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from bot.core.urls import linkable
from bot.effects.reverts import reverts_line
from bot.github.text.markdown import code, escape, truncate

if TYPE_CHECKING:
    from bot.github.commits.required import Signal

SUMMARY = "Open a draft that reverts this merged pull request, with slow tests."

STILL_OPEN = "#{number} is not merged, so there is nothing to revert. To give it up, close it."
NOT_MERGED = "#{number} was closed without being merged, so there is nothing to revert."

OPEN = "#{number} already reverts #{reverted}. It is still open."
MERGED = "#{number} has already reverted #{reverted}."
CLOSED = (
    "#{number} was to revert #{reverted}, and somebody closed it. To revert, reopen it; if its branch was deleted, "
    "restore the branch there first."
)

ON_FIX = "On: names #{fixes}, which was reverted. To turn off, comment: {mention} skip slow tests"

REMEMBERED = "#{revert} has reverted #{number}"
NO_REVERT = "it reverts nothing"

REASON = "[A comment]({comment}) asked for this, with slow tests."
FAILURES = "These checks failed on its merge commit {sha}:"
NO_FAILURES = "No check failed on its merge commit {sha}."
FAILURE = "- {name}{says}{link}"
SAYS, LINK = ": {says}", " ([details](<{url}>))"
MORE = "- and {count} more"
PAGE = "[What the bot knows about #{number}]({page})"
MOST_FAILURES = 20
LONGEST_WORDS = 140


def revert_body(
    marker: str, reference: str, sha: str, failures: Sequence[Signal], *, number: int, comment: str, page: str
) -> str:
    """Return the description, in Markdown; `reference` names the reverted pull request, as in `octocat/compiler#12`."""
    lines = [_failure_line(signal) for signal in failures[:MOST_FAILURES]]
    if len(failures) > MOST_FAILURES:
        lines.append(MORE.format(count=len(failures) - MOST_FAILURES))
    heading = (FAILURES if failures else NO_FAILURES).format(sha=sha)
    parts = [
        f"{marker}\n{reverts_line(reference)}",
        REASON.format(comment=comment),
        "\n".join([heading, *([""] if lines else []), *lines]),
        *([PAGE.format(number=number, page=page)] if page else []),
    ]
    return "\n\n".join(parts)


def _failure_line(signal: Signal) -> str:
    url = linkable(signal.url)
    return FAILURE.format(
        name=code(truncate(signal.name, LONGEST_WORDS)),
        says=SAYS.format(says=escape(truncate(signal.says, LONGEST_WORDS))) if signal.says else "",
        link=LINK.format(url=url.replace("&", "&amp;")) if url else "",
    )
