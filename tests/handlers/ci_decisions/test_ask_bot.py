"""Asking a bot over HTTP: which failures are tried again, and what an unexpected answer comes to."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import dataclass, field

import pytest
from aiohttp import web

from bot.cli.ci_decide import DEADLINE
from handlers.ci_decisions.ask_bot import PAUSES, TIMEOUT, CannotAsk, ask_bot, pull_request_path
from handlers.ci_decisions.decide import CiDecision, run_everything
from handlers.ci_decisions.forms import decision_json
from handlers.ci_decisions.service import PATIENCE
from tests.serving import served

SHA = "0d1a26e67d8f5eaf1f6ba5c57fc3c7d91ac0fd1c"
DECISION = run_everything("this is a test", SHA)


@dataclass
class Script:
    """A server that gives the scripted answers in order and repeats the last one; None closes the connection."""

    url: str = ""
    answers: list[tuple[int, str] | None] = field(default_factory=list)
    asked: list[str] = field(default_factory=list)

    async def answer(self, request: web.Request) -> web.Response:
        self.asked.append(request.path_qs)
        failure = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        if failure is None:
            assert request.transport is not None
            request.transport.close()
            return web.Response()
        return web.Response(status=failure[0], text=failure[1])

    async def ask(self, sha: str = "") -> CiDecision:
        return await ask_bot(self.url, pull_request_path("octocat/compiler", 42, sha), pauses=(0, 0))


@pytest.fixture
async def server() -> AsyncIterator[Script]:
    made = Script()
    application = web.Application()
    application.router.add_get("/{path:.*}", made.answer)
    async with served(application) as made.url:
        yield made


PATH = "/api/v1/repos/octocat/compiler/pulls/42/decision"
PROBLEM = '{"type": "about:blank", "title": "x", "status": 404, "detail": "There is no such pull request."}'


async def test_an_answer_is_requested_once(server: Script) -> None:
    server.answers = [(200, decision_json(DECISION))]
    assert await server.ask() == DECISION
    assert await server.ask(SHA) == DECISION
    assert server.asked == [PATH, f"{PATH}?sha={SHA}"]


async def test_a_transient_failure_is_tried_again(server: Script) -> None:
    server.answers = [(503, ""), None, (200, decision_json(DECISION))]
    assert await server.ask() == DECISION
    assert len(server.asked) == 3


@pytest.mark.parametrize(
    ("failure", "reason", "tries"),
    [
        ((404, PROBLEM), "the bot answered 404: There is no such pull request", 1),
        ((403, "<html>Log in</html>"), "the bot answered 403: no reason given", 1),
        ((400, "[]"), "the bot answered 400: no reason given", 1),
        ((503, PROBLEM), "the bot answered 503: There is no such pull request", 3),
        ((200, "<html>Log in</html>"), "the answer is not from the bot", 1),
        # The HTTP library itself tries a second time when the server closes a connection.
        (None, "the bot did not answer (ServerDisconnectedError)", 6),
    ],
)
async def test_the_reason_for_a_missing_answer_is_given(
    server: Script, failure: tuple[int, str] | None, reason: str, tries: int
) -> None:
    server.answers = [failure]
    with pytest.raises(CannotAsk) as caught:
        await server.ask()
    assert str(caught.value) == reason
    assert len(server.asked) == tries


async def test_if_nothing_listens_the_address_is_named(server: Script) -> None:
    with pytest.raises(CannotAsk, match=r"the bot did not answer \(no connection to 127\.0\.0\.1:9\)"):
        await ask_bot("http://127.0.0.1:9", PATH, pauses=(0,))


def test_the_bots_time_limit_is_below_the_callers_which_is_below_thirty_seconds() -> None:
    assert TIMEOUT.total is not None
    assert TIMEOUT.total > 2 * PATIENCE
    assert 2 * TIMEOUT.total + PAUSES[0] < DEADLINE < 30
