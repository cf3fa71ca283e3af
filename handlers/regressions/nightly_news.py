"""News of several targets about one nightly run: targets on which the same tests fail share one message and one issue.

Each target is evaluated by itself. Its news waits in a record until the other targets were evaluated too, or the wait
is over (`NewsAnnouncer`). The target's own plan stores the record, and the plan with the message removes it, so a crash
loses nothing. One lock per repository prevents two messages at once.
"""

from __future__ import annotations

import asyncio
import hashlib
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from nightjar_formats.model import TargetKey

from bot.config.places import Place
from bot.config.types import seconds
from bot.core.events import Repository
from bot.effects.issues import NEWS_STATE, EnsureIssue, NewsState
from bot.effects.remember import StoreRecord
from bot.engine.internal import InternalEvent, announce
from bot.engine.sweeps import hours_between
from bot.github.pull_heads import repository_id_of
from bot.news.effects import IssueState, PostMessage, message_effects
from bot.news.render import as_markdown
from bot.plan.effect import Effect
from bot.plan.handler import NOTHING, Context, Plan, Router
from bot.plan.page_links import HistoryLink, history_link, no_history
from bot.results.compare.ancestors import Candidate
from bot.results.report.baseline import searched_ancestors
from bot.results.service import RESULTS
from bot.results.store.failures import Failure, FailureEnd
from handlers.regressions import texts
from handlers.regressions.config import REGRESSIONS as REGRESSIONS_KEY
from handlers.regressions.decide import RECOVERED, REGRESSIONS, REMOVED, RegressionChanges, unpacked
from handlers.regressions.group_text import group_body, group_news, group_title, joined_news
from handlers.regressions.groups import (
    FAILING,
    JOINED,
    REGRESSION_GROUP,
    WAITING_NEWS,
    Ends,
    GroupMember,
    RegressionGroup,
    WaitingNews,
    grouped_members,
    is_narrower,
    is_time_to_post,
    joins,
    range_to_ask,
    shared_tests,
)
from handlers.regressions.target_text import issue_body, regression_news

if TYPE_CHECKING:
    from bot.config import Config
    from bot.engine.processor import Announce
    from bot.engine.records import Records
    from bot.results.settings.results import Results

NAME = "nightly-news"
MOST_ASKED = 10
"""The bot asks GitHub about at most this many pairs of commits; beyond that, each target has its own message."""


@dataclass(frozen=True, slots=True)
class NightlyNews:
    """News of targets must be posted, at a moment in seconds since 1970; `asked` names the news, and why now."""

    at: float
    asked: str


NIGHTLY_NEWS = InternalEvent(
    "nightjar.nightly-news",
    NightlyNews,
    guid=lambda repository, event: f"nightly-news:{repository}:{event.asked}",
    lock=lambda repository, _: f"news:{repository}",
)

router = Router()


@router.on(NIGHTLY_NEWS.name, name=NAME, feature="regressions")
async def post_nightly_news(context: Context) -> Plan:
    """Post the news that waits: of several targets together, if they fail in the same tests."""
    regressions, event = context.config.of(REGRESSIONS_KEY), NIGHTLY_NEWS.read(context.delivery.payload)
    waiting = await context.records.under(WAITING_NEWS, context.repository.id)
    if regressions is None:
        return NOTHING
    if not waiting:
        return Plan(why=texts.NO_NEWS_WAITING)
    groups = list((await context.records.under(REGRESSION_GROUP, context.repository.id)).values())
    joined, alone = joined_members(groups, [member for one in waiting.values() for member in one.began], event.at)
    for group in groups:
        # Dates alone cannot say whether two commits are in one line of history.
        if group.name in joined and not await _is_range(context, [*group.members, *joined[group.name]]):
            alone += joined.pop(group.name)
    found = [group for group in grouped_members(alone) if len(group) > 1]
    page = next((one.about.page for one in waiting.values() if one.about.page), "")
    begun = [RegressionGroup.of(one, page, event.at) for one in found if await _is_range(context, one)]
    members = [one for group in (*groups, *begun) for one in group.members]
    ends = await _ends(context, [*members, *(one for those in joined.values() for one in those)])
    return decide_nightly_news(
        context.repository.id,
        regressions.to,
        event.at,
        waiting,
        groups,
        joined,
        begun,
        ends,
        history_link(context),
    )


def decide_nightly_news(
    repository_id: int,
    to: Sequence[Place],
    at: float,
    waiting: Mapping[str, WaitingNews],
    groups: Sequence[RegressionGroup],
    joined: Mapping[str, Sequence[GroupMember]],
    begun: Sequence[RegressionGroup],
    ends: Ends,
    history: HistoryLink = no_history,
) -> Plan:
    """Return the messages: of new groups, of groups with new members, and of targets that are in no group.

    `joined` has the new members of existing `groups`, by key; `ends` says which of the failures of all members ended;
    `history` links the page of each test.
    """
    news = _GroupPosts(repository_id, to, at, ends, history)
    grouped = {one for group in begun for one in group.members} | {one for those in joined.values() for one in those}
    effects = [effect for group in begun for effect in news.begun(group)]
    concerned = {one.about.about.full_name for one in waiting.values()}
    for group in groups:
        if new := joined.get(group.name):
            effects += news.joined(group, new)
        elif any(one.where in concerned for one in group.members):
            effects += news.refreshed(group)
    # Afterwards, and oldest first: they may say that the same tests recovered.
    for one in sorted(waiting.values(), key=lambda one: one.opened_at):
        effects += own_messages(repository_id, to, one, grouped, history)
    # In the same plan as the messages: a kill in between neither loses nor repeats any
    # (docs/decisions/one-message-for-several-targets.md).
    removed = [StoreRecord.of(WAITING_NEWS.of(repository_id, name), None) for name in waiting]
    return Plan((*effects, *removed), why=texts.NEWS_POSTED.format(targets=", ".join(sorted(concerned))))


def own_messages(
    repository_id: int,
    to: Sequence[Place],
    one: WaitingNews,
    grouped: Collection[GroupMember],
    history: HistoryLink = no_history,
) -> Sequence[Effect]:
    """Return the message of a target about all changes that no group's message contains."""
    if one.news is None or one.issue is None:
        return ()
    if not any(member in grouped for member in one.began):
        return message_effects(to, one.key, one.news, one.issue)
    sides = unpacked(one.changes)
    failing = sides.pop(FAILING, [])
    alone = [member for member in one.began if member not in grouped]
    began = [failure for each in alone for failure in each.failures]
    recovered, removed = (tuple(sides.get(side, ())) for side in (RECOVERED, REMOVED))
    changes = RegressionChanges(tuple(began), recovered, removed, *one.reliability)
    if changes:
        elsewhere = {(each.suite, test) for each in one.began if each in grouped for test in each.tests}
        own = [failure for failure in failing if (failure.suite, failure.test) not in elsewhere]
        issue = replace(one.issue, body=issue_body(one.about, own, history), begins=bool(began or changes.unreliable))
        return message_effects(to, one.key, regression_news(one.about, changes, own), issue)
    # Without this record, the next nightly run would assume that the news never reached the issue.
    return (StoreRecord.of(NEWS_STATE.of(repository_id, "issue", one.key), NewsState(done=True)),)


@dataclass(frozen=True, slots=True)
class _GroupPosts:
    """Plans the posts about groups of a repository, at a moment."""

    repository_id: int
    to: Sequence[Place]
    at: float
    ends: Ends
    history: HistoryLink

    def begun(self, group: RegressionGroup) -> list[Effect]:
        """Return the first message of a group; its issue is opened with it, unless all tests recovered meanwhile."""
        now = group.after(self.ends)
        body, closing = self._bodies(now)
        issue = IssueState(_issue_of(group), group_title(group), body, begins=True, closing=closing)
        messages = message_effects(self.to, _issue_of(group), group_news(group), issue)
        return [*messages, self._stored(now)]

    def joined(self, group: RegressionGroup, new: Sequence[GroupMember]) -> list[Effect]:
        """Return the message about further targets: a comment only if the range is smaller, or more tests fail."""
        # `news_at` limits a chat to one message about the group per `wait` (`is_time_to_post`).
        larger = replace(group, members=(*group.members, *new), news_at=self.at)
        news, key = joined_news(larger, new), f"{_issue_of(group)}:{len(larger.members)}"
        says_more = is_narrower(larger, group) or shared_tests(larger.members) != shared_tests(group.members)
        now = larger.after(self.ends)
        body, closing = self._bodies(now)
        effects: list[Effect] = []
        for place in dict.fromkeys(self.to):
            if place != "issue":
                effects.append(PostMessage(place, key, news))
            else:
                comment = as_markdown(news) if says_more else ""
                title = group_title(larger)
                effects.append(EnsureIssue(_issue_of(group), title, body, comment, key, closing=closing))
        return [*effects, self._stored(now)]

    def refreshed(self, group: RegressionGroup) -> list[Effect]:
        """Return the effects that update the issue of a group, and close it when none of its tests fails."""
        now = group.after(self.ends)
        body, closing = self._bodies(now)
        issue = EnsureIssue(_issue_of(group), group_title(group), body, closing=closing)
        return [*([issue] if "issue" in self.to else []), self._stored(now)]

    def _bodies(self, group: RegressionGroup) -> tuple[str, str]:
        """Return the body of the open issue, and that with which it is closed; one of them is empty."""
        body = group_body(group, self.history)
        return (body, "") if group.members else ("", body)

    def _stored(self, group: RegressionGroup) -> Effect:
        return StoreRecord.of(REGRESSION_GROUP.of(self.repository_id, group.name), group if group.members else None)


def joined_members(
    groups: Sequence[RegressionGroup], members: Sequence[GroupMember], at: float
) -> tuple[dict[str, list[GroupMember]], list[GroupMember]]:
    """Return the members that join an existing group, by its key, and all others."""
    joined, alone = dict[str, list[GroupMember]](), list[GroupMember]()
    recent = [group for group in groups if group.opened_at >= at - JOINED]
    # Sorted, so that groups do not depend on the order in which results arrived.
    for one in sorted(members, key=lambda one: (one.where, one.suite, one.since, one.tests)):
        found = next((g for g in recent if joins(one, (*g.members, *joined.get(g.name, ())))), None)
        if found is None:
            alone.append(one)
        else:
            joined.setdefault(found.name, []).append(one)
    return joined, alone


def _issue_of(group: RegressionGroup) -> str:
    return f"regression-group:{group.name}"


async def _is_range(context: Context, members: Sequence[GroupMember]) -> bool:
    """Ask whether one range of commits fits all members: labs may test several branches."""
    results, repository = context.part(RESULTS), context.repository.full_name
    stored_as = results.canonical(TargetKey(repository, "", "")).repository
    inside = range_to_ask(members)
    if len(inside) > MOST_ASKED:
        return False
    for newer, older, older_at in inside:
        candidates = {"": [Candidate(older, older_at)]}
        if not await searched_ancestors(results, context.github, repository, stored_as, newer, candidates, wanted=1):
            return False
    return True


async def _ends(context: Context, members: Sequence[GroupMember]) -> Ends:
    """Return which failures of members ended, and how."""
    results, by_target = context.part(RESULTS), dict[TargetKey, list[Failure]]()
    for one in members:
        key = TargetKey(context.repository.full_name, one.lab, one.target)
        by_target.setdefault(key, []).extend(one.failures)
    found: dict[tuple[str, Failure], FailureEnd] = {}
    for key, failures in by_target.items():
        ended = await asyncio.to_thread(results.store.failures.ends, results.canonical(key), failures)
        found |= {(f"{key.lab}/{key.target}", failure): end for failure, end in ended.items()}
    return found


class NewsAnnouncer:
    """Announces that waiting news must be posted; `now` is in seconds since 1970."""

    def __init__(
        self, config: Config, records: Records, *, accept: Announce, now: Callable[[], float] = time.time
    ) -> None:
        self._waits = {
            name: seconds(regressions.wait)
            for name, settings in config.repositories.items()
            if (regressions := settings.of(REGRESSIONS_KEY)) is not None
        }
        self._records = records
        self._accept = accept
        self._now = now

    async def announce_news(self, repository: str, _: Results) -> int:
        """Have waiting news posted when all active targets were evaluated, or the wait is over.

        Returns how many events were announced.
        """
        wait, repository_id = self._waits.get(repository), await repository_id_of(self._records, repository)
        if wait is None or repository_id is None:
            return 0
        waiting = await self._records.under(WAITING_NEWS, repository_id)
        if not waiting:
            return 0
        groups = (await self._records.under(REGRESSION_GROUP, repository_id)).values()
        known = await self._records.under(REGRESSIONS, repository_id)
        if not is_time_to_post(waiting.values(), groups, known, self._now(), wait):
            return 0
        # The same news has the same GUID, so it is posted once. The hour gives it a new chance if all its jobs failed.
        digest = hashlib.sha256("\0".join(sorted(waiting)).encode()).hexdigest()[:16]
        event = NightlyNews(self._now(), f"{digest}:{hours_between(0.0, self._now())}")
        return await announce(self._accept, NIGHTLY_NEWS, Repository(repository_id, repository, None), event)
