"""The state of a simulated GitHub, without HTTP."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from itertools import count
from typing import TypeVar

from sandbox.clock import Clock
from sandbox.events import Events
from sandbox.faults import Faults
from sandbox.journal import RequestJournal, Violation
from sandbox.manifests import Manifests
from sandbox.model.apps import DEFAULT_EVENTS, DEFAULT_PERMISSIONS, App, Tokens, new_private_key
from sandbox.model.repository import Repository
from sandbox.model.sign_in import SignIns
from sandbox.rate import RateLimits
from sandbox.users import By, Role, User
from sandbox.webhooks import Courier

T = TypeVar("T")
FIRST_ID = 1_000_001
ACTIONS_APP_ID = 15368

PATIENCE = 1200.0
"""Seconds to wait for what always comes: how soon depends on the machine."""


class GitHubState:
    """Accounts, repositories, Apps, tokens, and the records of requests and deliveries."""

    def __init__(self) -> None:
        self.url = "http://127.0.0.1:0"
        """The address of API and pages, without a slash at the end."""
        self.clock = Clock()
        self.lists_lag = 0.0
        self._ids = count(FIRST_ID)
        self._changed = asyncio.Event()
        self.users: dict[str, User] = {}
        self.repositories: dict[str, Repository] = {}
        self.moved: dict[str, Repository] = {}
        """Renamed repositories by their old names, in lower case."""
        self.apps: dict[int, App] = {}
        self.violations: list[Violation] = []
        self.requests = RequestJournal(self)
        self.rate_limits = RateLimits(self)
        self.faults = Faults()
        self.knows_merge_queues = True
        """Whether GraphQL has the fields of merge queues; Enterprise Server before 3.12 lacks them."""
        self.finds_apps_as_creators = True
        """Whether lists can be filtered by an App with `creator=`: on github.com they can, elsewhere perhaps not."""
        self.links_unchanged_pages = False
        """Whether a 304 has the `Link` header of its page; an ETag never depends on it."""
        self.tokens = Tokens(self.clock, self.apps)
        self.manifests = Manifests(self)
        self.sign_ins = SignIns(self.clock)
        self.webhooks = Courier(self)
        self.events = Events(self, self.webhooks, self.violations)
        self.actions_app = self._new_app(ACTIONS_APP_ID, "github-actions", self.user("github"))

    def new_id(self) -> int:
        """Return a unique number."""
        return next(self._ids)

    def user(self, account: By) -> User:
        """Return the account of a login, created if missing."""
        if isinstance(account, User):
            return account
        if account.lower() not in self.users:
            self.users[account.lower()] = User(self, self.new_id(), account, self.clock.now())
        return self.users[account.lower()]

    def create_app(
        self,
        slug: str = "nightjar",
        *,
        webhook_url: str | None = None,
        webhook_secret: str | None = None,
        permissions: Mapping[str, str] = DEFAULT_PERMISSIONS,
        events: Iterable[str] = DEFAULT_EVENTS,
        owner: str = "octocat",
    ) -> App:
        """Register an App. Its `id`, `private_key` (PEM) and `webhook_secret` are what the bot is given."""
        app = self._new_app(self.new_id(), slug, self.user(owner))
        app.webhook_url, app.webhook_secret = webhook_url, webhook_secret
        app.permissions, app.events = dict(permissions), tuple(events)
        self.apps[app.id] = app
        return app

    def create_repository(
        self,
        full_name: str,
        *,
        people: Mapping[str, Role] | None = None,
        teams: Mapping[str, Iterable[str]] | None = None,
        files: Mapping[str, str] | None = None,
        private: bool = False,
        default_branch: str = "main",
    ) -> Repository:
        """Create a repository with a first commit; its owner is an organization if `teams` are given."""
        owner, name = full_name.split("/")
        account = self.user(owner)
        if teams is not None:
            account.type = "Organization"
        repository = Repository(self, account, name)
        repository.private, repository.default_branch = private, default_branch
        self.repositories[full_name.lower()] = repository
        for login, role in (people or {}).items():
            repository.set_role(login, role)
        for slug, members in (teams or {}).items():
            repository.add_team(slug, *members)
        first = files if files is not None else {"README.md": f"# {name}\n"}
        repository.push(default_branch, first, by=owner, message="Begin")
        return repository

    def _new_app(self, number: int, slug: str, owner: User) -> App:
        bot = self.user(f"{slug}[bot]")
        bot.type, bot.app_id = "Bot", number
        return App(self, number, slug, owner, bot, self.clock.now(), new_private_key(slug))

    def listed(self, items: Sequence[T]) -> list[T]:
        """Return the items of a list, without those of the last `lists_lag` seconds."""
        newest = self.clock.now() - timedelta(seconds=self.lists_lag)
        return [item for item in items if not self.lists_lag or _made_at(item, newest) <= newest]

    def changed(self) -> None:
        """Wake everyone who waits in `until`."""
        self._changed.set()
        self._changed = asyncio.Event()

    async def until(self, condition: Callable[[], object], *, timeout: float = PATIENCE, what: str = "") -> None:  # noqa: ASYNC109 # tests name the deadline where they wait
        """Wait until a condition holds; check it after each change.

        Raises AssertionError with every conversation, failed request and delivery when the time is up.
        """
        try:
            async with asyncio.timeout(timeout):
                while not condition():
                    await self._changed.wait()
        except TimeoutError:
            raise AssertionError(
                f"{what or 'the condition'} did not hold in {timeout} s\n{self.transcript()}"
            ) from None

    async def delivered(self, *, timeout: float = PATIENCE) -> None:  # noqa: ASYNC109 # as above
        """Wait until every webhook that is not held back was sent and answered."""
        await self.until(lambda: self.webhooks.idle, timeout=timeout, what="delivery of all webhooks")

    def transcript(self) -> str:
        """Return all conversations, deliveries and requests that did not end well, for failure messages."""
        parts = [pull.conversation() for repo in self.repositories.values() for pull in repo.pulls]
        parts += [f"delivery {d.event}.{d.action} {d.guid}: {d.status}" for d in self.webhooks.deliveries[-15:]]
        parts += [f"request {r}" for r in self.requests.records[-15:]]
        parts += [f"violation {violation}" for violation in self.violations]
        return "\n".join(parts)


def _made_at(item: object, otherwise: datetime) -> datetime:
    made: datetime = getattr(item, "created_at", None) or otherwise
    return made
