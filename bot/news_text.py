"""News as text: for GitHub, Discord and Slack, each escaped and cut as the place asks for."""

from __future__ import annotations

from bot.github.markdown import escape
from bot.news import News


def as_markdown(news: News) -> str:
    """Return news as GitHub's Markdown."""
    return f"**{escape(news.title)}**"
