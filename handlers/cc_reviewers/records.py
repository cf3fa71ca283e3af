"""Who was asked to review a pull request, and who was refused."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from bot.core.sorted_sets import SORTED
from bot.engine.records import Record


@dataclass(frozen=True, slots=True)
class ReviewRequests:
    """The review requests of a pull request; names in lower case, except in `refused`.

    `asked` holds everybody that the bot asked, so that it does not ask again after a person removed somebody.
    `refused` are those that GitHub did not accept, `hidden` the teams among them that it does not show to the App.
    `message` is the text in the sticky comment.
    """

    asked: Annotated[frozenset[str], SORTED] = frozenset()
    refused: tuple[str, ...] = ()
    message: str = ""
    hidden: tuple[str, ...] = ()


REVIEWERS = Record(
    "cc-reviewers", 1, ReviewRequests, "who was asked to review a pull request, and who was refused", days=365
)
