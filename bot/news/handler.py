"""Post news to chat channels. Each channel has its own lock, so that none waits for another."""

from __future__ import annotations

from bot.news.effects import MESSAGE_EVENT
from bot.plan.handler import Context, Plan, Router

NAME = "news"

router = Router()


@router.on(MESSAGE_EVENT.name, name=NAME)
async def post_news(context: Context) -> Plan:
    """Plan the post of the news in the delivery."""
    news = MESSAGE_EVENT.read(context.delivery.payload)
    return Plan((news,), why=news.news.title)
