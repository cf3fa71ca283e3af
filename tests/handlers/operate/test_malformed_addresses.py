"""Whatever an address of the pages for operators says, they get an answer."""

from __future__ import annotations

import json

import pytest
import yarl

from tests.malformed import each_alone, read_routes
from tests.visitor import Visitor

pytestmark = pytest.mark.asyncio(loop_scope="session")


async def test_any_address_is_answered(visitor: Visitor) -> None:
    await visitor.sign_in("hubot", "/operate")
    document = json.loads((await visitor.get("/api/v1/openapi.json")).text)
    routes = [one for one in read_routes(document) if "/operate" in one[0]]
    assert len(routes) >= 6
    cookies = "; ".join(f"{name}={text}" for name, text in visitor.cookies.items())
    answers = {}
    for address in each_alone(routes, {}):
        url = yarl.URL(visitor.url + address, encoded=True)
        async with visitor.client.get(url, headers={"Cookie": cookies}, allow_redirects=False) as got:
            answers[address] = got.status
    assert {address: status for address, status in answers.items() if status not in (200, 400, 404)} == {}
    assert set(answers.values()) == {200, 400, 404}
