"""What somebody sees before and after signing in."""

from __future__ import annotations

import json
import re

import pytest

from tests.conversations.town import Town
from tests.result_statements import statements
from tests.visitor import Visitor, asked_of

pytestmark = pytest.mark.asyncio(loop_scope="session")

SECRET, MISSING = "/r/octocat/secret/nightly", "/r/octocat/missing/nightly"


def without_names(text: str) -> str:
    """Return a page without the names from its address and without the token of its form."""
    return re.sub(r'value="[^"]+"', "", text).replace("secret", "missing")


async def test_a_stranger_gets_the_same_for_a_private_repository_as_for_none_with_a_link_to_sign_in(
    visitor: Visitor,
) -> None:
    secret, missing = await visitor.get(SECRET), await visitor.get(MISSING)
    assert (secret.status, missing.status) == (404, 404)
    assert 'href="/login?next=%2Fr%2Foctocat%2Fsecret%2Fnightly"' in secret.text
    assert without_names(secret.text) == without_names(missing.text)
    assert {**secret.headers, "Date": "", "Content-Length": ""} == {
        **missing.headers,
        "Date": "",
        "Content-Length": "",
    }


async def test_a_reader_on_github_signs_in_and_continues_on_the_page(visitor: Visitor) -> None:
    back = await visitor.sign_in("hubot", SECRET)
    assert (back.status, back.location) == (303, SECRET)
    answer = await visitor.get(SECRET)
    assert answer.status == 200
    assert "@hubot" in answer.text
    assert (answer.headers["Cache-Control"], answer.headers["Vary"]) == ("private, no-store", "Cookie")
    assert "ETag" not in answer.headers


async def test_cookies_are_for_this_host_alone_and_no_script_reads_them(visitor: Visitor) -> None:
    back = await visitor.sign_in("hubot")
    (header,) = [cookie for cookie in back.set_cookies if cookie.startswith("__Host-nightjar-session=")]
    assert {part.strip() for part in header.split(";")[1:]} == {
        "HttpOnly",
        "Max-Age=28800",
        "Path=/",
        "SameSite=Lax",
        "Secure",
    }
    assert list(visitor.cookies) == ["__Host-nightjar-session"]


async def test_the_json_is_as_private_as_the_page(visitor: Visitor) -> None:
    path = "/api/v1/repos/octocat/{}/pulls/1"
    assert [(await visitor.get(path.format(name))).status for name in ("secret", "missing")] == [401, 401]
    await visitor.sign_in("reader")
    secret, missing = await visitor.get(path.format("secret")), await visitor.get(path.format("missing"))
    assert (secret.status, secret.text) == (404, missing.text)
    await visitor.sign_in("hubot")
    answer = await visitor.get("/api/v1/repos/octocat/secret/timers")
    assert (answer.status, answer.headers["Cache-Control"]) == (200, "private, no-store")
    assert answer.headers["Cross-Origin-Resource-Policy"] == "same-origin"


async def test_without_access_the_answer_is_the_same_as_for_a_missing_repository(visitor: Visitor) -> None:
    await visitor.sign_in("reader")
    secret, missing = await visitor.get(SECRET), await visitor.get(MISSING)
    assert (secret.status, missing.status) == (404, 404)
    assert without_names(secret.text) == without_names(missing.text)


async def test_each_name_costs_one_request_to_github_so_that_response_times_reveal_nothing(
    sign_in_town: Town, visitor: Visitor
) -> None:
    await visitor.sign_in("triager")
    for path in (SECRET, MISSING):
        earlier_count = asked_of(sign_in_town.github, "/graphql")
        await visitor.get(path)
        assert asked_of(sign_in_town.github, "/graphql") == earlier_count + 1
        await visitor.get(path)
        assert asked_of(sign_in_town.github, "/graphql") == earlier_count + 1  # the answer is cached


async def test_a_repository_that_the_bot_does_not_know_is_not_found_even_by_its_readers(visitor: Visitor) -> None:
    await visitor.sign_in("hubot")
    assert (await visitor.get("/r/octocat/elsewhere/nightly")).status == 404


async def test_the_overview_names_what_its_reader_may_see_and_asks_github_once(
    sign_in_town: Town, visitor: Visitor
) -> None:
    assert "octocat/secret" not in (await visitor.get("/")).text
    await visitor.sign_in("reader")
    assert "octocat/secret" not in (await visitor.get("/")).text
    await visitor.sign_in("hubot")
    earlier_count = asked_of(sign_in_town.github, "/graphql")
    answer = await visitor.get("/")
    assert "octocat/secret" in answer.text
    assert "octocat/hidden" in answer.text
    assert answer.headers["Cache-Control"] == "private, no-store"
    assert asked_of(sign_in_town.github, "/graphql") == earlier_count + 1
    twin = json.loads((await visitor.get("/api/v1/repos")).text)
    assert [listed["repository"] for listed in twin["repositories"]] == [
        "octocat/compiler",
        "octocat/secret",
        "octocat/hidden",
    ]


async def test_while_github_is_down_no_private_repository_is_shown_or_denied(
    sign_in_town: Town, visitor: Visitor
) -> None:
    await visitor.sign_in("octocat")
    sign_in_town.github.faults.add("POST", "/graphql", status=502, times=None)
    try:
        for path in (SECRET, MISSING):
            answer = await visitor.get(path)
            assert (answer.status, answer.headers["Retry-After"]) == (503, "30")
        overview = await visitor.get("/")
        assert overview.status == 200
        assert "octocat/secret" not in overview.text
        assert "We could not ask GitHub which private repositories you may see" in overview.text
    finally:
        sign_in_town.github.faults.clear()
    assert (await visitor.get(SECRET)).status == 200


async def test_a_token_that_github_has_revoked_ends_the_session(sign_in_town: Town, visitor: Visitor) -> None:
    await visitor.sign_in("hubot")
    sign_in_town.github.sign_ins.revoke(sign_in_town.github.sign_ins.issued[-1])
    assert (await visitor.get(SECRET)).status == 404
    assert "@hubot" not in (await visitor.get("/")).text


async def test_signing_out_ends_the_session_and_githubs_token(sign_in_town: Town, visitor: Visitor) -> None:
    await visitor.sign_in("hubot", SECRET)
    cookies, token = dict(visitor.cookies), sign_in_town.github.sign_ins.issued[-1]
    assert token in sign_in_town.github.sign_ins.valid
    answer = await visitor.post("/logout", {"token": (await visitor.get("/")).form_token})
    assert (answer.status, answer.location, visitor.cookies) == (303, "/", {})
    assert token not in sign_in_town.github.sign_ins.valid
    visitor.cookies = cookies
    assert (await visitor.get(SECRET)).status == 404


async def test_neither_the_token_nor_the_secret_of_a_session_is_in_the_database(
    sign_in_town: Town, visitor: Visitor
) -> None:
    await visitor.sign_in("hubot")
    secret = visitor.cookies["__Host-nightjar-session"].partition(".")[2]
    rows = await sign_in_town.bot.engine.database.connector.execute_query_all_async(
        "SELECT key, value FROM nightjar_records WHERE key LIKE 'session:%%'"
    )
    stored = str(rows)
    assert rows
    assert secret not in stored
    assert "ghu_" not in stored


async def test_readers_of_one_role_share_a_rendered_page_but_neither_names_nor_tokens(
    visitor: Visitor, second_visitor: Visitor
) -> None:
    path = "/r/octocat/compiler/flaky"
    strangers = (await visitor.get(path)).text
    await visitor.sign_in("hubot")
    await second_visitor.sign_in("reader")
    first = await visitor.get(path)
    with statements() as seen:
        second = await second_visitor.get(path)
    assert all("nightjar_revisions" in statement for statement in seen if statement != "BEGIN")
    assert "@hubot" in first.text
    assert "@reader" in second.text
    assert "hubot" not in second.text
    assert "reader" not in first.text
    assert first.form_token != second.form_token != (await second_visitor.get(path)).form_token
    shared = first.text.replace("hubot", "reader").replace(first.form_token, second.form_token)
    assert shared == second.text
    assert second.headers["Cache-Control"] == "private, no-store"
    assert (await second_visitor.post("/logout", {"token": second.form_token})).status == 303
    # The page of strangers stays theirs.
    assert (await second_visitor.get(path)).text == strangers


async def test_a_shared_page_of_a_private_repository_is_for_its_readers_alone(
    visitor: Visitor, second_visitor: Visitor
) -> None:
    path = "/r/octocat/secret/flaky"
    await visitor.sign_in("hubot")
    await second_visitor.sign_in("reader")
    assert (await visitor.get(path)).status == 200
    assert (await second_visitor.get(path)).status == 404
    assert (await visitor.get(path)).status == 200


async def test_a_shared_page_of_all_repositories_shows_those_that_the_reader_may_see(
    visitor: Visitor, second_visitor: Visitor
) -> None:
    stranger = (await visitor.get("/")).text
    await visitor.sign_in("hubot")
    await second_visitor.sign_in("reader")
    for _ in range(2):
        assert "octocat/secret" in (await visitor.get("/")).text
        assert "octocat/secret" not in (await second_visitor.get("/")).text
    assert "octocat/secret" not in stranger
    with statements() as seen:
        assert "@hubot" in (await visitor.get("/")).text
    assert all("nightjar_revisions" in statement for statement in seen if statement != "BEGIN")


async def test_private_repositories_that_one_request_found_are_not_shared_with_readers_who_found_none(
    sign_in_town: Town, visitor: Visitor, second_visitor: Visitor
) -> None:
    """GitHub answers while the page of hubot is made, but not before."""
    await visitor.sign_in("hubot")
    await second_visitor.sign_in("reader")
    for reader in (visitor, second_visitor):
        sign_in_town.github.faults.add("POST", "/graphql", status=502, times=1)
        shown = await reader.get("/?page=1&q=octocat")
        sign_in_town.github.faults.clear()
        assert "octocat/secret" not in shown.text
        assert "We could not ask GitHub which private repositories you may see" in shown.text


async def test_a_session_that_ends_while_a_page_is_made_neither_stores_the_page_nor_gets_one_of_others(
    sign_in_town: Town, visitor: Visitor, second_visitor: Visitor
) -> None:
    await second_visitor.sign_in("reader")
    for path in ("/r/octocat/compiler/slow", "/labs") * 2:
        await visitor.sign_in("hubot")
        sign_in_town.github.sign_ins.revoke(sign_in_town.github.sign_ins.issued[-1])
        shown = await visitor.get(path)
        assert shown.status == 200
        assert "Sign out" not in shown.text
        assert "@reader" in (await second_visitor.get(path)).text
