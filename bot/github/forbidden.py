"""Causes of a 403, which only the sentence in GitHub's answer distinguishes.

https://docs.github.com/en/rest/using-the-rest-api/troubleshooting-the-rest-api
"""

from __future__ import annotations

from enum import StrEnum

from gidgethub import BadRequest, QueryError

from bot.core.errors import Refusal


class Cause(StrEnum):
    """The cause of a 403, where GitHub's sentence names one."""

    ARCHIVED = "archived"
    LOCKED = "locked"
    WORKFLOWS = "workflows"
    ADDRESS = "address"
    SAML = "saml"
    SUSPENDED = "suspended"


class ConversationLocked(Refusal):
    """Somebody locked the conversation: only people with write access may comment, and no App may.

    https://docs.github.com/en/communities/moderating-comments-and-conversations/locking-conversations
    """


class LockedForRest(ConversationLocked, BadRequest):
    """The REST API reports a locked conversation."""


class LockedForGraphQL(ConversationLocked, QueryError):
    """GraphQL reports a locked conversation."""


# Parts of GitHub's sentences, in lower case. One sentence may say that a repository was archived and that its issues
# are therefore locked, so the order matters.
_SIGNS = (
    (Cause.ARCHIVED, "was archived so is read-only"),
    (Cause.LOCKED, "is locked"),
    (Cause.WORKFLOWS, "without `workflows` permission"),
    (Cause.ADDRESS, "has an ip allow list enabled"),
    (Cause.SAML, "saml enforcement"),
    # Seen in https://github.com/octokit/octokit.rb/pull/1307
    (Cause.SUSPENDED, "installation has been suspended"),
)
_GENERIC = frozenset({"", "forbidden", "not found", "resource not accessible by integration"})
"""Sentences that only say that the App lacks some permission."""


def cause_of(sentence: str) -> Cause | None:
    """Return the cause that GitHub's sentence names, None if it names no known one."""
    lowered = sentence.casefold()
    return next((cause for cause, sign in _SIGNS if sign in lowered), None)


def is_generic(sentence: str) -> bool:
    """Return whether GitHub's sentence says no more than the status 403 does."""
    return sentence.strip().rstrip(".").casefold() in _GENERIC
