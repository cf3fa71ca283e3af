"""Tell people news: in the chat channels and in the issue that app.yaml names."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from typing import ClassVar

from pydantic import TypeAdapter

from bot.config.alarms import Place
from bot.core.errors import UserError
from bot.core.payload import Payload
from bot.effects.issues import NEWS_STATE, EnsureIssue, NewsState
from bot.github.access import NO_PERMISSIONS, WritePermissions
from bot.news.channels import NAMES, VARIABLES, Channel, post, webhook_of
from bot.news.message import News
from bot.news.render import as_markdown
from bot.plan.effect import Applied, Effect, EffectContext

MESSAGE_DUE = "nightjar.news"
"""A delivery of our own: news that is to be posted in a channel, which is its action."""

AGAIN = "I may have said this before: the last time I did not learn whether it has arrived."
SENT, SENT_BEFORE = "on its way to {name}", "on its way to {name} already, or there"
TOLD, TOLD_BEFORE = "told in {name}", "told in {name} already"
NOT_SET = (
    "{variable} is not set, so I cannot tell anything in {name}: set it to a webhook's address, and start me again."
)


@dataclass(frozen=True, slots=True)
class IssueState:
    """What the issue says as long as a trouble lasts, where people are told in an issue.

    `key` names the issue: there is one open issue for each. `title` is plain text. `body` is Markdown, escaped already
    and at most `bot.effects.issues.BODY_LIMIT` characters; empty when the trouble is over, and the issue is closed.
    `begins`: the news is of something that was not wrong before, so it is told even where a person closed the issue.
    `as_of` is the moment of the news, in seconds since 1970: nothing older is told in the issue after it. 0: no order.
    """

    key: str
    title: str
    body: str
    begins: bool = False
    as_of: float = 0.0


def message_effects(to: Sequence[Place], key: str, news: News, standing: IssueState) -> tuple[Effect, ...]:
    """Return the effects that tell news in each place, once for each `key`, which names the news."""
    return tuple(
        _issue(key, news, standing) if place == "issue" else PostMessage(place, key, news)
        for place in dict.fromkeys(to)
    )


def _issue(key: str, news: News, standing: IssueState) -> EnsureIssue:
    told, begins, as_of = as_markdown(news), standing.begins, standing.as_of
    return EnsureIssue(standing.key, standing.title, standing.body, told, key, begins=begins, as_of=as_of)


@dataclass(frozen=True, slots=True)
class PostMessage:
    """Have news posted in a chat channel, once for its key.

    It becomes a delivery of our own, one after the other for each channel: a channel whose service is away for an hour
    keeps neither other places nor anything else of a plan waiting, and hears of a trouble before it hears of its end.
    """

    permissions: ClassVar[WritePermissions] = NO_PERMISSIONS

    place: Channel
    key: str
    news: News

    @property
    def target(self) -> str:
        """The channel and the news."""
        return f"tell:{self.place}:{self.key}"

    async def apply(self, context: EffectContext) -> Applied:
        """Announce it; what was announced before is no news."""
        repository, name = context.repository, NAMES[self.place]
        digest = hashlib.sha256(f"{repository.id}:{self.place}:{self.key}".encode()).hexdigest()[:32]
        body = {
            "action": self.place,
            "repository": {"id": repository.id, "full_name": repository.full_name},
            "key": self.key,
            "news": asdict(self.news),
        }
        new = await context.announce(f"news:{digest}", MESSAGE_DUE, json.dumps(body), f"news:{self.place}")
        return Applied((SENT if new else SENT_BEFORE).format(name=name), changed=new)


@dataclass(frozen=True, slots=True)
class PostNews:
    """Post news in a chat channel, once for its key.

    A webhook cannot be asked whether a message is there. Where that is not known, it is posted again, and says so: see
    docs/decisions/at-least-once-chat-messages.md.
    """

    permissions: ClassVar[WritePermissions] = NO_PERMISSIONS

    place: Channel
    key: str
    news: News

    @classmethod
    def of(cls, payload: Payload) -> PostNews:
        """Read from a payload of ours what is to be posted where."""
        values = {"place": payload.string("action"), "key": payload.string("key"), "news": payload.at("news").raw}
        return _ADAPTER.validate_python(values)

    @property
    def target(self) -> str:
        """The channel and the news."""
        return f"post:{self.place}:{self.key}"

    async def apply(self, context: EffectContext) -> Applied:
        """Look whether it was told, note that it is being told, tell it, and note that it was.

        Raises `TryAgain` where the channel's service is away or asks for a pause, `UserError` where it takes nothing.
        """
        name = NAMES[self.place]
        record = NEWS_STATE.of(context.repository.id, self.place, self.key)
        state = await context.records.get(record)
        if state is not None and state.done:
            return Applied(TOLD_BEFORE.format(name=name), changed=False)
        webhook = webhook_of(context.settings, self.place)
        if webhook is None:
            raise UserError(NOT_SET.format(variable=VARIABLES[self.place], name=name))
        news = replace(self.news, notes=(AGAIN, *self.news.notes)) if state is not None else self.news
        await context.records.put(record, NewsState())
        refusal = await post(context.http, self.place, webhook, news)
        if refusal is None:
            await context.records.put(record, NewsState(done=True))
            return Applied(TOLD.format(name=name))
        if state is None:
            await context.records.remove(record)  # this try has left nothing there, and there was none before it
        raise refusal


_ADAPTER = TypeAdapter(PostNews)
