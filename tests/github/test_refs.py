"""The newest commits of a branch along first parents, however many commits each merge brought in."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import aiohttp
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from bot.github.app import GitHubApp
from bot.github.commits.refs import MOST_PAGES, first_parents
from bot.github.transport.pages import PER_PAGE
from sandbox import GitHubSandbox
from tests.handlers.driver import FULL_NAME


async def read(merges: Sequence[int], at_least: int, until: int | None) -> tuple[list[str], list[str], int]:
    """Merge side branches of so many commits, one after another; 0 is a commit of its own.

    Returns the first parents that were read, all of them, and the number of requests. `until` is a position.
    """
    github = GitHubSandbox()
    async with github.serve() as url, aiohttp.ClientSession() as session:
        app = github.create_app("nightjar")
        repository = github.create_repository(FULL_NAME)
        app.install(repository)
        head, author = repository.branch("main"), github.user("octocat")
        heads = [head]
        for count in merges:
            side = head
            for number in range(count):
                side = repository.git.commit((side,), {}, f"side {number}", author, github.clock.now()).sha
            github.clock.advance(seconds=1)
            parents = (head,) if side == head else (head, side)
            head = repository.git.commit(parents, {}, "on main", author, github.clock.now()).sha
            heads.insert(0, head)
        repository.move("refs/heads/main", head, "octocat")
        end = heads[until] if until is not None and until < len(heads) else None
        reader = await GitHubApp(session, api_url=url, app_id=app.id, private_key=app.private_key).reader(FULL_NAME)
        commits = await first_parents(reader, FULL_NAME, "main", at_least=at_least, until=end)
        requests = sum(request.path.endswith("/commits") for request in github.requests.records)
        return [commit.sha for commit in commits], heads, requests


@settings(max_examples=25)
@given(
    st.lists(st.sampled_from([0, 1, 7, 98, 99, 100, 130]), max_size=8),
    st.integers(1, 10),
    st.none() | st.integers(0, 9),
)
@example([0, 99], 10, None)
@example([0, 99, 99, 99], 3, None)
def test_the_first_parents_of_a_branch_are_read_whatever_merges_brought_in(
    merges: list[int], at_least: int, until: int | None
) -> None:
    shas, heads, _ = asyncio.run(read(merges, at_least, until))
    assert shas == heads[: len(shas)]
    assert len(shas) >= min(at_least, len(heads)) or (until is not None and heads[until] in shas)


@pytest.mark.parametrize(
    ("merges", "until", "requests"),
    [([0] * 30, None, 1), ([99, 0, 0], 2, 1), ([0, 99], 0, 1), ([0, 99], None, 2), ([100, 100], None, 3)],
)
async def test_a_page_is_requested_only_if_commits_are_missing(
    merges: list[int], until: int | None, requests: int
) -> None:
    assert (await read(merges, 100, until))[2] == requests


async def test_the_number_of_requests_is_limited() -> None:
    shas, heads, requests = await read([PER_PAGE] * (MOST_PAGES + 2), PER_PAGE, None)
    assert (shas, requests) == (heads[:MOST_PAGES], MOST_PAGES)
