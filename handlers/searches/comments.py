"""The comment on the pull request with which tests began to fail (`comment` of `regressions`)."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from bot.core.events import Payload
from bot.core.utc import iso_utc
from bot.effects.comments import Reply
from bot.results.culprit.search import SearchOutcome
from handlers.regressions.config import REGRESSIONS
from handlers.searches import texts
from handlers.searches.records import CulpritSearch, section_name

if TYPE_CHECKING:
    from bot.plan.handler import Context

PULLS = "/repos/{+repo}/commits/{sha}/pulls"


async def with_pull(context: Context, search: CulpritSearch) -> CulpritSearch:
    """Return a search whose answer has the pull request that was merged as the culprit.

    Titles of commits are no evidence: those of a fork have the numbers of its upstream.
    """
    answer = search.answer
    if answer is None or SearchOutcome(answer.outcome) is not SearchOutcome.CULPRIT:
        return search
    sha, repository = search.sha_of(answer.first), context.repository.full_name
    async for item in context.github.getiter(PULLS, url_vars={"repo": repository, "sha": sha}):
        pull = Payload(item, "pull request")
        if pull.text("merge_commit_sha") == sha and pull.text("merged_at"):
            return replace(search, answer=replace(answer, pull=pull.integer("number")))
    return search


def culprit_comments(context: Context, search: CulpritSearch) -> tuple[CulpritSearch, list[Reply]]:
    """Return a search that ended, and the comments about it: on the culprit, and on one that was named before.

    There is one comment on a pull request for each search. A later answer edits it.
    """
    regressions = context.config.of(REGRESSIONS)
    pull = search.answer.pull if search.answer else 0
    comments = list[Reply]()
    if search.commented and search.commented != pull:
        comments.append(_comment(search, search.commented, texts.withdrawn(search)))
    if pull and regressions is not None and regressions.comment:
        text = texts.culprit_comment(search, context.app_config.mentions[0])
        comments.append(_comment(search, pull, text))
        search = replace(search, commented=pull)
    return search, comments


def _comment(search: CulpritSearch, number: int, text: str) -> Reply:
    return Reply(number, text, iso_utc(search.began_at), subject=section_name(search.id))
