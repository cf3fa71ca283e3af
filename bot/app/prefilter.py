"""Decide before a delivery is stored whether it certainly has no effect. No I/O.

The payload and app.yaml decide most of it. The prefilter caches what records say about a repository for moments, and
reads it again while deliveries of the repository arrive. In doubt a delivery gets a job, and the job's routing decides.
"""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from bot.app.texts import FEATURE_OFF, NO_HANDLER, NO_REPOSITORY, NOT_ACCEPTED, NOT_CONFIGURED
from bot.core.errors import PayloadError
from bot.core.events import Delivery, Repository
from bot.engine.processor import Routing
from bot.engine.sql.errors import DatabaseFailure
from bot.github.repositories.privacy import is_called_private
from bot.web.urgency import may_mention

if TYPE_CHECKING:
    from bot.config import RepositoryConfig
    from bot.plan.handler import Handler, Router

INSTALLATION_EVENTS = frozenset({"installation", "installation_repositories", "repository"})
"""After these, tokens may have other permissions or repositories. GitHub sends the first two to every App."""

CERTAIN_SECONDS = 2.0
"""Seconds for which a view of a repository counts as certain: deliveries this close may be routed in any order."""
REFRESH_SECONDS = 0.5
"""Seconds after which the records of a repository with deliveries are read again."""
YOUNG_SECONDS = 1.0
"""The age up to which a view is not read again: it stays certain until the round after the next."""
MOST_REFRESHED = 100
"""Repositories to read again in one round; now and then a delivery of any other gets a job that it does not need."""

PULL_REQUEST = "pull_request"


@dataclass(frozen=True, slots=True)
class RepositoryView:
    """The records of a repository: its settings in force (None if app.yaml lacks it), and whether it is private."""

    full_name: str
    config: RepositoryConfig | None
    called_private: bool
    at: float
    """When the records were read, by the clock of the prefilter."""


class WebhookPrefilter:
    """Decides about the deliveries of one process. `noted` are the events from which features store something."""

    def __init__(
        self,
        router: Router,
        mentions: Sequence[str],
        noted: Collection[str] = (),
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.clock = clock
        self._router = router
        self._mentions = mentions
        self._noted = INSTALLATION_EVENTS.union(noted)
        self._views: dict[int, RepositoryView] = {}
        self._changed: dict[int, float] = {}
        self._asked: dict[int, Repository] = {}
        self._has_asked = asyncio.Event()

    async def refresh_views(
        self, read: Callable[[Repository], Awaitable[RepositoryView]], *, pause: float = REFRESH_SECONDS
    ) -> None:
        """Read the records of repositories that send deliveries, until cancelled.

        Jobs do that too. But while jobs wait, views would expire, and deliveries that need no job would get one and
        wait as well.
        """
        while True:
            await self._has_asked.wait()
            await asyncio.sleep(pause)
            self._has_asked.clear()
            asked, self._asked = self._asked, {}
            ageing = [repository for repository in asked.values() if not self._is_young(repository)]
            for repository in ageing[-MOST_REFRESHED:]:
                try:
                    self.remember(repository, await read(repository))
                except DatabaseFailure:
                    break  # without the database nothing is certain

    def remember(self, repository: Repository, view: RepositoryView) -> None:
        """Cache a view, which was read after the delivery's facts about the repository were stored."""
        self._views[repository.id] = view

    def forget(self, repository: Repository) -> None:
        """Distrust the views of a repository read so far, and one that is being read: an effect has changed it."""
        self._changed[repository.id] = self.clock()

    def _is_young(self, repository: Repository) -> bool:
        view = self.view_of(repository)
        return view is not None and view.at > self.clock() - YOUNG_SECONDS

    def view_of(self, repository: Repository) -> RepositoryView | None:
        """Return a view of a repository of this name that was read a moment ago, None if there is none."""
        view = self._views.get(repository.id)
        if view is None or view.full_name != repository.full_name:
            return None
        since = max(self.clock() - CERTAIN_SECONDS, self._changed.get(repository.id, -math.inf))
        return view if view.at > since else None

    def why_ignored(self, delivery: Delivery) -> str:
        """Return why no handler wants a delivery and there is nothing to store; empty if that is not certain."""
        try:
            return self._reason(delivery)
        except PayloadError:
            return ""

    def _reason(self, delivery: Delivery) -> str:
        payload = delivery.payload
        if "." in delivery.event or delivery.event in self._noted:
            return ""
        wanting = self._router.wanting(delivery.event, delivery.action)
        if not payload.has("repository"):
            # `note` stores the head of a pull request, and reports there that the repository is missing.
            return "" if delivery.event == PULL_REQUEST else no_handler(delivery) if not wanting else NO_REPOSITORY
        repository = delivery.repository
        self._asked[repository.id] = repository
        self._has_asked.set()
        view = self.view_of(repository)
        if view is None or _is_to_be_noted(delivery, view):
            return ""
        return routed(delivery, wanting, view.config, self._mentions).reason


def _is_to_be_noted(delivery: Delivery, view: RepositoryView) -> bool:
    """Return whether `note` may store a part of a delivery: a pull request's head, or that a repository is private."""
    if view.config is None:
        return False
    is_private = is_called_private(delivery.payload.at("repository"))
    return delivery.event == PULL_REQUEST or (is_private and not view.called_private)


def no_handler(delivery: Delivery) -> str:
    """Return the reason for an event that no handler asks for."""
    return NO_HANDLER.format(event=f"{delivery.event}.{delivery.action}" if delivery.action else delivery.event)


def routed(
    delivery: Delivery, wanting: Sequence[Handler], config: RepositoryConfig | None, mentions: Sequence[str]
) -> Routing:
    """Return the handlers that want a delivery of a repository with these settings, or the reason why none does."""
    if not wanting:
        return Routing(reason=no_handler(delivery))
    if config is None:
        ending = tuple(handler.name for handler in wanting if handler.after_removal)
        return Routing(ending, "" if ending else NOT_CONFIGURED.format(repository=delivery.repository_name))
    on = [handler for handler in wanting if not handler.feature or handler.feature in config.features]
    # Several handlers need a mention, and the text may be long.
    has_mention = any(handler.needs_mention for handler in on) and may_mention(
        delivery.event, _body(delivery), mentions
    )
    names = tuple(
        handler.name
        for handler in on
        if (has_mention or not handler.needs_mention) and _accepts(handler, delivery, config)
    )
    return Routing(handlers=names, reason="" if names else NOT_ACCEPTED if on else FEATURE_OFF)


def _accepts(handler: Handler, delivery: Delivery, config: RepositoryConfig) -> bool:
    try:
        return handler.accepts is None or handler.accepts(delivery, config)
    except PayloadError:
        return True  # its plan fails at the same field, and its own job reports that


def _body(delivery: Delivery) -> Mapping[str, object]:
    raw: Mapping[str, object] = delivery.payload.raw
    return raw
