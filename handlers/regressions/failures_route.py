"""`GET /api/v1/repos/{owner}/{repo}/results/failures`: which tests fail on a target, since when, and where else."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from aiohttp import web
from nightjar_formats.model import TARGET_NAME, TargetKey
from pydantic import BaseModel, ConfigDict, Field
from sqlalchemy.exc import OperationalError

from bot.core.errors import TryAgain
from bot.results.compare.quarantine import Quarantine, quarantine_at
from bot.results.settings.quarantine import QuarantinedTest
from bot.results.store.contexts import FailingTest
from bot.web.openapi import Operation, Parameter, ResponseSchema, problem
from bot.web.problems import Problem
from handlers.results import texts
from handlers.results.config import LAB_RESULTS, QUARANTINE, RENAMES
from handlers.results.route import IS_NAME, IS_SEGMENT, IS_TARGET, LIMIT, MOST, NAME, SEGMENT, problems, read_limit

if TYPE_CHECKING:
    from bot.config import Config
    from bot.results.compare.health import SuiteHealth
    from bot.results.store.store import ResultsStore


@dataclass(frozen=True, slots=True)
class FailuresOfTarget:
    """Failing tests of a target, how many fail in all, unreliable suites by name, and what is quarantined."""

    listed: list[FailingTest]
    total: int
    unreliable: dict[str, SuiteHealth]
    quarantine: Quarantine


class FailureListing:
    """Lists the tests that fail on targets of repositories that have labs."""

    def __init__(self, config: Config, store: ResultsStore, now: Callable[[], float] = time.time) -> None:
        self._known = {
            name.lower(): (name, repository)
            for name, repository in config.repositories.items()
            if repository.of(LAB_RESULTS) is not None
        }
        self._store = store
        self._now = now

    async def __call__(self, about: TargetKey, limit: int) -> FailuresOfTarget:
        """Return at most `limit` tests that fail in the newest nightly runs of a target, and how reliable those are.

        Raises LookupError where app.yaml has no results for the repository, `TryAgain` while the database is
        unavailable.
        """
        known = self._known.get(about.repository.lower())
        if known is None:
            raise LookupError(about.repository)
        repository, keys = known
        named = replace(about, repository=repository)
        try:
            listed, total = await asyncio.to_thread(
                self._store.timelines.failing, named, limit, keys.of(RENAMES).aliases
            )
            health = await asyncio.to_thread(self._store.failures.health, named)
        except OperationalError as error:
            raise TryAgain(texts.DATABASE_AWAY) from error
        quarantine, _ = quarantine_at(keys.of(QUARANTINE), named, self._now())
        unreliable = {suite: one for suite, one in health.items() if one.unreliable}
        return FailuresOfTarget(listed, total, unreliable, quarantine)


ListFailures = Callable[[TargetKey, int], Awaitable[FailuresOfTarget]]
"""Raises LookupError for a repository without results, `TryAgain`."""

PARAMETERS = (
    Parameter("owner", "Who owns the repository.", {"type": "string", "pattern": f"^{NAME}$"}),
    Parameter("repo", "The repository's name.", {"type": "string", "pattern": f"^{NAME}$"}),
    Parameter("lab", "The lab.", {"type": "string", "pattern": f"^{SEGMENT}$"}, "query"),
    Parameter("target", "The target.", {"type": "string", "pattern": f"^{TARGET_NAME}$"}, "query"),
    Parameter(
        "limit",
        "The most tests to list.",
        {"type": "integer", "minimum": 1, "maximum": MOST, "default": LIMIT},
        "query",
        required=False,
    ),
)
_QUERY = [parameter.name for parameter in PARAMETERS if parameter.place == "query"]


class ListedQuarantine(BaseModel):
    """Why app.yaml quarantines a test."""

    model_config = ConfigDict(extra="forbid")

    owner: str = Field(description="Who looks after it: a person or a team on GitHub.")
    reason: str
    issue: str = Field(description="The address where the failure is tracked.")
    until: str = Field(description="The last day (UTC).")


class ListedFailure(BaseModel):
    """A test that fails in the newest nightly run of its suite."""

    model_config = ConfigDict(extra="forbid")

    suite: str
    test: str
    sha: str = Field(description="The commit of that run.")
    since: str = Field(description="The first nightly commit with the failure since the test last passed.")
    last_passed_at: str | None = Field(description="The last nightly commit at which the test passed, null for none.")
    failed_before: int = Field(description="In how many of these runs the test failed or was flaky.")
    runs_before: int = Field(description="How many of the 40 nightly runs before `since` have the test.")
    also_on: list[str] = Field(description="Other targets with the failure in their newest run, as LAB/TARGET.")
    quarantine: ListedQuarantine | None = Field(description="The quarantine of the test; null if it has none.")


class UnreliableSuite(BaseModel):
    """A suite in which so many tests flip between passed and failed that single failures mean nothing."""

    model_config = ConfigDict(extra="forbid")

    suite: str
    since: str = Field(description="The nightly commit of the first unstable run.")
    sha: str = Field(description="The nightly commit of the newest unstable run.")
    flipped_back: int = Field(description="How many tests flipped back in that run.")
    tests: int = Field(description="How many tests passed or failed in it.")
    stable_runs: int = Field(description="Stable runs since then; after 5 in a row the results are reliable again.")


class FailureList(BaseModel):
    """Failing tests, by suite and name."""

    model_config = ConfigDict(extra="forbid")

    failures: list[ListedFailure]
    total: int = Field(description="Number of failing tests, including those not listed.")
    unreliable: list[UnreliableSuite] = Field(description="The suites whose results are unreliable.")


def failures_operation(list_failures: ListFailures) -> Operation:
    """Return the route."""

    async def answer(request: web.Request) -> web.Response:
        about, limit = _asked_failures(request)
        with problems():
            found = await list_failures(about, limit)
        body = _failure_list(found).model_dump_json().encode()
        return web.Response(body=body, content_type="application/json", headers={"Cache-Control": "no-store"})

    return Operation(
        method="GET",
        path="/api/v1/repos/{owner}/{repo}/results/failures",
        summary="Which tests fail in the newest nightly runs of a target",
        handler=answer,
        parameters=PARAMETERS,
        answers={
            200: ResponseSchema("The failing tests", FailureList),
            400: problem("A parameter is missing, unknown or invalid"),
            404: problem("The bot accepts no results for this repository"),
            503: problem("The results could not be read; Retry-After says when to ask again"),
        },
    )


def _asked_failures(request: web.Request) -> tuple[TargetKey, int]:
    """Return the requested target, and the most tests to list. Raises `Problem`."""
    path, query = request.match_info, request.query
    if not all(IS_NAME.fullmatch(name) for name in (path["owner"], path["repo"])):
        raise Problem(400, texts.BAD_REPOSITORY)
    for name in query:
        if name not in _QUERY or len(query.getall(name)) > 1:
            raise Problem(400, texts.UNKNOWN_PARAMETER.format(name=name[:40], known=f"{', '.join(_QUERY)}, each once"))
    for name, pattern in (("lab", IS_SEGMENT), ("target", IS_TARGET)):
        if not pattern.fullmatch(query.get(name, "")):
            raise Problem(400, texts.BAD_NAME.format(name=name))
    return TargetKey(f"{path['owner']}/{path['repo']}", query["lab"], query["target"]), read_limit(query.get("limit"))


def _failure_list(found: FailuresOfTarget) -> FailureList:
    unreliable = [
        UnreliableSuite(
            suite=suite,
            since=one.since,
            sha=one.newest.sha,
            flipped_back=one.newest.flipped_back,
            tests=one.newest.tests,
            stable_runs=one.stable,
        )
        for suite, one in sorted(found.unreliable.items())
        if one.newest is not None
    ]
    listed = [_listed_failure(one, found.quarantine.of(one.test)) for one in found.listed]
    return FailureList(failures=listed, total=found.total, unreliable=unreliable)


def _listed_failure(one: FailingTest, item: QuarantinedTest | None) -> ListedFailure:
    context = one.context
    quarantine = None
    if item is not None:
        quarantine = ListedQuarantine(owner=item.owner, reason=item.reason, issue=item.issue, until=item.until)
    return ListedFailure(
        suite=one.suite,
        test=one.test,
        sha=one.sha,
        since=context.since or one.sha,
        last_passed_at=context.good or None,
        failed_before=context.failed,
        runs_before=context.runs,
        also_on=list(context.also_on),
        quarantine=quarantine,
    )
