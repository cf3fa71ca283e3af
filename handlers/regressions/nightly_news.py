"""News of several targets about one nightly run: targets on which the same tests fail share one message and one issue.

Each target is evaluated by itself. Its news waits in a record until the other targets were evaluated too, or the wait
is over (`NewsAnnouncer`). The target's own plan stores the record, and the plan with the message removes it, so a crash
loses nothing. One lock per repository prevents two messages at the same time.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from nightjar_formats.model import TargetKey

from bot.config.types import seconds
from bot.core.events import Repository
from bot.effects.issues import EnsureIssue
from bot.effects.remember import StoreRecord
from bot.engine.internal import InternalEvent, announce
from bot.engine.sweeps import hours_between
from bot.github.pull_heads import repository_id_of, repository_ids
from bot.news.effects import IssueState, PostMessage, message_effects
from bot.news.render import as_markdown
from bot.plan.effect import Effect
from bot.plan.handler import NOTHING, Context, Plan, Router
from bot.results.compare.ancestors import Candidate
from bot.results.report.baseline import searched_ancestors
from bot.results.service import RESULTS
from bot.results.store.failures.failures import RECOVERED, Failure, FailureEnd, failure_ends
from handlers.regressions import texts
from handlers.regressions.audiences import Audience, audiences_of
from handlers.regressions.begun import AnnounceBegun, begun_in_group, begun_on_target
from handlers.regressions.config import REGRESSIONS as REGRESSIONS_KEY
from handlers.regressions.decide import REMOVED, RegressionChanges, unpack_failures
from handlers.regressions.details import details_of
from handlers.regressions.group_text import group_body, group_news, group_title, joined_news
from handlers.regressions.groups import (
    FAILING,
    JOINED,
    grouped_members,
    is_narrower,
    is_time_to_post,
    joins,
    required_ancestors,
    shared_tests,
)
from handlers.regressions.records import (
    REGRESSION_GROUP,
    REGRESSIONS,
    WAITING_NEWS,
    Ends,
    GroupMember,
    RegressionGroup,
    WaitingNews,
    group_issue,
)
from handlers.regressions.target_messages import TargetMessage
from handlers.regressions.target_text import NO_DETAILS, DetailsOfTests

if TYPE_CHECKING:
    from bot.config import Config
    from bot.engine.internal import Announce
    from bot.engine.records import Records
    from bot.results.settings.results import Results

NAME = "nightly-news"
MOST_COMPARED = 10
"""The most pairs of commits that the bot asks GitHub about; with more pairs, each target has its own message."""


@dataclass(frozen=True, slots=True)
class NightlyNews:
    """News of targets must be posted, at a moment (`at`) in seconds since 1970.

    `asked` identifies the news, and the hour, so that failed news gets a new chance each hour.
    """

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
    """Plan the messages of waiting news: one for all targets that fail in the same tests."""
    regressions, event = context.config.of(REGRESSIONS_KEY), NIGHTLY_NEWS.read(context.delivery.payload)
    waiting = await context.records.under(WAITING_NEWS, context.repository.id)
    if regressions is None:
        return NOTHING
    if not waiting:
        return Plan(why=texts.NO_NEWS_WAITING)
    groups = list((await context.records.under(REGRESSION_GROUP, context.repository.id)).values())
    new_members = [member for news in waiting.values() for member in news.began]
    joined, ungrouped = joined_members(groups, new_members, event.at)
    for group in groups:
        # Dates alone cannot say whether two commits are in one line of history.
        if group.name in joined and not await _is_range(context, [*group.members, *joined[group.name]]):
            ungrouped += joined.pop(group.name)
    candidates = [members for members in grouped_members(ungrouped) if len(members) > 1]
    page = next((news.about.page for news in waiting.values() if news.about.page), "")
    begun = [RegressionGroup.of(members, page, event.at) for members in candidates if await _is_range(context, members)]
    all_members = [member for group in (*groups, *begun) for member in group.members]
    ends = await _ends(context, [*all_members, *(member for members in joined.values() for member in members)])
    plan = decide_nightly_news(
        context.repository.id,
        audiences_of(regressions),
        event.at,
        waiting,
        groups,
        joined,
        begun,
        ends,
        await details_of(context),
    )
    searches = begun_searches(waiting.values(), joined, begun) if regressions.find else ()
    return replace(plan, effects=(*plan.effects, *searches))


def begun_searches(
    waiting: Iterable[WaitingNews], joined: Mapping[str, Sequence[GroupMember]], begun: Sequence[RegressionGroup]
) -> Iterator[AnnounceBegun]:
    """Yield the effects that request a search for each new group, and for each failure that is in no group.

    A target that joins a group later changes nothing: the group has its search.
    """
    yield from map(begun_in_group, begun)
    grouped = {member for group in begun for member in group.members}
    grouped |= {member for members in joined.values() for member in members}
    for news in waiting:
        failures = [failure for member in news.began if member not in grouped for failure in member.failures]
        yield from begun_on_target(news.about, failures)


def decide_nightly_news(
    repository_id: int,
    audiences: Sequence[Audience],
    moment: float,
    waiting: Mapping[str, WaitingNews],
    groups: Sequence[RegressionGroup],
    joined: Mapping[str, Sequence[GroupMember]],
    begun: Sequence[RegressionGroup],
    ends: Ends,
    details: DetailsOfTests = NO_DETAILS,
) -> Plan:
    """Return the messages: of new groups, of groups with new members, and of targets that are in no group.

    `waiting` has the news, by the keys of their records, and `begun` the new groups. `joined` has the new members of
    existing `groups`, by the name of the group. `ends` says which failures of all members ended. `details` are
    those of each test; `moment` is in seconds since 1970. Each of `audiences` gets its part.
    """
    posts = _GroupPosts(repository_id, audiences, moment, ends, details)
    grouped = {member for group in begun for member in group.members}
    grouped |= {member for members in joined.values() for member in members}
    effects = [effect for group in begun for effect in posts.begun(group)]
    targets = {news.about.about.full_name for news in waiting.values()}
    for group in groups:
        if new_members := joined.get(group.name):
            effects += posts.joined(group, new_members)
        elif any(member.full_name in targets for member in group.members):
            effects += posts.updated(group)
    # After the groups, and oldest first: these messages may say that the same tests recovered.
    for news in sorted(waiting.values(), key=lambda news: news.opened_at):
        effects += own_messages(repository_id, audiences, news, grouped, details)
    # The same plan removes the records: a crash in between neither loses nor repeats a message
    # (docs/decisions/one-message-for-several-targets.md).
    removals = [StoreRecord.of(WAITING_NEWS.of(repository_id, key), None) for key in waiting]
    return Plan((*effects, *removals), why=texts.NEWS_POSTED.format(targets=", ".join(sorted(targets))))


def own_messages(
    repository_id: int,
    audiences: Sequence[Audience],
    waiting: WaitingNews,
    grouped: Collection[GroupMember],
    details: DetailsOfTests = NO_DETAILS,
) -> Sequence[Effect]:
    """Return the message of a target about all changes that no group's message contains."""
    if waiting.news is None or waiting.issue is None:
        return ()
    is_whole = not any(member in grouped for member in waiting.began)
    failures = unpack_failures(waiting.changes)
    failing = failures.pop(FAILING, [])
    began = [failure for member in waiting.began if member not in grouped for failure in member.failures]
    recovered, removed = (tuple(failures.get(end, ())) for end in (RECOVERED, REMOVED))
    changes = RegressionChanges(tuple(began), recovered, removed, *waiting.reliability)
    in_groups = {(member.suite, test) for member in waiting.began if member in grouped for test in member.tests}
    own_failures = [failure for failure in failing if (failure.suite, failure.test) not in in_groups]
    message = TargetMessage(
        repository_id, waiting.key, waiting.about, changes, own_failures, own_failures, waiting.issue, details
    )
    effects: list[Effect] = []
    for audience in audiences:
        if is_whole and not audience.subscriptions:
            effects += message_effects(audience.places, waiting.key, waiting.news, waiting.issue)
        else:
            effects += message.effects(audience)
    return effects


@dataclass(frozen=True, slots=True)
class _GroupPosts:
    """Plans the posts about groups of a repository, at a moment."""

    repository_id: int
    audiences: Sequence[Audience]
    moment: float
    ends: Ends
    details: DetailsOfTests

    def begun(self, group: RegressionGroup) -> list[Effect]:
        """Return the first message of a group, which opens its issue unless all tests recovered meanwhile."""
        effects: list[Effect] = []
        for audience in self.audiences:
            part = audience.group(group)
            if part.members:
                effects += self._first(audience, part, group_issue(group.name))
        return [*effects, self._group_record(group.after(self.ends))]

    def joined(self, group: RegressionGroup, new_members: Sequence[GroupMember]) -> list[Effect]:
        """Return the message about new members; the issue gets a comment only if it says more than before.

        It says more if the range of commits is smaller, or more tests fail.
        """
        # `news_at` limits a chat to one message about the group per `wait` (`is_time_to_post`).
        larger = replace(group, members=(*group.members, *new_members), news_at=self.moment)
        key, effects = f"{group_issue(group.name)}:{len(larger.members)}", list[Effect]()
        for audience in self.audiences:
            part, larger_part = audience.group(group), audience.group(larger)
            new_part = audience.members(new_members)
            if not new_part:
                effects += self._updated(audience, part)
            elif not part.all_members:
                effects += self._first(audience, larger_part, key)
            else:
                effects += self._joined(audience, part, larger_part, new_part, key)
        return [*effects, self._group_record(larger.after(self.ends))]

    def updated(self, group: RegressionGroup) -> list[Effect]:
        """Return the effects that update the issue of a group, and close it when none of its tests fails."""
        effects = [effect for audience in self.audiences for effect in self._updated(audience, audience.group(group))]
        return [*effects, self._group_record(group.after(self.ends))]

    def _first(self, audience: Audience, group: RegressionGroup, key: str) -> Sequence[Effect]:
        """Return the first message of a group in an audience."""
        body, closing = self._bodies(group.after(self.ends))
        issue = IssueState(group_issue(group.name), group_title(group), body, begins=True, closing=closing)
        return message_effects(audience.places, key, group_news(group), issue)

    def _joined(
        self,
        audience: Audience,
        group: RegressionGroup,
        larger: RegressionGroup,
        new_members: Sequence[GroupMember],
        key: str,
    ) -> Iterator[Effect]:
        """Yield the message about new members of a group in an audience that knows the group."""
        news = joined_news(larger, new_members)
        says_more = is_narrower(larger, group) or shared_tests(larger.members) != shared_tests(group.members)
        body, closing = self._bodies(larger.after(self.ends))
        for place in audience.places:
            if place != "issue":
                yield PostMessage(place, key, news)
            else:
                comment = as_markdown(news) if says_more else ""
                yield EnsureIssue(group_issue(group.name), group_title(larger), body, comment, key, closing=closing)

    def _updated(self, audience: Audience, group: RegressionGroup) -> list[Effect]:
        """Return the effect that updates the issue of a group in an audience."""
        # An audience none of whose tests fails any more has no open issue.
        if not (audience.has_issue and group.members):
            return []
        body, closing = self._bodies(group.after(self.ends))
        return [EnsureIssue(group_issue(group.name), group_title(group), body, closing=closing)]

    def _bodies(self, group: RegressionGroup) -> tuple[str, str]:
        """Return the body of the open issue, and the body of the closed issue; one of them is empty."""
        body = group_body(group, self.details)
        return (body, "") if group.members else ("", body)

    def _group_record(self, group: RegressionGroup) -> Effect:
        return StoreRecord.of(REGRESSION_GROUP.of(self.repository_id, group.name), group if group.members else None)


def joined_members(
    groups: Sequence[RegressionGroup], members: Sequence[GroupMember], moment: float
) -> tuple[dict[str, list[GroupMember]], list[GroupMember]]:
    """Return the members that join an existing group, by the name of the group, and all others."""
    joined, ungrouped = dict[str, list[GroupMember]](), list[GroupMember]()
    recent = [group for group in groups if group.opened_at >= moment - JOINED]
    # Sorted, so that groups do not depend on the order in which results arrived.
    for member in sorted(members, key=lambda member: (member.full_name, member.suite, member.since, member.tests)):
        matches = (group for group in recent if joins(member, (*group.members, *joined.get(group.name, ()))))
        group = next(matches, None)
        if group is None:
            ungrouped.append(member)
        else:
            joined.setdefault(group.name, []).append(member)
    return joined, ungrouped


async def _is_range(context: Context, members: Sequence[GroupMember]) -> bool:
    """Ask GitHub whether one range of commits fits all members: labs may test several branches."""
    results, repository = context.part(RESULTS), context.repository.full_name
    canonical_name = results.canonical_name(repository)
    pairs = required_ancestors(members)
    if len(pairs) > MOST_COMPARED:
        return False
    for descendant, ancestor, ancestor_at in pairs:
        candidates = {"": [Candidate(ancestor, ancestor_at)]}
        if not await searched_ancestors(
            results, context.github, repository, canonical_name, descendant, candidates, most=1
        ):
            return False
    return True


async def _ends(context: Context, members: Sequence[GroupMember]) -> Ends:
    """Return which failures of members ended, and how."""
    results, failures_by_target = context.part(RESULTS), dict[TargetKey, list[Failure]]()
    for member in members:
        target = TargetKey(context.repository.full_name, member.lab, member.target)
        failures_by_target.setdefault(target, []).extend(member.failures)
    ends: dict[tuple[str, Failure], FailureEnd] = {}
    for target, failures in failures_by_target.items():
        target_ends = await results.read(failure_ends, results.canonical(target), failures)
        ends |= {(target.full_name, failure): end for failure, end in target_ends.items()}
    return ends


class NewsAnnouncer:
    """Announces that waiting news must be posted; `clock` is in seconds since 1970."""

    def __init__(
        self, config: Config, records: Records, *, accept: Announce, clock: Callable[[], float] = time.time
    ) -> None:
        self._config = config
        self._records = records
        self._accept = accept
        self._clock = clock

    async def pending(self) -> list[str]:
        """Return a name of the news of each repository that must be posted now."""
        waiting_ids = {int(key.partition(":")[0]) for key in await self._records.under(WAITING_NEWS)}
        ids = await repository_ids(self._records, map(str.lower, self._config.repositories)) if waiting_ids else {}
        news = [await self._news(name, number) for name, number in ids.items() if number in waiting_ids]
        return [name for name in news if name]

    async def announce_news(self, repository: str, _: Results) -> int:
        """Have waiting news posted when all active targets were evaluated, or the wait is over.

        Returns how many events were announced.
        """
        repository_id = await repository_id_of(self._records, repository)
        name = await self._news(repository, repository_id) if repository_id is not None else ""
        if repository_id is None or not name:
            return 0
        event = NightlyNews(self._clock(), name)
        return await announce(self._accept, NIGHTLY_NEWS, Repository(repository_id, repository, None), event)

    async def _news(self, repository: str, repository_id: int) -> str:
        """Return a name of the waiting news of a repository that must be posted now; empty if there is none."""
        settings = self._config.repository(repository)
        regressions = settings.of(REGRESSIONS_KEY) if settings is not None else None
        waiting = await self._records.under(WAITING_NEWS, repository_id) if regressions is not None else {}
        if regressions is None or not waiting:
            return ""
        groups = (await self._records.under(REGRESSION_GROUP, repository_id)).values()
        evaluated = await self._records.under(REGRESSIONS, repository_id)
        if not is_time_to_post(waiting.values(), groups, evaluated, self._clock(), seconds(regressions.wait)):
            return ""
        # The same news has the same GUID, so it is posted once. The hour gives it a new chance if all its jobs failed.
        digest = hashlib.sha256("\0".join(sorted(waiting)).encode()).hexdigest()[:16]
        return f"{digest}:{hours_between(0.0, self._clock())}"
