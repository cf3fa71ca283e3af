"""Conditional requests: an answer that GitHub confirms with a 304 is reused, but only by the same installation."""

from __future__ import annotations

import pytest

from bot.github.app import GitHubApp
from bot.github.client import GitHub
from bot.github.errors import Answer
from bot.github.transport.cache import AnswerCache, revalidated
from tests.github.scripted import Say, ScriptedGitHub
from tests.github.support import Seen, client_of, quota

PATH = "/repos/octocat/compiler/pulls/1"
FRESH = Say(body={"state": "open"}, headers={"etag": 'W/"abc"', **quota(4000)})
SAME = Say(304, headers={"etag": 'W/"abc"', **quota(3999)})


async def test_a_304_gives_the_previous_answer(scripted: ScriptedGitHub, gh: GitHub, seen: Seen) -> None:
    scripted.will("GET", PATH, FRESH, SAME)
    first, second = await gh.getitem(PATH), await gh.getitem(PATH)
    assert first == second == {"state": "open"}
    assert [request.headers.get("if-none-match") for request in scripted.requests_for("GET", PATH)] == [None, 'W/"abc"']
    assert [remaining for _, _, remaining, _, _ in seen.quotas] == [4000, 3999]


async def test_a_callers_change_of_an_answer_does_not_affect_the_next_caller(
    scripted: ScriptedGitHub, gh: GitHub
) -> None:
    scripted.will("GET", PATH, FRESH, SAME)
    (await gh.getitem(PATH))["state"] = "spoilt"
    assert await gh.getitem(PATH) == {"state": "open"}


async def test_an_installation_never_sees_anothers_answer(scripted: ScriptedGitHub, scripted_app: GitHubApp) -> None:
    scripted.will("GET", PATH, FRESH)
    await client_of(scripted_app, 1).getitem(PATH)
    await client_of(scripted_app, 2).getitem(PATH)
    assert [request.headers.get("if-none-match") for request in scripted.requests_for("GET", PATH)] == [None, None]


async def test_another_form_of_the_same_address_is_another_answer(scripted: ScriptedGitHub, gh: GitHub) -> None:
    scripted.will("GET", PATH, FRESH)
    await gh.getitem(PATH)
    await gh.getitem(PATH, accept="application/vnd.github.diff")
    assert "if-none-match" not in scripted.requests_for("GET", PATH)[1].headers


async def test_a_changed_answer_replaces_the_previous_one(scripted: ScriptedGitHub, gh: GitHub) -> None:
    changed = Say(body={"state": "closed"}, headers={"etag": 'W/"def"'})
    scripted.will("GET", PATH, FRESH, changed, Say(304))
    assert [(await gh.getitem(PATH))["state"] for _ in range(3)] == ["open", "closed", "closed"]


async def test_a_list_is_followed_to_its_next_page_after_a_304(scripted: ScriptedGitHub, gh: GitHub) -> None:
    next_link = f'<{scripted.url}/second>; rel="next"'
    scripted.will("GET", "/first", Say(body=[1], headers={"etag": '"a"', "link": next_link}), Say(304))
    scripted.will("GET", "/second", Say(body=[2]))
    for _ in range(2):
        assert [item async for item in gh.getiter("/first")] == [1, 2]


def test_a_304_updates_the_quota_and_keeps_the_form_of_the_answer() -> None:
    stored = Answer(200, {"content-type": "application/json", "etag": "a", "link": "next"}, b"{}")
    answer = Answer(304, {"Content-Type": "text/html", "ETag": "b", "X-RateLimit-Remaining": "7"}, b"")
    answer_shown = revalidated(stored, answer)
    assert (answer_shown.status, answer_shown.body, answer_shown.headers["x-ratelimit-remaining"]) == (200, b"{}", "7")
    assert {name: answer_shown.headers[name] for name in stored.headers} == stored.headers


@pytest.mark.parametrize(
    ("answer", "stored"),
    [
        (Answer(200, {"etag": "a"}, b"x" * 100), True),
        (Answer(200, {}, b"x"), False),
        (Answer(404, {"etag": "a"}, b"x"), False),
        (Answer(200, {"etag": "a"}, b"x" * 100_000), False),
    ],
)
def test_only_a_success_with_an_etag_and_of_reasonable_size_is_cached(answer: Answer, stored: bool) -> None:
    cache = AnswerCache(max_bytes=100_000)
    cache.put(("42", "/", "json"), answer)
    assert (cache.get(("42", "/", "json")) is not None) == stored


def test_the_cache_stays_within_its_bytes_and_drops_the_least_recently_used() -> None:
    cache = AnswerCache(max_bytes=100_000)
    keys = [("42", f"/{number}", "json") for number in range(20)]
    for key in keys:
        cache.put(key, Answer(200, {"etag": "a"}, b"x" * 10_000))
        cache.get(keys[0])
    stored = [key for key in keys if cache.get(key) is not None]
    assert keys[0] in stored
    assert keys[1] not in stored
    assert len(stored) <= 9
