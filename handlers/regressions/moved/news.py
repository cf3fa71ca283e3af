"""Post messages about measurements that moved: one for each group, its issue edited afterwards, and its end."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import sqlalchemy as sa

from bot.effects.issues import EnsureIssue
from bot.effects.remember import StoreRecord
from bot.news.effects import IssueState, message_effects
from bot.plan.effect import Effect
from bot.plan.handler import NOTHING, Context, Plan, Router
from bot.results.measurements.groups import clearest_change, moved_likewise
from bot.results.service import RESULTS
from bot.results.store.tables import ancestry
from handlers.regressions import texts
from handlers.regressions.audiences import Audience, audiences_of
from handlers.regressions.begun import begun_move
from handlers.regressions.config import REGRESSIONS as REGRESSIONS_KEY
from handlers.regressions.details import details_of
from handlers.regressions.moved.groups import MOVED_GROUP, GroupUpdate
from handlers.regressions.moved.search import MOVES_ARRIVED, load_updates
from handlers.regressions.moved.text import MovedText, sorted_changes
from handlers.regressions.target_text import COMMIT_PAGE, SHORT

NAME = "moved-measurements"

router = Router()


@router.on(MOVES_ARRIVED.name, name=NAME, feature="regressions")
async def post_moves(context: Context) -> Plan:
    """Plan the messages about groups that are new, that have changed, or that have ended."""
    regressions = context.config.of(REGRESSIONS_KEY)
    if regressions is None:
        return NOTHING
    service, moment = context.part(RESULTS), context.delivery.received_at
    updates = await load_updates(context.records, service, context.repository, context.config, moment)
    if not updates:
        return Plan(why=texts.NO_MOVES)
    commits = sorted({update.group.since for update in updates})
    repository = service.canonical_name(context.repository.full_name)
    page = await service.read(_page_of, repository, commits)
    posts = MovedPosts(
        context.repository.id,
        audiences_of(regressions),
        MovedText((), (), page, await details_of(context)),
        finds_cause=regressions.find,
    )
    effects = [effect for update in updates for effect in posts.of(update)]
    return Plan(tuple(effects), why=texts.MOVES_POSTED.format(commits=", ".join(sha[:SHORT] for sha in commits)))


def _page_of(connection: sa.Connection, repository: str, commits: Sequence[str]) -> str:
    """Return the page of a repository on GitHub, as the comparisons of these commits know it; empty if none does."""
    urls = sorted(relation.url for relation in ancestry.relations(connection, repository, commits))
    return next((url.partition(COMMIT_PAGE)[0] for url in urls if COMMIT_PAGE in url), "")


@dataclass(frozen=True, slots=True)
class MovedPosts:
    """Plans the posts about groups; `text` has what the texts of all groups share.

    `finds_cause`: the cause of new groups is searched.
    """

    repository_id: int
    audiences: Sequence[Audience]
    text: MovedText
    finds_cause: bool = False

    def of(self, update: GroupUpdate) -> Iterator[Effect]:
        """Yield the effects that bring all places up to date, the one that stores the group, and one for its search."""
        for audience in self.audiences:
            yield from self._for_audience(audience, update)
        group = update.group
        lasting = sorted_changes(change for change in update.changes.values() if change.id in group.lasting)
        if self.finds_cause and update.old is None and lasting:
            yield begun_move(group.key, moved_likewise(clearest_change(lasting), lasting))
        yield StoreRecord.of(MOVED_GROUP.of(self.repository_id, group.name), group if group.lasting else None)

    def _for_audience(self, audience: Audience, update: GroupUpdate) -> Iterator[Effect]:
        old, group = update.old, update.group
        heard = {member.id for member in group.members if audience.hears_of(member.target, member.test)}
        lasted = heard.intersection(old.lasting) if old is not None else set[str]()
        changes = sorted_changes(change for change in update.changes.values() if change.id in heard)
        if not changes:
            if lasted and audience.has_issue:
                yield EnsureIssue(group.key, closing=texts.MOVED_WITHDRAWN)
            return
        text = replace(self.text, changes=changes, lasting=[item for item in changes if item.id in group.lasting])
        key, count = group.key, len(group.members)
        if text.lasting and not lasted:
            issue = IssueState(key, text.title, text.body(), begins=True)
            yield from message_effects(audience.places, f"{key}:{count}", text.news(), issue)
        elif text.lasting and audience.has_issue:
            yield EnsureIssue(key, text.title, text.body())
        elif lasted and not text.lasting:
            issue = IssueState(key, text.title, "", closing=text.body())
            yield from message_effects(audience.places, f"{key}:end:{count}", text.end_news(), issue)
