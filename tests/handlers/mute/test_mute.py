"""A person mutes a failing test: the page, the form, and the pull request with its item in `quarantine`."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from datetime import timedelta
from pathlib import Path
from urllib.parse import urlencode

import aiohttp
import pytest_asyncio

from bot.config.repository_file import parse_repository_file
from bot.config.shared import PATH
from handlers.results.config import QUARANTINE
from sandbox import PullRequest
from tests.conversations.town import BOT, DayClock, Town, town
from tests.handlers.dashboard.hostile import ATTACK, PageMarkup
from tests.settings import MODEL
from tests.visitor import SIGN_IN, Visitor, may_sign_in

TEST = "tests/test_conv.py::test_conv[2]"
TARGET = "example-lab/hexagon-v73"
CONFIG = """
repositories:
  octocat/compiler:
    %s
    results: {labs: {example-lab: {targets: [hexagon-v73, adreno]}}}
    quarantine:
    - {test: operators, owner: octocat, reason: Known, issue: "https://example.org/1", until: "2999-01-01"}
"""
OWN_FILE = """\
# Written by people.
quarantine:
  # Old boards.
  - {test: old, owner: octocat, reason: Known, issue: "https://example.org/1", until: "2999-01-01"}
"""
PAGE = f"/r/octocat/compiler/mute?{urlencode({'id': TEST, 'target': TARGET})}"
BUTTON = "/r/octocat/compiler/mute"
HOSTILE = f'{ATTACK} @hubot " until: "2999-01-01" #'


CLOCK = DayClock()


def day(ahead: int) -> str:
    return f"{CLOCK.day + timedelta(days=ahead)}"


def form(token: str, **fields: str) -> dict[str, str]:
    usual = {"test": TEST, "target": TARGET, "owner": "hubot", "reason": HOSTILE, "issue": "#12", "until": day(7)}
    return {"token": token, **usual, **fields}


def proposals(town: Town) -> list[PullRequest]:
    return [pull for pull in town.repo.pulls if pull.user.login == BOT]


@pytest_asyncio.fixture
async def place(tmp_path: Path) -> AsyncIterator[Town]:
    """Return a town where tests can be muted."""
    database, config, files = f"sqlite:///{tmp_path}/nightjar.db", CONFIG % "mute: true", {PATH: OWN_FILE}
    async with town(database, config=config, environment=SIGN_IN, files=files, now=CLOCK.now) as here:
        may_sign_in(here)
        await here.started()
        yield here


async def test_a_person_with_the_write_role_mutes_a_test(place: Town) -> None:
    async with aiohttp.ClientSession(cookie_jar=aiohttp.DummyCookieJar()) as client:
        stranger, reader, hubot, octocat = (Visitor(place.url, client) for _ in range(4))
        shown = await stranger.get(PAGE)
        assert "It is not muted." in shown.text
        assert 'name="reason"' not in shown.text
        assert "Sign in</a> to open the pull request" in shown.text
        assert f"test: &#34;{TEST}&#34;" in shown.text  # the lines to add by hand
        assert (await stranger.post(BUTTON, form(""))).status == 404

        await reader.sign_in("reader")
        refused = await reader.post(BUTTON, form((await reader.get(PAGE)).form_token))
        assert (refused.status, "has the role read" in refused.text) == (403, True)

        await hubot.sign_in("hubot")
        token = (await hubot.get(PAGE)).form_token
        assert (await hubot.post(BUTTON, form("forged"))).status == 403
        assert (await hubot.post(BUTTON, form(token), "https://evil.example")).status == 403
        for field, value, words in (
            ("until", day(-1), "a day from"),
            ("until", day(91), "a day from"),
            ("until", "soon", "a day, as in"),
            ("target", "example-lab/other", "one of the targets"),
            ("test", "tests/*", "not a pattern"),
            ("reason", "two\nlines", "in one line"),
            ("owner", "@octocat", "without an @"),
            ("issue", "javascript:alert(1)", "a web address"),
        ):
            answer = await hubot.post(BUTTON, form(token, **{field: value}))
            assert (field, answer.status, words in answer.text) == (field, 400, True)
        await place.quiet()
        assert proposals(place) == []

        pressed = await hubot.post(BUTTON, form(token))
        assert (pressed.status, pressed.location) == (303, PAGE)
        await place.quiet()
        (pull,) = proposals(place)
        file = place.repo.git.commits[pull.head_sha].files[PATH]
        head, _, rest = OWN_FILE.partition("  - {test: old")
        assert file.startswith(head)
        assert file.endswith(f"  - {{test: old{rest}")
        item = getattr(parse_repository_file(file.encode(), MODEL), QUARANTINE.name)[0]
        assert (item.test, item.targets, item.owner, item.reason) == (TEST, (TARGET,), "hubot", HOSTILE)
        assert (item.issue, item.until) == (f"{place.github.url}/octocat/compiler/issues/12", day(7))
        assert pull.base_ref == "main"
        assert "@hubot" not in (pull.body or "")
        assert f"hubot (ID {place.github.user('hubot').id})" in (pull.body or "")
        shown = await hubot.get(PAGE)
        assert f'/pull/{pull.number}">pull request #{pull.number}</a>. Merge it' in shown.text
        assert PageMarkup(shown.text, f"{place.github.url}/octocat/compiler/").faults == []

        # While it is open, nobody opens another one.
        await octocat.sign_in("octocat")
        await octocat.post(BUTTON, form((await octocat.get(PAGE)).form_token, until=day(9)))
        await place.quiet()
        assert proposals(place) == [pull]
        data = json.loads((await octocat.get(f"/api/v1/repos{PAGE.removeprefix('/r')}")).text)
        assert (data["last_request"]["pull"], data["last_request"]["login"], data["last_request"]["problem"]) == (
            pull.number,
            "octocat",
            "",
        )
        assert "already proposed" in "".join(part["text"] for part in data["answer"])

        # Another test has a pull request of its own. When one is merged, the other begins at the newest commit.
        await octocat.post(BUTTON, form((await octocat.get(PAGE)).form_token, test="other", reason="Old boards"))
        await place.quiet()
        (_, other) = proposals(place)

        # Once it is merged, both lists are in force.
        place.repo.push("main", {PATH: file}, by="octocat")
        await place.quiet()
        assert proposals(place) == [pull, other]
        assert place.repo.git.commits[other.head_sha].parents == (place.repo.branch("main"),)
        # Webhooks arrive in any order: one about an older push changes nothing.
        pushes = [push for push in place.github.webhooks.find("push") if push.body["ref"] == "refs/heads/main"]
        place.repo.push("main", {PATH: f"{file}# Newer\n"}, by="octocat")
        await place.quiet()
        place.github.webhooks.send_under_new_guid(pushes[-1])
        await place.quiet()
        assert place.repo.git.commits[other.head_sha].parents == (place.repo.branch("main"),)
        file_of_other = place.repo.git.commits[other.head_sha].files[PATH]
        muted = getattr(parse_repository_file(file_of_other.encode(), MODEL), QUARANTINE.name)
        assert [item.test for item in muted] == ["other", TEST, "old"]
        other.close("octocat")
        for test, until in ((TEST, day(7)), ("old", "2999-01-01"), ("operators", "2999-01-01")):
            query = urlencode({"id": test, "target": TARGET})
            assert f"It is muted until {until}" in (await stranger.get(f"/r/octocat/compiler/mute?{query}")).text

        # A closed proposal can be repeated, and what prevents it is on the page.
        place.repo.push("main", {PATH: "quarantine: [{}]\n"}, by="octocat")
        pull.close("octocat")
        await place.quiet()
        await octocat.post(BUTTON, form((await octocat.get(PAGE)).form_token))
        await place.quiet()
        assert "has errors, so the bot does not change it" in (await octocat.get(PAGE)).text
        place.repo.push("main", {PATH: "slow_tests: false\n"}, by="octocat")
        await place.quiet()
        await octocat.post(BUTTON, form((await octocat.get(PAGE)).form_token, reason="Old boards"))
        await place.quiet()
        second = proposals(place)[-1]
        assert place.repo.git.commits[second.head_sha].files[PATH].startswith("slow_tests: false\nquarantine:\n")
    assert [failure for failure in await place.failures() if failure] == []


async def test_where_mute_is_off_the_page_shows_the_lines(tmp_path: Path) -> None:
    database = f"sqlite:///{tmp_path}/nightjar.db"
    config = CONFIG % "repository_file: false"
    async with (
        town(database, config=config, environment=SIGN_IN) as here,
        aiohttp.ClientSession(cookie_jar=aiohttp.DummyCookieJar()) as client,
    ):
        may_sign_in(here)
        await here.quiet()
        hubot = Visitor(here.url, client)
        await hubot.sign_in("hubot")
        shown = await hubot.get(PAGE)
        assert "add these lines to <code>app.yaml</code>" in shown.text
        assert 'name="reason"' not in shown.text
        refused = await hubot.post(BUTTON, form(shown.form_token))
        assert (refused.status, "<code>mute</code> is off" in refused.text) == (403, True)
