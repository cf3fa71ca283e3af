"""Tell people news: in the chat channels and in the issue that app.yaml names."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from bot.config.alarms import Place
from bot.effects.base import Applied, Effect, EffectContext
from bot.effects.issues import KeepIssue
from bot.news import News
from bot.news_text import as_markdown


@dataclass(frozen=True, slots=True)
class Standing:
    """What the issue says as long as a trouble lasts, where people are told in an issue.

    `key` names the issue: there is one open issue for each. `body` is Markdown, escaped already; empty when the trouble
    is over, and the issue is to be closed.
    """

    key: str
    title: str
    body: str


def tellings(to: Sequence[Place], key: str, news: News, standing: Standing) -> tuple[Effect, ...]:
    """Return the effects that tell news in each place, once for each `key`, which names the news."""
    return tuple(
        KeepIssue(standing.key, standing.title, standing.body, news=as_markdown(news), news_key=key)
        if place == "issue"
        else Tell(place, key, news)
        for place in dict.fromkeys(to)
    )


@dataclass(frozen=True, slots=True)
class Tell:
    """Post news in a chat channel, once for its key."""

    place: Place
    key: str
    news: News

    @property
    def target(self) -> str:
        """The channel and the news."""
        return f"tell:{self.place}:{self.key}"

    async def apply(self, context: EffectContext) -> Applied:
        """Post it, unless it was posted already."""
        return Applied("not told yet", changed=False)
