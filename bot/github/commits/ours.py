"""Distinguish the bot's own statuses, check runs and workflow runs from CI's: they say nothing about a commit.

A commit gets our statuses as soon as it is pushed, all of them green. Pushing a branch of ours starts workflow runs on
the same commit as those of the branch that it tracks. If these counted as CI, untested commits would pass. So all code
that reads the state of a commit asks this module.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Self

from bot.core.patterns import Pattern

if TYPE_CHECKING:
    from bot.config import RepositoryConfig
    from bot.core.events import Payload
    from bot.github.app import AppIdentity

_APP_PICTURE = Pattern(r"/in/([0-9]{1,18})(?:\?|$)")
"""As in `https://avatars.githubusercontent.com/in/15368`; people's avatars are below `/u/`."""
OF_PULL_REQUESTS = frozenset({"pull_request", "pull_request_target"})
"""Events whose runs belong to a pull request, whose branch, perhaps in a fork, may have the name of one of ours."""


@dataclass(frozen=True, slots=True)
class Ours:
    """Recognizes our own reports: by their creator, or by their names in app.yaml.

    `app_id` is the App's ID, `user_id` the ID of its account. `contexts` are in lower case, because GitHub ignores
    their case. `branches` are the branches that we push to.
    """

    app_id: int
    user_id: int
    contexts: frozenset[str] = frozenset()
    branches: frozenset[str] = frozenset()

    @classmethod
    def of(cls, identity: AppIdentity, config: RepositoryConfig) -> Self:
        """Return the marks of our own reports in a repository."""
        contexts = frozenset(map(str.casefold, config.own_contexts))
        return cls(identity.app_id, identity.user_id, contexts, config.own_branches)

    def on(self, branch: str) -> Self:
        """Return a copy that does not count runs on `branch` as ours, for callers that ask about `branch` itself."""
        return replace(self, branches=self.branches - {branch})

    def has_status(self, status: Payload) -> bool:
        """Return whether a status is ours: lists of statuses have the creator, a combined status only the avatar."""
        creator_id = status.integer("creator", "id") if status.has("creator", "id") else 0
        is_by_us = creator_id == self.user_id or app_of(status) == self.app_id
        return is_by_us or status.text("context").casefold() in self.contexts

    def has_check(self, app_id: int) -> bool:
        """Return whether a check run of the App with this ID is ours."""
        return app_id == self.app_id

    def has_run(self, run: Payload) -> bool:
        """Return whether a workflow run, from the API or a webhook, began because we pushed to our own branch."""
        heads = [run.integer(name, "id") for name in ("head_repository", "repository") if run.has(name, "id")]
        # A run for a fork's branch has two repositories, and its branch may have any name.
        is_from_repository = len(set(heads)) == 1
        is_of_pull = run.text("event") in OF_PULL_REQUESTS
        return is_from_repository and not is_of_pull and run.text("head_branch") in self.branches


def app_of(status: Payload) -> int:
    """Return the ID of the App that set a status, from its avatar; 0 for a person."""
    match = _APP_PICTURE.search(status.text("avatar_url"))
    return int(match[1]) if match else 0
