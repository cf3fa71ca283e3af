"""CI builds the docs of a pull request, and the pull request links them."""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from bot.github.text import sticky
from sandbox import PullRequest
from tests.conversations.town import BOT, REPOSITORY, Town
from tests.conversations.town import town as start_town
from tests.gfm import rendered

CONFIG = f"""
repositories:
  {REPOSITORY}:
    slow_tests: false
    repository_file: false
    docs: {{context: docs/pr-head, link: "https://docs.example.org/PR-{{number}}/{{build}}/index.html"}}
"""
BY_COMMIT = CONFIG.replace("PR-{number}/{build}/index.html", "{sha}/")
REPO = "/repos/{owner}/{repo}"
PULL = f"GET {REPO}/pulls/{{pull_number}}"
COMMENTS, COMMENT = f"GET {REPO}/issues/{{issue_number}}/comments", f"POST {REPO}/issues/{{issue_number}}/comments"
EDIT = f"PATCH {REPO}/issues/comments/{{comment_id}}"


@pytest.fixture
async def town(tmp_path: Path) -> AsyncIterator[Town]:
    async with start_town(f"sqlite:///{tmp_path}/nightjar.db", config=CONFIG) as town:
        yield town


def built(town: Town, pull: PullRequest, build: int = 3, *, sha: str = "", **values: str | None) -> None:
    """Let CI report the state of a docs build."""
    url: str | None = f"https://ci.example.org/job/docs/job/PR-{pull.number}/{build}/display/redirect"
    status = {"context": "docs/pr-head", "state": "success", "target_url": url, **values}
    context, state = status["context"] or "", status["state"] or ""
    town.repo.set_status("octocat", sha or pull.head_sha, context, state, target_url=status["target_url"])


def section(pull: PullRequest) -> str:
    (comment,) = pull.comments_by(BOT)
    return sticky.sections_of(comment.body)["docs-link"]


async def cost(town: Town) -> Counter[str]:
    """Return the requests since the previous call."""
    await town.quiet()
    requests = Counter(f"{r.method} {r.route}" for r in town.github.requests.of_installation)
    town.github.requests.clear()
    return requests


async def opened(town: Town, *, fork: bool = False) -> PullRequest:
    """Open a pull request once the bot knows its own account."""
    pull = town.repo.open_pull_request("hubot", "Faster", fork=fork)
    await cost(town)
    return pull


async def test_the_docs_are_linked_when_ci_has_built_them(town: Town) -> None:
    pull = await opened(town)
    built(town, pull, state="pending")
    built(town, pull)
    await town.quiet()
    page = rendered(section(pull))
    assert f'<a href="https://docs.example.org/PR-{pull.number}/3/index.html">' in page
    assert f"<code>{pull.head_sha[:7]}</code>" in page
    status = town.repo.status(pull.head_sha, "docs/pr-head")
    assert status is not None
    assert f"{status.created_at:%Y-%m-%d}" in page


async def test_the_next_build_is_linked_in_place(town: Town) -> None:
    """TVM #11909: the edit went to an address that did not exist, so the link was never updated."""
    pull = await opened(town)
    built(town, pull)
    assert await cost(town) == {COMMENTS: 1, COMMENT: 1}
    town.github.clock.advance(seconds=5)
    built(town, pull, 4)
    assert await cost(town) == {COMMENTS: 1, EDIT: 1}
    assert f"/PR-{pull.number}/4/" in section(pull)


async def test_after_a_push_the_link_is_outdated_until_the_new_docs_are_built(town: Town) -> None:
    pull = await opened(town)
    built(town, pull)
    await town.quiet()
    old = pull.head_sha[:7]
    town.github.requests.clear()
    pull.push()
    assert await cost(town) == {COMMENTS: 1, EDIT: 1}
    section_text = section(pull)
    assert section_text.startswith(f"> **Out of date:** this is for `{old}`; the head is now `{pull.head_sha[:7]}`.\n")
    assert f"/PR-{pull.number}/3/" in section_text
    built(town, pull, 4)
    await town.quiet()
    assert "Out of date" not in section(pull)
    assert f"/PR-{pull.number}/4/" in section(pull)


async def test_a_push_to_a_pull_request_without_the_section_costs_nothing(town: Town) -> None:
    pull = await opened(town)
    pull.push()
    assert await cost(town) == {}


async def test_other_statuses_cost_nothing(town: Town) -> None:
    """TVM #12902, #12903: events for every status used 75 % of an organization's quota, so the feature was disabled."""
    pull = await opened(town)
    for number in range(20):
        built(town, pull, context=f"tests/{number}")
    for state in ("pending", "failure", "error"):
        built(town, pull, state=state)
    built(town, pull, target_url=None)
    built(town, pull, target_url="https://ci.example.org/job/docs/job/main/7/")
    assert await cost(town) == {}
    assert pull.comments == []


async def test_a_failed_build_changes_nothing(town: Town) -> None:
    pull = await opened(town)
    built(town, pull)
    await town.quiet()
    linked_section = section(pull)
    built(town, pull, 4, state="failure")
    await town.quiet()
    assert section(pull) == linked_section


async def test_docs_of_an_older_commit_do_not_replace_a_newer_link(town: Town) -> None:
    pull = await opened(town)
    old = pull.head_sha
    pull.push()
    await cost(town)
    built(town, pull, sha=old)
    assert await cost(town) == {PULL: 1}
    assert pull.comments == []


async def test_a_pull_request_number_in_an_address_counts_only_if_the_head_is_that_commit(town: Town) -> None:
    """Anybody who can set a status can put any pull request's number into its address."""
    pull, other_pull = await opened(town), await opened(town)
    built(town, pull, sha=other_pull.head_sha)
    await town.quiet()
    assert (pull.comments, other_pull.comments) == ([], [])


async def test_an_address_without_a_pull_request_is_ignored(town: Town) -> None:
    pull = await opened(town)
    built(town, pull, target_url="https://ci.example.org/job/docs/job/PR-77/3/")
    await town.quiet()
    assert pull.comments == []
    assert await town.failures() == []


async def test_the_newest_build_is_linked_whatever_the_order_of_webhooks(town: Town) -> None:
    pull = await opened(town)
    town.github.webhooks.hold()
    built(town, pull, 3)
    town.github.clock.advance(seconds=5)
    built(town, pull, 4)
    town.github.webhooks.release(reversed)
    await town.quiet()
    assert f"/PR-{pull.number}/4/" in section(pull)


async def test_a_status_that_comes_before_the_push_that_made_its_commit_is_not_lost(town: Town) -> None:
    pull = await opened(town)
    town.github.webhooks.hold()
    pull.push()
    built(town, pull)
    other_deliveries = [delivery for delivery in town.github.webhooks.held if delivery.event != "status"]
    paused_request = town.github.faults.pause("GET", PULL.removeprefix("GET "), when="after")
    town.github.webhooks.release(lambda held: [delivery for delivery in held if delivery.event == "status"])
    await paused_request.reached.wait()
    paused_request.resume()
    town.github.webhooks.held.extend(other_deliveries)
    town.github.webhooks.release()
    await town.quiet()
    assert f"`{pull.head_sha[:7]}`" in section(pull)
    assert "Out of date" not in section(pull)


async def test_if_the_head_is_unknown_the_section_says_why_until_the_next_build(town: Town) -> None:
    pull = await opened(town)
    town.github.webhooks.lose("pull_request")
    pull.push()
    town.github.faults.add("GET", PULL.removeprefix("GET "), status=403, message="Not accessible", times=1)
    built(town, pull)
    await town.quiet()
    short_sha = f"`{pull.head_sha[:7]}`"
    assert section(pull).startswith(f"**Docs:** built for commit {short_sha}, but I can't link them: GitHub ")
    town.github.clock.advance(seconds=5)
    built(town, pull, 4)
    await town.quiet()
    assert f"/PR-{pull.number}/4/" in section(pull)


async def test_an_address_with_only_the_commit_also_works_for_a_fork(tmp_path: Path) -> None:
    """A status names no pull request, and GitHub's search by commit finds none from a fork."""
    async with start_town(f"sqlite:///{tmp_path}/nightjar.db", config=BY_COMMIT) as town:
        pull = await opened(town, fork=True)
        built(town, pull, target_url=None)
        assert await cost(town) == {COMMENTS: 1, COMMENT: 1}
        assert f"https://docs.example.org/{pull.head_sha}/" in section(pull)


async def test_the_comment_appears_as_soon_as_any_section_has_content(town: Town) -> None:
    """TVM #12695: the whole comment failed while CI had not yet reported docs and tests."""
    pull = town.repo.open_pull_request("hubot", "Faster", "cc @stranger")
    await town.quiet()
    (first,) = pull.comments_by(BOT)
    assert sticky.sections_of(first.body).keys() == {"cc-reviewers"}
    built(town, pull)
    await town.quiet()
    (second,) = pull.comments_by(BOT)
    assert second is first
    assert sticky.sections_of(second.body).keys() == {"cc-reviewers", "docs-link"}


async def test_if_the_comment_cannot_be_written_the_next_build_tries_again(town: Town) -> None:
    pull = await opened(town)
    town.github.faults.add("POST", COMMENT.removeprefix("POST "), status=403, times=1)
    built(town, pull)
    await town.quiet()
    assert pull.comments == []
    assert len(await town.failures()) == 1
    built(town, pull)
    await town.quiet()
    assert f"/PR-{pull.number}/3/" in section(pull)
