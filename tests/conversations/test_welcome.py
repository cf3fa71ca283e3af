"""Somebody opens a pull request for the first time."""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from bot.github.text import sticky
from sandbox import PullRequest
from tests.conversations.town import BOT, REPOSITORY, Town
from tests.conversations.town import town as start_town

CONFIG = f"""
repositories:
  {REPOSITORY}:
    slow_tests: false
    repository_file: false
    teams: {{topics: {{hexagon: ["@octocat"]}}}}
    welcome: {{text: Hello and welcome.}}
"""
REPO = "/repos/{owner}/{repo}"
QUERY = "POST /graphql"
COMMENTS, COMMENT = f"GET {REPO}/issues/{{issue_number}}/comments", f"POST {REPO}/issues/{{issue_number}}/comments"
GREETING = "\N{WAVING HAND SIGN} Hello and welcome. Comment `@ci help` to see what I can do for you."


@pytest.fixture
async def town(tmp_path: Path) -> AsyncIterator[Town]:
    async with start_town(f"sqlite:///{tmp_path}/nightjar.db", config=CONFIG) as town:
        await town.bot.watch.checked.wait()
        town.repo.open_pull_request("reader", "cc", "cc @octocat")
        await cost(town)
        yield town


async def cost(town: Town) -> Counter[str]:
    """Return the requests since the previous call."""
    await town.quiet()
    counts = Counter(f"{r.method} {r.route}" for r in town.github.requests.of_installation)
    town.github.requests.clear()
    return counts


def sections(pull: PullRequest) -> dict[str, str]:
    (comment,) = pull.comments_by(BOT)
    return sticky.sections_of(comment.body)


@pytest.mark.parametrize("draft", [False, True])
async def test_a_newcomer_is_greeted_once(town: Town, draft: bool) -> None:
    """TVM #12824: if another section failed, nobody was greeted; otherwise everybody was, on every pull request.

    GitHub's webhooks say NONE for a newcomer.
    """
    pull = town.repo.open_pull_request("newcomer", "Faster", fork=True, draft=draft)
    assert await cost(town) == {QUERY: 1, COMMENTS: 1, COMMENT: 1}
    assert sections(pull) == {"welcome": GREETING}
    pull.push()
    pull.edit("newcomer", title="Much faster")
    pull.close("newcomer")
    pull.reopen("newcomer")
    assert await cost(town) == {}


async def test_a_greeting_that_a_maintainer_deletes_does_not_come_back(town: Town) -> None:
    pull = town.repo.open_pull_request("newcomer", "Faster", fork=True)
    await town.quiet()
    pull.delete_comment(pull.comments_by(BOT)[0], by="octocat")
    pull.push()
    await town.quiet()
    assert pull.comments == []


async def test_people_with_access_contributors_and_bots_are_not_greeted(town: Town) -> None:
    town.repo.open_pull_request("contributor", "First", fork=True).merge("octocat")
    await cost(town)
    for author in ("octocat", "hubot", "contributor", BOT):
        town.repo.open_pull_request(author, "Faster", fork=author == "contributor")
    assert await cost(town) == {}


async def test_the_greeting_comes_before_all_other_sections(town: Town) -> None:
    pull = town.repo.open_pull_request("newcomer", "[hexagon] Faster", "cc @stranger", fork=True)
    await town.quiet()
    assert list(sections(pull)) == ["welcome", "team-tags", "cc-reviewers"]
