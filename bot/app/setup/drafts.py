"""Drafts of a set-up: the person's choices until GitHub sends the browser back, found by the `state` of the address.

https://datatracker.ietf.org/doc/html/rfc6749#section-10.12
"""

from __future__ import annotations

import secrets
from dataclasses import dataclass

from cachetools import TTLCache

from bot.app.setup.addresses import GitHubSite

MOST_DRAFTS = 200
"""Drafts that one process remembers."""
DRAFT_SECONDS = 2 * 3600
"""Seconds for which a draft is stored: GitHub's code is valid for an hour, and before that the person takes a while."""


@dataclass(frozen=True, slots=True)
class SetupDraft:
    """What the person chose: which GitHub, whose App, and the bot's public address."""

    site: GitHubSite
    organization: str
    public_url: str


class SetupDrafts:
    """The drafts of one process, by state."""

    def __init__(self) -> None:
        self._drafts: TTLCache[str, SetupDraft] = TTLCache(MOST_DRAFTS, DRAFT_SECONDS)

    def begin(self, draft: SetupDraft) -> str:
        """Return the state of a draft, the same for the same draft."""
        known = next((state for state, one in self._drafts.items() if one == draft), None)
        state = known or secrets.token_urlsafe(24)
        self._drafts[state] = draft
        return state

    def find(self, state: str) -> SetupDraft | None:
        """Return the draft of a state, None if none was begun here."""
        found: SetupDraft | None = self._drafts.get(state)
        return found

    def end(self) -> None:
        """Forget all drafts: an App exists."""
        self._drafts.clear()
