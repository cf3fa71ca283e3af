"""News for chat channels: each channel has its own, one after the other, so that none waits for another."""

from __future__ import annotations

from bot.news.effects import MESSAGE_DUE, PostNews
from bot.plan.handler import Context, Plan, Router

NAME = "news"

router = Router()


@router.on(MESSAGE_DUE, name=NAME)
async def tell(context: Context) -> Plan:
    """Have the news posted that a handler has told."""
    news = PostNews.of(context.delivery.payload)
    return Plan((news,), why=news.news.title)
