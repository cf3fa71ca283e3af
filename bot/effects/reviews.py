"""Ask people and teams to review a pull request: https://docs.github.com/en/rest/pulls/review-requests."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from bot.github.errors import is_unprocessable, message_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from bot.github.client import GitHub

REQUESTED = "/repos/{+repo}/pulls/{number}/requested_reviewers"

UNRESOLVED = "could not resolve to a node"
"""A part of GitHub's message about a team that the App cannot see (https://github.com/github/docs/issues/35057)."""
NO_MESSAGE = "refused"


def slug_of(team: str) -> str:
    """Return the name of a team without its organization."""
    return team.rpartition("/")[2]


@dataclass(frozen=True, slots=True)
class RefusedNames:
    """The refused names, and which of them are teams that the App cannot see."""

    names: tuple[str, ...] = ()
    hidden: frozenset[str] = frozenset()


async def request_reviews(
    github: GitHub, url_vars: dict[str, str], users: Sequence[str], teams: Sequence[str]
) -> RefusedNames:
    """Request all reviews at once; if GitHub refuses, request each separately. Return the refused names."""
    if not users and not teams:
        return RefusedNames()
    message = await _post_request(github, url_vars, users, teams)
    if message is None:
        return RefusedNames()
    answers = {(*users, *teams)[0]: message}
    if len(users) + len(teams) > 1:
        answers = {name: await _post_request(github, url_vars, [name], []) or "" for name in users}
        answers |= {name: await _post_request(github, url_vars, [], [name]) or "" for name in teams}
    refused = {name: message for name, message in answers.items() if message}
    hidden = frozenset(name for name in teams if UNRESOLVED in refused.get(name, "").casefold())
    return RefusedNames(tuple(refused), hidden)


async def _post_request(
    github: GitHub, url_vars: dict[str, str], users: Sequence[str], teams: Sequence[str]
) -> str | None:
    """Request reviews; return GitHub's message if it refuses, None if it accepts."""
    body: dict[str, Sequence[str]] = {}
    if users:
        body["reviewers"] = users
    if teams:
        body["team_reviewers"] = [slug_of(name) for name in teams]
    try:
        await github.post(REQUESTED, url_vars=url_vars, data=body)
    except Exception as error:
        if is_unprocessable(error):
            # Never empty: the caller takes an empty text for an acceptance.
            return message_of(error) or NO_MESSAGE
        raise
    return None
