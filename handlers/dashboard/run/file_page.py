"""`/r/{owner}/{repo}/runs/…/files/{name}`: a run's log with the lines of failing tests, or another file of the run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Annotated

from aiohttp import hdrs, web
from markupsafe import Markup, escape
from nightjar_formats.model import BAD, FILE_NAME
from nightjar_formats.runs.artifacts import READABLE, TEXT
from nightjar_formats.runs.shared_outcomes import shared
from pydantic import BaseModel, Field, StringConstraints

from bot.aws.client import in_thread
from bot.core.errors import TryAgain
from bot.core.listing import counted
from bot.core.page_paths import query
from bot.core.untrusted.limits import OverLimit
from bot.core.untrusted.queue import Owner
from bot.results.store.commit import seen_tests
from bot.web.answers import AnswerPart
from bot.web.openapi import Operation, Parameter, ResponseSchema, problem
from bot.web.page_routes import ERRORS, NoQuery, Page, PageRequest, loaded, read_query, unavailable
from bot.web.pages import HEADERS, PAGES
from bot.web.repositories import PARAMETERS, repository_of
from bot.web.sign_in.viewers import keep_private
from handlers.dashboard.run.artifacts import (
    ArtifactReader,
    RunArtifact,
    SeenArtifact,
    download_type,
    seen_artifact,
)
from handlers.dashboard.run.log_text import MOST_TESTS, PAGE_LINES, LogPage, read_log
from handlers.dashboard.run.page import PARTS
from handlers.dashboard.shared import texts
from handlers.dashboard.shared.content import content_of_results

if TYPE_CHECKING:
    from handlers.dashboard.shared.wiring import DashboardParts

NAME_PART = Parameter("name", "The file's name.", {"type": "string", "pattern": f"^{FILE_NAME}$"})
FILE_HEADERS = {
    **HEADERS,
    # Even if a browser opens the file as a page, it runs no script, and has the rights of no site.
    "Content-Security-Policy": "sandbox; default-src 'none'; frame-ancestors 'none'",
    "Accept-Ranges": "none",
    "Cache-Control": "no-cache",
}
CHUNK = 1 << 18
_NAMED_ROW, _NAMED = ' class="named"', '<span id="named"></span>'
PATH = "/r/{owner}/{repo}/runs/{lab}/{target}/{sha}/{run_id}/files/{name}"
API_PATH = "/api/v1/repos/{owner}/{repo}/runs/{lab}/{target}/{sha}/{run_id}/files/{name}"


class FileQuery(BaseModel, extra="forbid"):
    """Which part of a log to show."""

    line: Annotated[int, Field(ge=1, le=10**9, description="Show the lines around this one.")] = 1
    test: Annotated[str, StringConstraints(max_length=4000)] = Field(
        default="", description="Show the first line that names this failing test, by its ID."
    )


class FileLine(BaseModel, extra="forbid"):
    """A line of a log, without control characters; a long one is cut."""

    number: int
    text: str
    tests: list[str] = Field(description="The failing tests that it names, by their IDs.")


class NamedTest(BaseModel, extra="forbid"):
    """A failing test, and the first line of the log that names it."""

    test: str
    line: int


class RunFilePage(BaseModel, extra="forbid"):
    """A file of a run. Text has lines, an image has none."""

    answer: list[AnswerPart]
    lab: str
    target: str
    sha: str
    run_id: str
    file: SeenArtifact
    lines: list[FileLine]
    total_lines: int
    previous: int | None = Field(description="The first line of the part before; null on the first one.")
    next: int | None = Field(description="The first line of the part after; null on the last one.")
    named_tests: list[NamedTest] = Field(
        description="The failing tests that the file names, in the order of their lines."
    )
    unnamed_tests: int = Field(description="Number of failing tests that it does not name.")
    stop_reason: str = Field(description="Why the rest of the file is not shown; empty if all of it can be.")

    def rows(self, test: str) -> Markup:
        """Return the lines as rows of a table; the first line of the file that names `test` has an element `named`.

        Code writes them, not a template, which would take most of the page's time for a thousand lines.
        """
        named_line = next((named.line for named in self.named_tests if named.test == test), 0)
        drawn = (
            f'<tr id="L{line.number}"{_NAMED_ROW if line.tests else ""}>'
            f'<td class="num">{_NAMED if line.number == named_line else ""}'
            f'<a href="#L{line.number}" aria-label="Line {line.number}">{line.number}</a></td>'
            f"<td>{escape(line.text)}</td></tr>\n"
            for line in self.lines
        )
        return Markup("".join(drawn))  # noqa: S704 (numbers, constants and escaped text)


def run_file_page(parts: DashboardParts) -> RunFileRoutes:
    """Return the routes of a run's file: its page, its JSON twin, and the file itself."""
    return RunFileRoutes(parts)


class RunFileRoutes:
    """The routes of a run's file."""

    def __init__(self, parts: DashboardParts) -> None:
        self._parts = parts
        self._reader = ArtifactReader(parts)

    def operations(self) -> Sequence[Operation]:
        """Return the routes."""
        page = Page(
            path=PATH,
            api_path=API_PATH,
            summary="The log or another file of a run",
            template="run_file.html",
            model=RunFilePage,
            parts=(*PARTS, NAME_PART),
            query=FileQuery,
            load=self._load,
            content=content_of_results(self._parts),
        )
        answers = {
            200: ResponseSchema("The file as it is stored", media_type="application/octet-stream"),
            410: problem("The file has expired, or the bucket no longer has it"),
            **ERRORS,
        }
        parameters = [*PARAMETERS, *PARTS, NAME_PART]
        summary = "The log or another file of a run, as it is stored"
        return [
            *page.operations(),
            *(
                Operation("GET", f"{path}/raw", summary, self._answer_raw, answers, parameters)
                for path in (PATH, API_PATH)
            ),
        ]

    async def _load(self, request: PageRequest) -> RunFilePage:
        artifact = await self._reader.find(request)
        file = seen_artifact(artifact.entry, artifact.run.key)
        if file.media_type not in READABLE:
            return _page_of(artifact, file, LogPage([], 1, 0, [], ""), [])
        tests = await request.pages.run(self._failing_tests, artifact)
        async with self._reader.fetched(artifact) as stored:
            try:
                log_page = await self._parts.results.pool.run(
                    # One owner never gets all processes, so results that arrive are not kept waiting.
                    Owner(artifact.run.key.repository.lower(), "files"),
                    self._parts.results.pool.limits.log,
                    read_log,
                    file.name,
                    tests,
                    request.query.line,
                    request.query.test,
                    files=[stored],
                )
            except OverLimit as error:
                log_page = LogPage([], 1, 0, [], texts.FILE_COST.format(name=file.name, why=error))
        return _page_of(artifact, file, log_page, tests, request.query.test)

    def _failing_tests(self, artifact: RunArtifact) -> list[str]:
        """Return the failing tests of the suite of a run at its commit; it blocks."""
        key, claims = artifact.run.key, artifact.run.claims
        seen = self._parts.results.store.read(seen_tests, key.about, claims.suite, key.sha) if claims else {}
        return sorted(shared(seen).which(lambda outcome: outcome.status in BAD))[:MOST_TESTS]

    async def _answer_raw(self, request: web.Request) -> web.StreamResponse:
        pages = request.app[PAGES]
        pages.admit(request)
        no_query = read_query(NoQuery, request)
        path = {name: text for name, text in request.match_info.items() if name not in ("owner", "repo")}
        artifact = await loaded(self._reader.find, PageRequest(repository_of(request), path, no_query, pages, request))
        entry = artifact.entry
        headers = {
            **FILE_HEADERS,
            "Content-Disposition": f'attachment; filename="{entry.name}"',
            hdrs.ETAG: f'"{entry.sha256}"',
        }
        if any(etag.value in (entry.sha256, "*") for etag in request.if_none_match or ()):
            return web.Response(status=304, headers=headers)
        response = web.StreamResponse(headers=headers)
        response.content_type, response.content_length = download_type(entry.name), entry.bytes
        if response.content_type == TEXT:
            response.charset = "utf-8"
        # Before it is sent, unlike that of other routes.
        keep_private(request, response)
        if request.method == hdrs.METH_HEAD:
            return response
        try:
            async with self._reader.fetched(artifact) as file:
                await response.prepare(request)
                while chunk := await in_thread(partial(file.read, CHUNK)):
                    await response.write(chunk)
                await response.write_eof()
        except TryAgain as error:
            raise unavailable(error) from error
        except ConnectionError:
            pass  # the reader has gone
        return response


def _page_of(
    artifact: RunArtifact, file: SeenArtifact, log_page: LogPage, tests: Sequence[str], test: str = ""
) -> RunFilePage:
    run = artifact.run.key
    tests_of_line: dict[int, list[str]] = {}
    first_lines: dict[str, int] = {}
    for mention in log_page.mentions:
        tests_of_line.setdefault(mention.line, []).append(mention.test)
        first_lines.setdefault(mention.test, mention.line)
    last_line = log_page.first_line + len(log_page.lines) - 1
    return RunFilePage(
        answer=[*_answer(file, log_page, tests, first_lines), *_not_named_answer(test, first_lines)],
        lab=run.lab,
        target=run.target,
        sha=run.sha,
        run_id=run.run_id,
        file=file,
        lines=[
            FileLine(number=number, text=line, tests=tests_of_line.get(number, []))
            for number, line in enumerate(log_page.lines, log_page.first_line)
        ],
        total_lines=log_page.total_lines,
        previous=log_page.first_line - PAGE_LINES if log_page.first_line > PAGE_LINES else None,
        next=last_line + 1 if last_line < log_page.total_lines else None,
        named_tests=[NamedTest(test=test, line=line) for test, line in first_lines.items()],
        unnamed_tests=len(tests) - len(first_lines),
        stop_reason=log_page.stop_reason,
    )


def _not_named_answer(test: str, first_lines: Mapping[str, int]) -> list[AnswerPart]:
    """Return the sentence about the test that a reader asks for, if the file does not name it."""
    return [AnswerPart(text=texts.NOT_NAMED.format(test=test))] if test and test not in first_lines else []


def _answer(
    file: SeenArtifact, log_page: LogPage, tests: Sequence[str], first_lines: Mapping[str, int]
) -> list[AnswerPart]:
    """Return the sentence that says what is in the file."""
    if file.media_type not in READABLE:
        return [AnswerPart(text=texts.FILE_IMAGE.format(name=file.name, bytes=file.bytes))]
    lines = AnswerPart(text=texts.FILE_LINES.format(name=file.name, lines=counted(log_page.total_lines, "line")))
    if not tests:
        return [lines, AnswerPart(text=texts.NO_TEST_FAILED)]
    if not first_lines:
        return [lines, AnswerPart(text=texts.NAMES_NO_TEST.format(tests=counted(len(tests), "failing test")))]
    line = min(first_lines.values())
    counts = texts.NAMES_TESTS.format(named=len(first_lines), tests=counted(len(tests), "failing test"))
    place = AnswerPart(text=texts.IN_LINE.format(line=line), href=f"{file.page}{query({'line': line})}#L{line}")
    return [lines, AnswerPart(text=counts), place, AnswerPart(text=".")]
