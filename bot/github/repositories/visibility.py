"""Find out which repositories are public on GitHub, so that strangers may see their pages.

The lists of the installations say it of all repositories, with a request for each hundred. Once an answer is too old,
the page of one repository waits for a new one. A page that lists them all shows the last answers meanwhile
(docs/decisions/last-answers-about-visibility.md).
"""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import structlog

from bot.config.api import API
from bot.core.events import Payload
from bot.github.limits.ranks import Rank, ranked
from bot.github.pull_heads import repository_ids
from bot.github.repositories.known import KNOWN_REPOSITORY
from bot.github.repositories.privacy import CalledPrivate, is_called_public

if TYPE_CHECKING:
    from bot.config import Config
    from bot.engine.records import Records
    from bot.github.client import GitHub
    from bot.github.repositories.installed import InstalledRepositories, ListedInstallation

FRESH_SECONDS = 300.0
"""Seconds for which GitHub's answer is valid, even while GitHub is unavailable.

Refusing strangers for a while does less harm than showing them a private repository, and most of their pages need
GitHub anyway.
"""
LAST_SECONDS = 3600.0
"""Age up to which a page with all repositories shows the last answers while GitHub is asked again."""
PATIENCE = 3.0
"""Seconds that a visitor waits for GitHub's answer before the repository counts as private."""
AT_ONCE = 16
"""Simultaneous requests to GitHub."""
PAUSE = 60.0
"""Seconds from a failed request to the next."""
NOT_LISTED = 0, False
"""What is stored of a repository on which the App is not installed: no ID, and that it is not public."""

log: structlog.stdlib.BoundLogger = structlog.get_logger(__name__)


@dataclass(slots=True)
class _PublicAnswer:
    """GitHub's answer and the time of the request, by the given clock. `public` is None without an answer."""

    public: bool | None = None
    asked_at: float = 0.0
    not_before: float = 0.0
    request: asyncio.Task[None] | None = None


class PublicRepositories(NamedTuple):
    """The names of public repositories. It is `incomplete` if GitHub has not said of all others that they are not."""

    names: list[str]
    incomplete: bool


class Visibility:
    """Tells whether the repositories of app.yaml are public. Only GitHub's own answer makes one public.

    `github_for` returns a client for `owner/name`; `clock` counts seconds from any start. Each process has one.
    """

    def __init__(
        self,
        config: Config,
        github_for: Callable[[str], Awaitable[GitHub]],
        installed: InstalledRepositories,
        records: Records,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._config = config
        self._github_for = github_for
        self._installed = installed
        self._records = records
        self._called_private = CalledPrivate(records)
        self._clock = clock
        self._at_once = asyncio.Semaphore(AT_ONCE)
        # By name in lower case. Repositories whose visibility app.yaml sets are not among them.
        self._answers: dict[str, _PublicAnswer] = {}
        self._listing: asyncio.Task[None] | None = None
        self._listed_at: float | None = None
        self._due_at = -math.inf
        self._generation: int | None = None
        """That of `config.configured` when its repositories were added last."""
        self._add_known()
        self._news = asyncio.Condition()

    async def is_public(self, repository: str) -> bool:
        """Return whether anybody may read about `owner/name`. False for a repository that is unknown here or on GitHub.

        The time does not reveal which repositories exist: a name that is not public, known here or not, waits until
        GitHub has answered about each repository for the first time, and later not at all. Raises DatabaseFailure
        while the database is unavailable.
        """
        name = repository.lower()
        answer = self._answer_about(name)
        if answer is None:
            config = self._config.repository(repository)
            is_open = config is not None and config.of(API).private is False
            if not is_open:
                await self._wait_for_first_answers(_PublicAnswer())
            return is_open
        if not await self._is_current(name, answer):
            if answer.public is None:
                await self._wait_for_first_answers(answer)
            else:
                self._ask_unless_paused(name, answer)
                if answer.public and answer.request is not None:
                    # `wait_for` would cancel the request at the time-out, but others wait for the same answer.
                    await asyncio.wait({answer.request}, timeout=PATIENCE)
        # Check again: a payload may have called the repository private meanwhile.
        return answer.public is True and await self._is_current(name, answer)

    async def public_repositories(self) -> PublicRepositories:
        """Return the repositories of app.yaml that anybody may read about, in its order.

        While GitHub is asked again, that is what it last said, within `LAST_SECONDS`; older answers, and the first
        ones, are waited for. A repository that a payload has called private since is left out. Raises
        DatabaseFailure while the database is unavailable.
        """
        if self._add_known():
            self._due_at = -math.inf  # the last list is from before these repositories
        self.refresh()
        if self._listed_at is None or self._clock() - self._listed_at >= LAST_SECONDS:
            await self._wait_for_list(_PublicAnswer())
        oldest = self._clock() - (FRESH_SECONDS if self._listing is None else LAST_SECONDS)
        answers = list(self._answers.items())
        public = [name for name, answer in answers if answer.public and answer.asked_at > oldest]
        # Repositories of a pattern become known from the list.
        incomplete = (self._listed_at is None and bool(self._config.configured.owners)) or any(
            answer.public is None or (answer.public and answer.asked_at <= oldest) for _, answer in answers
        )
        shown = set(public) - (await self._called_private.deliveries_of(public)).keys()
        names = [
            name
            for name, settings in self._config.repositories.items()
            if name.lower() in shown or settings.of(API).private is False
        ]
        return PublicRepositories(names, incomplete)

    def refresh(self) -> None:
        """Begin to ask GitHub about all repositories, unless its answers are recent, or it failed a moment ago."""
        may_list = bool(self._answers or self._config.configured.owners)
        if may_list and self._listing is None and self._clock() >= self._due_at:
            self._listing = asyncio.create_task(self._list())

    def _add_known(self) -> bool:
        """Add the repositories that have become known since, which match a pattern; return whether there are any."""
        if self._generation == self._config.configured.generation:
            return False
        self._generation, before = self._config.configured.generation, len(self._answers)
        for name, settings in self._config.repositories.items():
            if settings.of(API).private is None:
                self._answers.setdefault(name.lower(), _PublicAnswer())
        return len(self._answers) > before

    def _answer_about(self, name: str) -> _PublicAnswer | None:
        """Return GitHub's answer about a repository; None if it is unknown here, or app.yaml sets its visibility."""
        settings = self._config.repository(name)
        if settings is None or settings.of(API).private is not None:
            return None
        if name not in self._answers:
            self._answers[name] = _PublicAnswer()
            self._due_at = -math.inf  # the last list is from before this repository
        return self._answers[name]

    async def _wait_for_first_answers(self, answer: _PublicAnswer) -> None:
        """Wait until GitHub has answered about all repositories without an answer, or has called this one public."""
        if any(first_answer.public is None for first_answer in self._answers.values()):
            self.refresh()
            await self._wait_for_list(answer)

    async def _wait_for_list(self, answer: _PublicAnswer) -> None:
        """Wait until GitHub has been asked about all repositories, or has called this one public."""
        try:
            async with asyncio.timeout(PATIENCE), self._news:
                await self._news.wait_for(lambda: self._listing is None or answer.public)
        except TimeoutError:
            pass

    async def _is_current(self, name: str, answer: _PublicAnswer) -> bool:
        """Return whether GitHub's answer is recent, and no later payload has called the repository private."""
        if answer.public is None or self._clock() - answer.asked_at >= FRESH_SECONDS:
            return False
        return answer.public is False or not await self._called_private.delivery_of(name)

    # One repository

    def _ask_unless_paused(self, name: str, answer: _PublicAnswer) -> None:
        if answer.request is None and self._clock() >= answer.not_before:
            answer.request = asyncio.create_task(self._ask(name, answer))

    async def _ask(self, name: str, answer: _PublicAnswer) -> None:
        async with self._at_once:
            await self._read(name, answer)

    async def _read(self, name: str, answer: _PublicAnswer) -> None:
        try:
            # Read both before the request: GitHub's answer may be older than a payload that arrives meanwhile, and must
            # not override it.
            private, asked_at = await self._called_private.deliveries_of([name]), self._clock()
            github = await self._github_for(name)
            description = Payload(await github.getitem("/repos/{+repo}", url_vars={"repo": name}), "repository")
            public = {name: (description.integer("id"), is_called_public(description))}
            await self._store(public, private, asked_at)
        except Exception as error:
            # A 404 is handled here too: the repository was deleted, or it is private and the App was removed from it.
            answer.public, answer.not_before = None, self._clock() + PAUSE
            log.warning("cannot find out whether a repository is public", repository=name, reason=str(error))
        finally:
            answer.request = None

    async def _store(
        self, described: Mapping[str, tuple[int, bool]], private: Mapping[str, str], asked_at: float
    ) -> None:
        """Store GitHub's answers: the ID of each repository, and whether it is public.

        `private` has the deliveries that called some of them private before GitHub was asked, at `asked_at`.
        """
        stored_ids = await repository_ids(self._records, described)
        for name, (number, public) in described.items():
            # The name may belong to another repository by now; its visibility says nothing about our records.
            is_ours = public and stored_ids.get(name) in (None, number)
            if is_ours and name in private:
                await self._called_private.take_back(name, private[name])
            answer = self._answers[name]
            if asked_at >= answer.asked_at:
                answer.public, answer.asked_at = is_ours, asked_at

    # All repositories

    async def _list(self) -> None:
        """Ask GitHub about all repositories."""
        asked_at = self._clock()
        self._due_at = asked_at + FRESH_SECONDS
        try:
            with ranked(Rank.SWEEP):
                await self._list_all(asked_at)
            self._listed_at = asked_at
        except Exception as error:
            self._note_failure(self._answers, error)
        finally:
            self._listing = None
            await self._tell_waiting()

    async def _list_all(self, asked_at: float) -> None:
        self._add_known()
        names = set(self._answers)  # others may become known meanwhile
        # Read before the requests, as for one repository.
        private = await self._called_private.deliveries_of(names)
        by_account = {
            installation.account.lower(): installation
            for installation in await self._installed.read_installations()
            if not installation.suspended
        }
        answered = await self._list_owners(by_account, {name: name for name in names}, private, asked_at)
        # The others may have been renamed, also below another owner.
        ids = await repository_ids(self._records, names - answered)
        known = await self._records.get_some([KNOWN_REPOSITORY.of(number) for number in ids.values()])
        current_names = {repository.id: repository.full_name.lower() for repository in known.values()}
        renamed = {current_names[number]: name for name, number in ids.items() if number in current_names}
        answered |= await self._list_owners(by_account, renamed, private, asked_at)
        await self._store(dict.fromkeys(names - answered, NOT_LISTED), private, asked_at)

    async def _list_owners(
        self,
        by_account: Mapping[str, ListedInstallation],
        names: Mapping[str, str],
        private: Mapping[str, str],
        asked_at: float,
    ) -> set[str]:
        """Ask about the repositories `names`: those of app.yaml by their names on GitHub, all in lower case.

        Return those that are answered, and those whose installation cannot be listed now.
        """

        async def list_one(installation: ListedInstallation, of_owner: Mapping[str, str]) -> set[str]:
            async with self._at_once:
                try:
                    listed = await self._installed.read_repositories(installation.id)
                except Exception as error:
                    self._note_failure(of_owner.values(), error)
                    return set(of_owner.values())
            described = {
                of_owner[current]: (repository.id, repository.public)
                for repository in listed
                if (current := repository.full_name.lower()) in of_owner
            }
            await self._store(described, private, asked_at)
            await self._tell_waiting()
            return set(described)

        by_owner: dict[str, dict[str, str]] = {}
        for current, name in names.items():
            by_owner.setdefault(current.partition("/")[0], {})[current] = name
        lists = [list_one(by_account[owner], names) for owner, names in by_owner.items() if owner in by_account]
        return set().union(*await asyncio.gather(*lists))

    def _note_failure(self, names: Iterable[str], error: Exception) -> None:
        """Forget expired answers about repositories, and ask again soon."""
        self._due_at = self._clock() + PAUSE
        for name in names:
            if self._clock() - self._answers[name].asked_at >= FRESH_SECONDS:
                self._answers[name].public = None
        log.warning("cannot find out which repositories are public", reason=str(error))

    async def _tell_waiting(self) -> None:
        async with self._news:
            self._news.notify_all()
