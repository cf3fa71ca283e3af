"""The last page of the set-up: it is complete only if a delivery has arrived and no check fails."""

from __future__ import annotations

from types import SimpleNamespace

import aiohttp
import pytest
from aiohttp import web

from bot.app.doctor.findings import Check, Finding
from bot.app.load import parse_config
from bot.app.setup.checks import add_commands
from bot.app.setup.shown import TEMPLATES, show
from bot.github.repositories.visibility import PublicRepositories
from bot.web.pages import Pages
from bot.web.rate_limit import RateLimit
from tests.serving import served


async def page_with(context: dict[str, object]) -> str:
    """Return the text of the page."""

    async def nobody(_: str) -> bool:
        return False

    async def no_repositories() -> PublicRepositories:
        return PublicRepositories([], incomplete=False)

    async def handler(request: web.Request) -> web.StreamResponse:
        return await show(request, "setup_checks.html", context)

    app = web.Application()
    app.router.add_get("/setup/checks", handler)
    variables = {"version": "1", "github": "https://github.com"}
    Pages(variables, RateLimit(600), nobody, no_repositories, [TEMPLATES]).join(app)
    async with served(app) as url, aiohttp.ClientSession() as browser, browser.get(f"{url}/setup/checks") as answer:
        return await answer.text()


@pytest.mark.parametrize("has_arrived", [True, False])
@pytest.mark.parametrize("fails", [True, False])
async def test_it_is_complete_only_without_a_failed_check(*, has_arrived: bool, fails: bool) -> None:
    finding = Finding(Check.HOOK, "the hook has another address", "correct it" if fails else "")
    text = await page_with(
        {
            "findings": [finding],
            "failed": int(fails),
            "arrived": SimpleNamespace(event="ping", received_at=0.0) if has_arrived else None,
            "hook": "",
            "repositories": [],
            "wait": not has_arrived,
            "labs": [],
            "env": "nightjar.env",
            "config": "app.yaml",
        }
    )
    assert ("Set-up is complete" in text) is (has_arrived and not fails)
    assert ("1 check fails" in text) is fails


def test_each_lab_has_the_command_that_gives_it_a_token() -> None:
    text = "repositories: {octocat/compiler: {results: {labs: {my-lab: {targets: [board, 'rpi-4@lab:1']}}}}}"
    assert add_commands(parse_config(text.encode(), "app.yaml")) == [
        "nightjar lab add my-lab --target board --target rpi-4@lab:1 --repo octocat/compiler"
    ]
