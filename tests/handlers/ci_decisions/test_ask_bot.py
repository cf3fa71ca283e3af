"""Asking a bot over HTTP: which failures are tried again, and what an unexpected answer comes to."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass, field

import pytest
from aiohttp import web
from nightjar_lab.ci.ask_bot import PAUSES, TIMEOUT, CannotAsk, ask_bot, pull_request_path
from nightjar_lab.ci.decision import CiDecision, run_everything
from nightjar_lab.ci.forms import decision_json
from nightjar_lab.cli.ci import DEADLINE

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
    token: str = ""
    tokens: list[str | None] = field(default_factory=list)

    async def answer(self, request: web.Request) -> web.Response:
        self.asked.append(request.path_qs)
        self.tokens.append(request.headers.get("Authorization"))
        failure = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        if failure is None:
            assert request.transport is not None
            request.transport.close()
            return web.Response()
        headers = {"Location": failure[1]} if failure[0] == 302 else {}
        return web.Response(status=failure[0], text=failure[1], headers=headers)

    async def ask(self, sha: str = "") -> CiDecision:
        path = pull_request_path("octocat/compiler", 42, sha)
        return await asyncio.to_thread(ask_bot, self.url, path, self.token, pauses=(0, 0))


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
        (None, "the bot did not answer (Remote end closed connection without response)", 3),
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
        await asyncio.to_thread(ask_bot, "http://127.0.0.1:9", PATH, pauses=(0,))


def test_the_bots_time_limit_is_below_the_callers_which_is_below_thirty_seconds() -> None:
    assert TIMEOUT > 2 * PATIENCE
    assert 2 * TIMEOUT + PAUSES[0] < DEADLINE < 30


async def test_the_token_is_sent_to_the_bot_and_not_to_the_address_of_a_redirect(server: Script) -> None:
    server.token = "sesame"
    server.answers = [(302, "/elsewhere"), (200, decision_json(DECISION))]
    assert await server.ask() == DECISION
    assert server.asked == [PATH, "/elsewhere"]
    assert server.tokens == ["Bearer sesame", None]
    with pytest.raises(CannotAsk, match=r"NIGHTJAR_TOKEN is not sent to http://ci\.example\.org"):
        ask_bot("http://ci.example.org", PATH, "sesame")
