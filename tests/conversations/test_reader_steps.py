"""What a page suggests to do next is for the role of its reader; a cached page is for readers without a role."""

from __future__ import annotations

import json
from datetime import timedelta
from pathlib import Path

import aiohttp

from tests.conversations.town import DayClock, Town, town
from tests.visitor import SIGN_IN, Visitor, asked_of, may_sign_in

CLOCK = DayClock()
SOON, LATER = CLOCK.day + timedelta(days=3), CLOCK.day + timedelta(days=60)
CONFIG = f"""
operators: ["@hubot"]
repositories:
  octocat/compiler:
    results: {{labs: {{example-lab: {{targets: [hexagon-v73]}}}}}}
    quarantine:
    - {{test: late, owner: octocat, reason: Known, issue: "https://example.org/1", until: "{LATER}"}}
    - {{test: soon, owner: octocat, reason: Known, issue: "https://example.org/1", until: "{SOON}"}}
"""
PAGE, API = "/r/octocat/compiler/labs/example-lab", "/api/v1/repos/octocat/compiler/labs/example-lab"
CONTACTS = "Maintainer: add contacts to the lab in app.yaml, so that people know whom to ask"


async def steps_of(reader: Visitor, path: str = API) -> list[str]:
    page = json.loads((await reader.get(path)).text)
    return ["".join(part["text"] for part in step) for step in page["next_steps"]]


async def test_each_reader_gets_the_next_steps_of_their_role(tmp_path: Path) -> None:
    environment = f"sqlite:///{tmp_path}/nightjar.db"
    async with (
        town(environment, config=CONFIG, environment=SIGN_IN, now=CLOCK.now) as place,
        aiohttp.ClientSession(cookie_jar=aiohttp.DummyCookieJar()) as client,
    ):
        may_sign_in(place)
        await place.started()
        anonymous, reader, maintainer, operator = (Visitor(place.url, client) for _ in range(4))
        # Whoever is not signed in reads for whom each line is.
        assert await steps_of(anonymous) == [CONTACTS]
        await reader.sign_in("reader")
        await maintainer.sign_in("octocat")
        await operator.sign_in("hubot")
        assert await steps_of(reader) == []
        ends = f"Maintainer: fix soon, or extend its quarantine, which ends on {SOON}"
        assert await steps_of(maintainer) == [ends, CONTACTS]
        assert await steps_of(operator) == ["Operator: see what needs a person", CONTACTS]
        # The pages of people with a role are not those that others get, whoever asked first.
        assert ends in (await maintainer.get(PAGE)).text.replace('<a href="/r/octocat/compiler/tests?id=soon">', "")
        assert "extend its quarantine" not in (await anonymous.get(PAGE)).text
        assert 'href="/operate">see what needs a person' in (await operator.get(PAGE)).text
        assert await steps_of(anonymous) == [CONTACTS]
        # GitHub's answer is cached, and it costs none of the bot's quota.
        await maintainer.get(PAGE)
        assert requests(place) == 2


def requests(place: Town) -> int:
    return asked_of(place.github, "/graphql")
