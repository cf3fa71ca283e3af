"""Attacks on a sign-in, a session, or a form."""

from __future__ import annotations

from urllib.parse import parse_qs, urlsplit

import pytest
from aiohttp.test_utils import make_mocked_request
from yarl import URL

from bot.web.login import own_path
from bot.web.sign_in.cookies import OwnOrigin
from sandbox.model.sign_in import challenge_of
from tests.conversations.town import Town
from tests.visitor import Visitor

pytestmark = pytest.mark.asyncio(loop_scope="session")

SESSION = "__Host-nightjar-session"


async def test_a_stolen_code_does_not_work_in_another_browser(visitor: Visitor, second_visitor: Visitor) -> None:
    address = await visitor.agree(await visitor.begin(), "hubot")
    await second_visitor.begin()
    stolen = await second_visitor.get(address)
    assert stolen.status == 400
    assert SESSION not in second_visitor.cookies


async def test_an_attackers_code_signs_nobody_else_in(visitor: Visitor, second_visitor: Visitor) -> None:
    planted = await second_visitor.agree(await second_visitor.begin(), "reader")
    assert (await visitor.get(planted)).status == 400
    await visitor.begin()
    assert (await visitor.get(planted)).status == 400
    assert SESSION not in visitor.cookies


async def test_an_address_works_once(visitor: Visitor) -> None:
    begun_address = await visitor.begin()
    begun = dict(visitor.cookies)
    address = await visitor.agree(begun_address, "hubot")
    assert (await visitor.get(address)).status == 303
    assert (await visitor.get(address)).status == 400
    visitor.cookies = begun  # a browser that did not forget it: GitHub refuses the code
    second_answer = await visitor.get(address)
    assert (second_answer.status, SESSION in visitor.cookies) == (400, False)
    assert "GitHub did not accept the sign-in" in second_answer.text


@pytest.mark.parametrize("state", ["", "wrong", "A" * 43, "é"])
async def test_another_state_is_refused(visitor: Visitor, state: str) -> None:
    address = URL(await visitor.agree(await visitor.begin(), "hubot"))
    answer = await visitor.get(str(address.update_query(state=state)))
    assert (answer.status, SESSION in visitor.cookies) == (400, False)


async def test_a_changed_cookie_starts_no_session(visitor: Visitor) -> None:
    address = await visitor.agree(await visitor.begin("/help"), "hubot")
    (name,) = visitor.cookies
    for changed in (visitor.cookies[name].replace("help", "evil"), "x", "", "é", "." * 60):
        visitor.cookies = {name: changed}
        assert (await visitor.get(address)).status == 400


async def test_a_code_is_bound_to_a_verifier_that_never_reaches_the_browser(
    sign_in_town: Town, visitor: Visitor
) -> None:
    begun_address = await visitor.begin()
    assert begun_address.query["code_challenge_method"] == "S256"
    assert len(begun_address.query["code_challenge"]) == 43
    assert challenge_of(visitor.cookies["__Host-nightjar-sign-in"]) != begun_address.query["code_challenge"]
    code = parse_qs(urlsplit(await visitor.agree(begun_address, "hubot")).query)["code"][0]
    form = {
        "client_id": sign_in_town.app.client_id,
        "client_secret": sign_in_town.app.client_secret,
        "code": code,
        "redirect_uri": begun_address.query["redirect_uri"],
    }
    async with visitor.client.post(
        f"{sign_in_town.github.url}/login/oauth/access_token", data=form, headers={"Accept": "application/json"}
    ) as answer:
        assert (await answer.json())["error"] == "bad_verification_code"


async def test_a_planted_session_is_not_continued(visitor: Visitor, second_visitor: Visitor) -> None:
    await second_visitor.sign_in("reader")
    planted = second_visitor.cookies[SESSION]
    visitor.cookies = {SESSION: planted}
    await visitor.sign_in("hubot")
    assert visitor.cookies[SESSION] != planted
    answer = await second_visitor.get("/")
    assert "@hubot" not in answer.text
    assert "@reader" not in answer.text  # it ended when this browser signed in as somebody else


async def test_an_invented_session_belongs_to_nobody(visitor: Visitor) -> None:
    for made_up in (f"1.{'0' * 64}", f"1000001.{'0' * 64}", "1.x", "", "'; --", "é"):
        visitor.cookies = {SESSION: made_up}
        assert 'action="/logout"' not in (await visitor.get("/")).text


async def test_one_persons_session_does_not_open_as_anothers(visitor: Visitor) -> None:
    await visitor.sign_in("reader")
    number, _, secret = visitor.cookies[SESSION].partition(".")
    visitor.cookies[SESSION] = f"{int(number) - 1}.{secret}"
    assert 'action="/logout"' not in (await visitor.get("/")).text


@pytest.mark.parametrize(
    "evil",
    [
        "//evil.example",
        "/\\evil.example",
        "\\\\evil.example",
        "https://evil.example/",
        "https:evil.example",
        "javascript:alert(1)",
        "/\t/evil.example",
        "/\n/evil.example",
        " //evil.example",
        "/%0d%0aSet-Cookie:x=y\r\n",
        "evil",
        "",
        "/é",
        "/" + "a" * 5000,
        "/login?next=/",
        "/logout",
    ],
)
async def test_nobody_is_sent_elsewhere_after_signing_in(evil: str) -> None:
    assert own_path(evil) == "/"


async def test_a_person_returns_to_the_page_that_they_wanted() -> None:
    path = "/r/octocat/compiler/tests?id=a%2Fb&target=example-lab%2Fhexagon-v73"
    assert own_path(path) == path


async def test_an_address_elsewhere_leads_to_the_home_page(visitor: Visitor) -> None:
    assert (await visitor.sign_in("hubot", "//evil.example")).location == "/"


async def test_another_sites_form_signs_nobody_out(visitor: Visitor, second_visitor: Visitor) -> None:
    await visitor.sign_in("hubot")
    await second_visitor.sign_in("reader")
    own_token, anothers = (await visitor.get("/")).form_token, (await second_visitor.get("/")).form_token
    forged = [
        ({}, ""),
        ({"token": anothers}, ""),
        ({"token": own_token[:-1]}, ""),
        ({"token": "é"}, ""),
        ({"token": own_token}, "https://evil.example"),
        ({"token": own_token}, "null"),
        ({"token": own_token}, None),
    ]
    for form, origin in forged:
        answer = await visitor.post("/logout", form, origin)
        assert (form, origin, answer.status) == (form, origin, 403)
    assert "@hubot" in (await visitor.get("/")).text


async def test_the_size_of_a_form_is_limited(visitor: Visitor) -> None:
    await visitor.sign_in("hubot")
    assert (await visitor.post("/logout", {"token": "x" * 20_000})).status == 413
    many = {f"f{number}": "" for number in range(60)}
    assert (await visitor.post("/logout", many)).status == 400
    assert (await visitor.post("/logout", {"a": "b"}, **{"Content-Type": "text/plain"})).status == 400


async def test_a_forged_host_does_not_affect_redirects(visitor: Visitor) -> None:
    answer = await visitor.get("/login", Host="evil.example")
    assert answer.status == 404
    assert "evil" not in str(answer.headers)
    assert "set" in answer.text


@pytest.mark.parametrize(
    ("public_url", "host", "origin"),
    [
        ("https://ci.example.org/nightjar", "evil.example", "https://ci.example.org"),
        ("https://ci.example.org", "127.0.0.1:8080", "https://ci.example.org"),
        ("https://ci.example.org:443", "ci.example.org", "https://ci.example.org"),  # as browsers send it
        ("https://ci.example.org:8443", "ci.example.org:8443", "https://ci.example.org:8443"),
        ("http://ci.example.org", "ci.example.org", None),  # no browser would store the cookies
        ("http://127.0.0.1:8080", "127.0.0.1:8080", "http://127.0.0.1:8080"),
        (None, "127.0.0.1:8080", "http://127.0.0.1:8080"),
        (None, "localhost:8080", "http://localhost:8080"),
        (None, "[::1]:8080", "http://[::1]:8080"),
        (None, "ci.example.org", None),
        (None, "127.0.0.1.evil.example", None),
        (None, "127.0.0.1:8080@evil.example", None),
        (None, "localhost:8080/evil", None),
    ],
)
async def test_only_public_url_and_this_machine_decide_where_people_are_sent(
    public_url: str | None, host: str, origin: str | None
) -> None:
    assert OwnOrigin(public_url).of(make_mocked_request("GET", "/login", {"Host": host})) == origin
