"""The first sentence of a comparison, and the next steps below it. Pure."""

from __future__ import annotations

from itertools import chain
from typing import TYPE_CHECKING

from bot.core.listing import counted
from bot.core.page_paths import view_path
from bot.web.page_filters import short
from handlers.dashboard.compare import texts
from handlers.dashboard.shared import answer_texts
from handlers.dashboard.shared.answers import (
    Sentence,
    phrase,
    sentence,
)

if TYPE_CHECKING:
    from handlers.dashboard.compare.rows import ComparePage


def compare_answer(page: ComparePage, repository: str) -> Sentence:
    """Say how many tests changed from one commit to the other."""
    if not (page.target and page.base and page.head):
        return []
    filters = {"target": page.target, "base": page.base.sha, "head": page.head.sha}
    changes = [
        phrase(
            words.format(count=counted(count, noun) if noun else f"{count:,}"),
            view_path(repository, "compare", **filters, status=kind),
        )
        for kind, (noun, words) in texts.CHANGES.items()
        if (count := page.counts.get(kind, 0))
    ]
    ends = texts.FROM_TO.format(target=page.target, base=short(page.base.sha), head=short(page.head.sha))
    unexpected = sum(number.outside is True for number in page.numbers)
    numbers = [phrase(texts.UNEXPECTED.format(count=counted(unexpected, "measurement")))] if unexpected else []
    if not changes:
        all_noted = all(suite.note for suite in page.suites)
        return sentence([phrase((texts.NOT_COMPARED if all_noted else texts.NO_CHANGE) + ends)], numbers)
    listed = list(chain.from_iterable((phrase(", "), change) for change in changes))[1:]
    return sentence([*listed, phrase(ends)], numbers)


def compare_steps(page: ComparePage, github: str) -> list[Sentence]:
    """Say what a maintainer can do about new failures."""
    if not (page.base and page.head and page.counts.get("new-failure")):
        return []
    href = f"{github}/compare/{page.base.sha}...{page.head.sha}"
    return [[phrase(answer_texts.MAINTAINER), phrase(answer_texts.READ_COMMITS, href)]]
