"""`GET /api/v1/repos/{owner}/{repo}/results/failures`: the tests that fail on a target, since when, and where else."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from aiohttp import web
from nightjar_formats.model import TARGET_NAME, TargetKey
from pydantic import BaseModel, Field
from sqlalchemy.exc import OperationalError

from bot.core.errors import TryAgain
from bot.github.repositories.in_force import config_in_force
from bot.results.compare.quarantine import Quarantine, quarantine_at
from bot.results.settings.quarantine import QuarantinedTest
from bot.results.store.failures.failures import FailingTest, failing_tests
from bot.results.store.history.health import unreliable_suites
from bot.web.openapi import Operation, Parameter, ResponseSchema, problem
from bot.web.problems import Problem
from handlers.results import texts
from handlers.results.config import LAB_RESULTS, QUARANTINE, RENAMES
from handlers.results.route import IS_NAME, IS_SEGMENT, IS_TARGET, LIMIT, MOST, NAME, SEGMENT, problems, read_limit

if TYPE_CHECKING:
    from bot.config import Config
    from bot.engine.records import Records
    from bot.results.compare.health import SuiteHealth
    from bot.results.store.store import ResultsStore


@dataclass(frozen=True, slots=True)
class FailuresOfTarget:
    """The listed failing tests of a target, their total, its unreliable suites by name, and its quarantine."""

    listed: list[FailingTest]
    total: int
    unreliable: dict[str, SuiteHealth]
    quarantine: Quarantine


class FailureListing:
    """Lists the tests that fail on targets of repositories that have labs."""

    def __init__(
        self, config: Config, store: ResultsStore, records: Records, clock: Callable[[], float] = time.time
    ) -> None:
        self._config = config
        self._store = store
        self._records = records
        self._clock = clock

    async def __call__(self, target: TargetKey, limit: int) -> FailuresOfTarget:
        """Return at most `limit` tests that fail in the newest nightly runs of a target, and its unreliable suites.

        Raises LookupError where app.yaml has no results for the repository, `TryAgain` while the database is
        unavailable.
        """
        name, config = self._config.configured.name_and_settings(target.repository) or ("", None)
        if config is None or config.of(LAB_RESULTS) is None:
            raise LookupError(target.repository)
        target = replace(target, repository=name)
        try:
            listed, total = await asyncio.to_thread(
                self._store.read, failing_tests, target, limit, config.of(RENAMES).aliases
            )
            unreliable = await asyncio.to_thread(self._store.read, unreliable_suites, target)
        except OperationalError as error:
            raise TryAgain(texts.DATABASE_AWAY) from error
        config = await config_in_force(self._config, self._records, name) or config
        quarantine, _ = quarantine_at(config.of(QUARANTINE), target, self._clock())
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


class ListedQuarantine(BaseModel, extra="forbid"):
    """Why app.yaml quarantines a test."""

    owner: str = Field(description="Who looks after it: a person or a team on GitHub.")
    reason: str
    issue: str = Field(description="The address where the failure is tracked.")
    until: str = Field(description="The last day (UTC).")


class ListedFailure(BaseModel, extra="forbid"):
    """A test that fails in the newest nightly run of its suite."""

    suite: str
    test: str
    sha: str = Field(description="The commit of that run.")
    since: str = Field(description="The first nightly commit with the failure since the test last passed.")
    last_passed_at: str | None = Field(description="The last nightly commit at which the test passed, null for none.")
    failed_before: int = Field(description="In how many of these runs the test failed or was flaky.")
    runs_before: int = Field(description="How many of the 40 nightly runs before `since` have the test.")
    also_on: list[str] = Field(description="Other targets with the failure in their newest run, as LAB/TARGET.")
    known_flaky: bool = Field(description="Whether the known flakiness of the test explains the failure.")
    quarantine: ListedQuarantine | None = Field(description="The quarantine of the test; null if it has none.")


class UnreliableSuite(BaseModel, extra="forbid"):
    """A suite in which so many tests flip between passed and failed that single failures mean nothing."""

    suite: str
    since: str = Field(description="The nightly commit of the first unstable run.")
    sha: str = Field(description="The nightly commit of the newest unstable run.")
    flipped_back: int = Field(description="How many tests flipped back in that run.")
    tests: int = Field(description="How many tests passed or failed in it.")
    stable_runs: int = Field(description="Stable runs since then; after 5 in a row the results are reliable again.")


class FailureList(BaseModel, extra="forbid"):
    """Failing tests, by suite and name."""

    failures: list[ListedFailure]
    total: int = Field(description="Number of failing tests, known failures and those not listed included.")
    unreliable: list[UnreliableSuite] = Field(description="The suites whose results are unreliable.")


def failures_operation(list_failures: ListFailures) -> Operation:
    """Return the route that lists failing tests; `list_failures` reads them."""

    async def answer(request: web.Request) -> web.Response:
        target, limit = _read_query(request)
        with problems():
            failures = await list_failures(target, limit)
        body = _failure_list(failures).model_dump_json().encode()
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


def _read_query(request: web.Request) -> tuple[TargetKey, int]:
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


def _failure_list(failures: FailuresOfTarget) -> FailureList:
    unreliable = [
        UnreliableSuite(
            suite=suite,
            since=health.since,
            sha=health.newest.sha,
            flipped_back=health.newest.flipped_back,
            tests=health.newest.tests,
            stable_runs=health.stable,
        )
        for suite, health in sorted(failures.unreliable.items())
        if health.newest is not None
    ]
    listed = [_listed_failure(failure, failures.quarantine.of(failure.test)) for failure in failures.listed]
    return FailureList(failures=listed, total=failures.total, unreliable=unreliable)


def _listed_failure(failure: FailingTest, quarantined: QuarantinedTest | None) -> ListedFailure:
    context = failure.context
    quarantine = None
    if quarantined is not None:
        quarantine = ListedQuarantine(
            owner=quarantined.owner, reason=quarantined.reason, issue=quarantined.issue, until=quarantined.until
        )
    return ListedFailure(
        suite=failure.suite,
        test=failure.test,
        sha=failure.sha,
        since=context.since or failure.sha,
        last_passed_at=context.good or None,
        failed_before=context.failed,
        runs_before=context.runs,
        also_on=list(context.also_on),
        known_flaky=failure.known_flaky,
        quarantine=quarantine,
    )
