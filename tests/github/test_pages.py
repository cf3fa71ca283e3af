"""Lists are read completely, or not at all."""

from __future__ import annotations

import pytest
from gidgethub import BadRequest

from bot.core.errors import AnswerError
from bot.github.client import GitHub
from bot.github.errors import TooManyPages, Unavailable
from bot.github.transport.pages import MOST_LINKS, items_of, with_page_size
from tests.github.scripted import Say, ScriptedGitHub
from tests.github.support import Seen, refused

LIST = "/repos/{owner}/{repo}/issues/{number}/comments"
VARS = {"owner": "octocat", "repo": "compiler", "number": "1"}
PATH = "/repos/octocat/compiler/issues/1/comments"


def pages_of(scripted: ScriptedGitHub, count: int, key: str | None = None) -> None:
    """Script `count` full pages of numbers."""
    answers = []
    for number in range(count):
        items = list(range(number * 100, number * 100 + 100))
        links = f'<{scripted.url}{PATH}?per_page=100&page=1>; rel="first"'
        if number + 1 < count:
            links = f'<{scripted.url}{PATH}?per_page=100&page={number + 2}>; rel="next", {links}'
        answers.append(Say(body={"total_count": count * 100, key: items} if key else items, headers={"link": links}))
    scripted.will("GET", PATH, *answers)


async def test_a_long_list_is_read_to_its_end_a_hundred_at_a_time(
    scripted: ScriptedGitHub, gh: GitHub, seen: Seen
) -> None:
    pages_of(scripted, 3)
    assert [item async for item in gh.getiter(LIST, VARS)] == list(range(300))
    requests = scripted.requests_for("GET", PATH)
    assert [request.query.get("page") for request in requests] == [None, "2", "3"]
    assert {request.query["per_page"] for request in requests} == {"100"}
    assert [request for request in seen.requests if request[0] == "GET"] == [("GET", LIST, 200)] * 3


@pytest.mark.parametrize("named", [{}, {"iterable_key": "check_runs"}])
async def test_a_list_inside_an_object_is_read_to_its_end(
    scripted: ScriptedGitHub, gh: GitHub, named: dict[str, str]
) -> None:
    pages_of(scripted, 2, "check_runs")
    assert [item async for item in gh.getiter(LIST, VARS, iterable_key=named.get("iterable_key"))] == list(range(200))


async def test_a_list_that_is_too_long_is_an_error_and_not_a_short_list(scripted: ScriptedGitHub, gh: GitHub) -> None:
    pages_of(scripted, 3)
    with pytest.raises(TooManyPages, match="more than 2 pages"):
        [item async for item in gh.getiter(LIST, VARS, max_pages=2)]
    assert len(scripted.requests_for("GET", PATH)) == 2


async def test_a_list_with_exactly_the_maximum_number_of_pages_is_read(scripted: ScriptedGitHub, gh: GitHub) -> None:
    pages_of(scripted, 2)
    assert len([item async for item in gh.getiter(LIST, VARS, max_pages=2)]) == 200


async def test_a_page_that_fails_in_the_middle_fails_the_list(scripted: ScriptedGitHub, gh: GitHub) -> None:
    pages_of(scripted, 2)
    first = Say(body=[1], headers={"link": f'<{scripted.url}{PATH}?page=2>; rel="next"'})
    scripted.will("GET", PATH, first, refused(403))
    with pytest.raises(BadRequest):
        [item async for item in gh.getiter(LIST, VARS)]


async def test_a_next_page_on_another_host_does_not_get_our_token(scripted: ScriptedGitHub, gh: GitHub) -> None:
    scripted.will("GET", PATH, Say(body=[1], headers={"link": '<http://elsewhere.example/next>; rel="next"'}))
    with pytest.raises(ValueError, match=r"elsewhere\.example is not the host of GITHUB_API_URL"):
        [item async for item in gh.getiter(LIST, VARS)]


def links(count: int) -> dict[str, str]:
    return {"link": ", ".join([f'<https://api.github.com/{n}>; rel="r{n}"' for n in range(count)])}


async def test_a_page_may_have_some_links(scripted: ScriptedGitHub, gh: GitHub) -> None:
    scripted.will("GET", PATH, Say(body=[1], headers=links(MOST_LINKS)))
    assert [item async for item in gh.getiter(LIST, VARS)] == [1]


@pytest.mark.parametrize("headers", [links(MOST_LINKS + 1), {"link": "<" * 8_000}, {"link": "<a" * 4_000}])
async def test_a_page_with_more_links_than_github_sends_is_rejected(
    scripted: ScriptedGitHub, gh: GitHub, headers: dict[str, str]
) -> None:
    """Each `<` makes gidgethub's pattern scan the rest of the header."""
    scripted.will("GET", PATH, Say(body=[1], headers=headers))
    with pytest.raises(AnswerError, match="more links than GitHub sends"):
        [item async for item in gh.getiter(LIST, VARS)]


async def test_a_header_that_is_too_long_is_rejected(scripted: ScriptedGitHub, gh: GitHub) -> None:
    scripted.will("GET", PATH, Say(body=[1], headers={"link": "x" * 100_000}))
    with pytest.raises(Unavailable):
        [item async for item in gh.getiter(LIST, VARS)]


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("/a", "/a?per_page=100"),
        ("/a?state=open", "/a?state=open&per_page=100"),
        ("/a?per_page=5", "/a?per_page=5"),
    ],
)
def test_the_largest_pages_are_requested(url: str, expected: str) -> None:
    assert with_page_size(url) == expected


def test_an_empty_answer_is_an_empty_list() -> None:
    assert items_of(None, "items", "/lists") == []


@pytest.mark.parametrize("page", [{"a": [1], "b": [2]}, {"message": "hello"}, "text", 5])
def test_a_page_without_one_clear_list_is_refused(page: object) -> None:
    with pytest.raises(AnswerError, match="iterable_key"):
        items_of(page, "items", "/lists")
