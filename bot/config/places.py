"""The type of keys that say where messages go."""

from __future__ import annotations

from typing import Literal

Place = Literal["discord", "slack", "issue"]
"""A channel for messages: Discord or Slack by webhook, or an issue in the repository."""

TO = (
    "Channels for messages: `discord` and `slack`, whose webhooks are DISCORD_WEBHOOK_URL and SLACK_WEBHOOK_URL, and "
    "`issue`, an issue in the repository that the bot closes after recovery."
)
"""The description of such a key."""
