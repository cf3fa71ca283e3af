"""`GET /api/v1/repos/{owner}/{repo}/results/runs`: the state of a lab's runs."""

from __future__ import annotations

import math
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime

from aiohttp import web
from nightjar_formats.model import TARGET_NAME, RunKey
from pydantic import BaseModel, Field

from bot.core.errors import TryAgain
from bot.core.patterns import Pattern
from bot.results.state import RunState
from bot.web.openapi import Operation, Parameter, ResponseSchema, problem
from bot.web.problems import Problem
from handlers.results import texts
from handlers.results.listing import RunQuery, RunWithCheck

LIMIT, MOST = 50, 200
RETRY_SECONDS = 10

NAME = r"[A-Za-z0-9._-]{1,100}"
SEGMENT = r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}"
_SHA = r"[0-9a-f]{40}"
_BEFORE = rf"({SEGMENT})/({TARGET_NAME})/({_SHA})/({SEGMENT})"
IS_NAME, IS_SEGMENT, IS_TARGET, _IS_SHA, _IS_BEFORE = map(Pattern, (NAME, SEGMENT, TARGET_NAME, _SHA, _BEFORE))
_IS_LIMIT = Pattern("[1-9][0-9]{0,2}")
_STATES = [state.value for state in RunState]

ListRuns = Callable[[RunQuery], Awaitable[Sequence[RunWithCheck]]]
"""Returns the runs of a query.

Raises LookupError for a repository without results, ValueError for an unknown `before`, `TryAgain` while the database
is unavailable.
"""

PARAMETERS = (
    Parameter("owner", "Who owns the repository.", {"type": "string", "pattern": f"^{NAME}$"}),
    Parameter("repo", "The repository's name.", {"type": "string", "pattern": f"^{NAME}$"}),
    *(
        Parameter(name, description, {"type": "string", "pattern": f"^{pattern}$"}, "query", required=False)
        for name, description, pattern in (
            ("lab", "Only runs of this lab.", SEGMENT),
            ("target", "Only runs of this target.", TARGET_NAME),
            ("sha", "Only runs of this commit.", _SHA),
            ("before", "The `next` of an earlier page: only runs that are older.", _BEFORE),
        )
    ),
    Parameter("state", "Only runs in this state.", {"enum": _STATES}, "query", required=False),
    Parameter(
        "limit",
        "How many runs, at most.",
        {"type": "integer", "minimum": 1, "maximum": MOST, "default": LIMIT},
        "query",
        required=False,
    ),
)
_QUERY = [parameter.name for parameter in PARAMETERS if parameter.place == "query"]


class Shard(BaseModel, extra="forbid"):
    """Which part of its suite a run holds."""

    index: int
    total: int


class ListedRun(BaseModel, extra="forbid"):
    """A run, and its outcome. What its manifest says is null where that could not be read."""

    lab: str
    target: str
    sha: str
    run_id: str
    suite: str | None
    attempt: int | None
    shard: Shard | None
    state: RunState
    reason: str = Field(description="Why the run is not stored, or what was repaired in its files, as a sentence.")
    received_at: datetime = Field(description="When the bot was first notified of it.")
    check_run: str | None = Field(
        description="GitHub's address of the check run of this commit and target; null if it is not written yet."
    )


class RunPage(BaseModel, extra="forbid"):
    """Runs, newest first."""

    runs: list[ListedRun]
    next: str | None = Field(description="The `before` of the next page; null on the last one.")


def operation(list_runs: ListRuns) -> Operation:
    """Return the route that lists runs; `list_runs` reads them."""

    async def answer(request: web.Request) -> web.Response:
        return await _answer(request, list_runs)

    return Operation(
        method="GET",
        path="/api/v1/repos/{owner}/{repo}/results/runs",
        summary="The runs that hardware labs uploaded, and whether they were stored",
        handler=answer,
        parameters=PARAMETERS,
        answers={
            200: ResponseSchema("A page of runs", RunPage),
            400: problem("A parameter is unknown or invalid"),
            404: problem("The bot accepts no results for this repository"),
            503: problem("The results could not be read; Retry-After says when to ask again"),
        },
    )


@contextmanager
def problems() -> Iterator[None]:
    """Turn errors of reading results into problem documents."""
    try:
        yield
    except TryAgain as error:
        seconds = str(max(1, math.ceil(error.retry_in or RETRY_SECONDS)))
        raise Problem(503, texts.UNAVAILABLE, headers={"Retry-After": seconds}) from error
    except LookupError as error:
        if isinstance(error, KeyError | IndexError):  # a bug of ours, not an unknown repository
            raise
        raise Problem(404, texts.NO_RESULTS) from None
    except ValueError:
        raise Problem(400, texts.BAD_BEFORE) from None


async def _answer(request: web.Request, list_runs: ListRuns) -> web.Response:
    query, page_size = _read_query(request)
    with problems():
        runs = await list_runs(query)
    page = RunPage(
        runs=[_listed_run(run) for run in runs[:page_size]],
        next=_page_start(runs[page_size - 1].run.key) if len(runs) > page_size else None,
    )
    body = page.model_dump_json().encode()
    return web.Response(body=body, content_type="application/json", headers={"Cache-Control": "no-store"})


def _read_query(request: web.Request) -> tuple[RunQuery, int]:
    """Return the filters and the size of the page. Raises `Problem`.

    The limit of the query is one run more than the page, which shows whether another page follows.
    """
    path, query = request.match_info, request.query
    if not all(IS_NAME.fullmatch(name) for name in (path["owner"], path["repo"])):
        raise Problem(400, texts.BAD_REPOSITORY)
    # A misspelled filter would otherwise return all runs.
    for name in query:
        if name not in _QUERY or len(query.getall(name)) > 1:
            raise Problem(400, texts.UNKNOWN_PARAMETER.format(name=name[:40], known=f"{', '.join(_QUERY)}, each once"))
    repository = f"{path['owner']}/{path['repo']}"
    page_size = read_limit(query.get("limit"))
    state = query.get("state")
    if state is not None and state not in _STATES:
        raise Problem(400, texts.BAD_STATE.format(states=", ".join(_STATES)))
    for name, pattern in (("lab", IS_SEGMENT), ("target", IS_TARGET), ("sha", _IS_SHA)):
        if name in query and not pattern.fullmatch(query[name]):
            raise Problem(400, texts.BAD_SHA if name == "sha" else texts.BAD_NAME.format(name=name))
    run_query = RunQuery(
        repository,
        query.get("lab"),
        query.get("target"),
        query.get("sha"),
        RunState(state) if state else None,
        _read_before(repository, query.get("before")),
        page_size + 1,
    )
    return run_query, page_size


def read_limit(text: str | None) -> int:
    """Return the requested number of rows. Raises `Problem`."""
    if text is None:
        return LIMIT
    if not _IS_LIMIT.fullmatch(text) or int(text) > MOST:
        raise Problem(400, texts.BAD_LIMIT.format(most=MOST))
    return int(text)


def _read_before(repository: str, text: str | None) -> RunKey | None:
    """Read `LAB/TARGET/SHA/RUN`, the end of the previous page. Raises `Problem`."""
    if text is None:
        return None
    match = _IS_BEFORE.fullmatch(text)
    if match is None:
        raise Problem(400, texts.BAD_BEFORE)
    return RunKey(repository, *match.groups())


def _page_start(key: RunKey) -> str:
    return f"{key.lab}/{key.target}/{key.sha}/{key.run_id}"


def _listed_run(run_with_check: RunWithCheck) -> ListedRun:
    run = run_with_check.run
    key, claims = run.key, run.claims
    return ListedRun(
        lab=key.lab,
        target=key.target,
        sha=key.sha,
        run_id=key.run_id,
        suite=claims.suite if claims else None,
        attempt=claims.attempt if claims else None,
        shard=Shard(index=claims.shard_index, total=claims.shard_total) if claims else None,
        state=run.state,
        reason=run.reason,
        received_at=datetime.fromtimestamp(run.received_at, UTC),
        check_run=run_with_check.check_run or None,
    )
