"""Tell people news: in the chat channels and in the issue that app.yaml names."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

from bot.config.environment import SETTINGS
from bot.config.places import Place
from bot.core.errors import UserError
from bot.core.web_json import HTTP
from bot.effects.issues import NEWS_STATE, EnsureIssue, NewsState
from bot.engine.internal import InternalEvent
from bot.github.access import NO_PERMISSIONS, WritePermissions
from bot.news.channels import NAMES, VARIABLES, Channel, post, webhook_of
from bot.news.message import News
from bot.news.render import as_markdown
from bot.news.texts import MAYBE_POSTED_BEFORE, POSTED, POSTED_BEFORE, QUEUED, QUEUED_BEFORE, WEBHOOK_NOT_SET
from bot.plan.effect import Applied, Effect, EffectContext, StoreContext, StoredEffect


@dataclass(frozen=True, slots=True)
class IssueState:
    """The state of the issue that reports a failure as long as it lasts.

    `key` names the issue: there is one open issue for each. `title` is plain text. `body` is Markdown, escaped already
    and at most `bot.effects.issues.BODY_LIMIT` characters; empty if the failure is over, which closes the issue.
    `closing` is its body then; without it, a closed issue keeps its body.
    `begins`: something failed that did not fail before, so a new issue is opened even if a person closed the last one.
    `as_of` is the time of the news, in seconds since 1970: older news never replaces newer news in the issue. 0: there
    is no order.
    """

    key: str
    title: str
    body: str
    begins: bool = False
    as_of: float = 0.0
    closing: str = ""


def message_effects(places: Sequence[Place], key: str, news: News, issue: IssueState) -> tuple[Effect, ...]:
    """Return the effects that post news in each place, once for each `key`, which identifies the news."""
    return tuple(
        _issue(key, news, issue) if place == "issue" else PostMessage(place, key, news)
        for place in dict.fromkeys(places)
    )


def _issue(key: str, news: News, issue: IssueState) -> EnsureIssue:
    text, begins, as_of = as_markdown(news), issue.begins, issue.as_of
    return EnsureIssue(issue.key, issue.title, issue.body, text, key, begins, as_of, issue.closing)


@dataclass(frozen=True, slots=True)
class PostMessage(StoredEffect):
    """Queue news for a chat channel, once for its key.

    The post is an internal event with a lock for each channel. So a channel that is down for an hour delays neither
    other places nor the rest of a plan, and it gets a failure before its recovery.
    """

    place: Channel
    key: str
    news: News

    @property
    def effect_key(self) -> str:
        """The channel and the news."""
        return f"tell:{self.place}:{self.key}"

    async def store(self, context: StoreContext) -> Applied:
        """Announce the post unless it was announced before."""
        name, event = NAMES[self.place], PostNews(self.place, self.key, self.news)
        new = await context.changes.announce(MESSAGE_EVENT, context.repository, event)
        return Applied((QUEUED if new else QUEUED_BEFORE).format(name=name), changed=new)


@dataclass(frozen=True, slots=True)
class PostNews:
    """Post news in a chat channel, once for its key.

    A webhook does not say whether a message was posted. If that is unknown, the bot posts the news again with a note
    that says so: see docs/decisions/at-least-once-chat-messages.md.
    """

    permissions: ClassVar[WritePermissions] = NO_PERMISSIONS

    place: Channel
    key: str
    news: News

    @property
    def effect_key(self) -> str:
        """The channel and the news."""
        return f"post:{self.place}:{self.key}"

    async def apply(self, context: EffectContext) -> Applied:
        """Post the news unless it was posted, and store its state before and after.

        Raises `TryAgain` if the channel is down or asks for a pause, `UserError` if it refuses the message.
        """
        name = NAMES[self.place]
        record = NEWS_STATE.of(context.repository.id, self.place, self.key)
        state = await context.records.get(record)
        if state is not None and state.done:
            return Applied(POSTED_BEFORE.format(name=name), changed=False)
        webhook = webhook_of(context.part(SETTINGS), self.place)
        if webhook is None:
            raise UserError(WEBHOOK_NOT_SET.format(variable=VARIABLES[self.place], name=name))
        news = replace(self.news, notes=(MAYBE_POSTED_BEFORE, *self.news.notes)) if state is not None else self.news
        await context.records.put(record, NewsState())
        refusal = await post(context.part(HTTP), self.place, webhook, news)
        if refusal is None:
            await context.records.put(record, NewsState(done=True))
            return Applied(POSTED.format(name=name))
        if state is None:
            await context.records.remove(record)  # nothing was posted, neither by this attempt nor by one before
        raise refusal


def _guid(repository: int, event: PostNews) -> str:
    digest = hashlib.sha256(f"{repository}:{event.place}:{event.key}".encode()).hexdigest()[:32]
    return f"news:{digest}"


# The lock names only the channel: all repositories share its webhook and its rate limit.
MESSAGE_EVENT = InternalEvent(
    "nightjar.news", PostNews, guid=_guid, lock=lambda _, event: f"news:{event.place}", action=lambda event: event.place
)
"""Asks to post news in a channel; the action of the event is the channel."""
