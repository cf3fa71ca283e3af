"""CI builds the docs of a pull request, and the pull request links them."""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from bot.github.text import sticky
from sandbox import PullRequest
from tests.conversations.town import BOT, REPOSITORY, Town, town
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
async def here(tmp_path: Path) -> AsyncIterator[Town]:
    async with town(f"sqlite:///{tmp_path}/nightjar.db", config=CONFIG) as place:
        yield place


def built(here: Town, pull: PullRequest, build: int = 3, *, sha: str = "", **values: str | None) -> None:
    """Let CI report the state of a docs build."""
    url: str | None = f"https://ci.example.org/job/docs/job/PR-{pull.number}/{build}/display/redirect"
    status = {"context": "docs/pr-head", "state": "success", "target_url": url, **values}
    context, state = status["context"] or "", status["state"] or ""
    here.repo.set_status("octocat", sha or pull.head_sha, context, state, target_url=status["target_url"])


def section(pull: PullRequest) -> str:
    (comment,) = pull.comments_by(BOT)
    return sticky.sections_of(comment.body)["docs-link"]


async def cost(here: Town) -> Counter[str]:
    """Return the requests since the previous call."""
    await here.quiet()
    made = Counter(f"{r.method} {r.route}" for r in here.github.requests.of_installation)
    here.github.requests.clear()
    return made


async def opened(here: Town, *, fork: bool = False) -> PullRequest:
    """Open a pull request once the bot knows its own account."""
    pull = here.repo.open_pull_request("hubot", "Faster", fork=fork)
    await cost(here)
    return pull


async def test_the_docs_are_linked_when_ci_has_built_them(here: Town) -> None:
    pull = await opened(here)
    built(here, pull, state="pending")
    built(here, pull)
    await here.quiet()
    page = rendered(section(pull))
    assert f'<a href="https://docs.example.org/PR-{pull.number}/3/index.html">' in page
    assert f"<code>{pull.head_sha[:7]}</code>" in page
    status = here.repo.status(pull.head_sha, "docs/pr-head")
    assert status is not None
    assert f"{status.created_at:%Y-%m-%d}" in page


async def test_the_next_build_is_linked_in_place(here: Town) -> None:
    """TVM #11909: the edit went to an address that did not exist, so the link was never updated."""
    pull = await opened(here)
    built(here, pull)
    assert await cost(here) == {COMMENTS: 1, COMMENT: 1}
    here.github.clock.advance(seconds=5)
    built(here, pull, 4)
    assert await cost(here) == {COMMENTS: 1, EDIT: 1}
    assert f"/PR-{pull.number}/4/" in section(pull)


async def test_after_a_push_the_link_is_outdated_until_the_new_docs_are_built(here: Town) -> None:
    pull = await opened(here)
    built(here, pull)
    await here.quiet()
    old = pull.head_sha[:7]
    here.github.requests.clear()
    pull.push()
    assert await cost(here) == {COMMENTS: 1, EDIT: 1}
    said = section(pull)
    assert said.startswith(f"> **Out of date:** this is for `{old}`; the head is now `{pull.head_sha[:7]}`.\n")
    assert f"/PR-{pull.number}/3/" in said
    built(here, pull, 4)
    await here.quiet()
    assert "Out of date" not in section(pull)
    assert f"/PR-{pull.number}/4/" in section(pull)


async def test_a_push_to_a_pull_request_without_the_section_costs_nothing(here: Town) -> None:
    pull = await opened(here)
    pull.push()
    assert await cost(here) == {}


async def test_other_statuses_cost_nothing(here: Town) -> None:
    """TVM #12902, #12903: events for every status used 75 % of an organization's quota, so the feature was disabled."""
    pull = await opened(here)
    for number in range(20):
        built(here, pull, context=f"tests/{number}")
    for state in ("pending", "failure", "error"):
        built(here, pull, state=state)
    built(here, pull, target_url=None)
    built(here, pull, target_url="https://ci.example.org/job/docs/job/main/7/")
    assert await cost(here) == {}
    assert pull.comments == []


async def test_a_failed_build_changes_nothing(here: Town) -> None:
    pull = await opened(here)
    built(here, pull)
    await here.quiet()
    before = section(pull)
    built(here, pull, 4, state="failure")
    await here.quiet()
    assert section(pull) == before


async def test_docs_of_an_older_commit_do_not_replace_a_newer_link(here: Town) -> None:
    pull = await opened(here)
    old = pull.head_sha
    pull.push()
    await cost(here)
    built(here, pull, sha=old)
    assert await cost(here) == {PULL: 1}
    assert pull.comments == []


async def test_a_pull_request_number_in_an_address_counts_only_if_the_head_is_that_commit(here: Town) -> None:
    """Anybody who can set a status can put any pull request's number into its address."""
    pull, other = await opened(here), await opened(here)
    built(here, pull, sha=other.head_sha)
    await here.quiet()
    assert (pull.comments, other.comments) == ([], [])


async def test_an_address_without_a_pull_request_is_ignored(here: Town) -> None:
    pull = await opened(here)
    built(here, pull, target_url="https://ci.example.org/job/docs/job/PR-77/3/")
    await here.quiet()
    assert pull.comments == []
    assert await here.failures() == []


async def test_the_newest_build_is_linked_whatever_the_order_of_webhooks(here: Town) -> None:
    pull = await opened(here)
    here.github.webhooks.hold()
    built(here, pull, 3)
    here.github.clock.advance(seconds=5)
    built(here, pull, 4)
    here.github.webhooks.release(reversed)
    await here.quiet()
    assert f"/PR-{pull.number}/4/" in section(pull)


async def test_a_status_that_comes_before_the_push_that_made_its_commit_is_not_lost(here: Town) -> None:
    pull = await opened(here)
    here.github.webhooks.hold()
    pull.push()
    built(here, pull)
    others = [one for one in here.github.webhooks.held if one.event != "status"]
    asked = here.github.faults.pause("GET", PULL.removeprefix("GET "), when="after")
    here.github.webhooks.release(lambda held: [one for one in held if one.event == "status"])
    await asked.reached.wait()
    asked.resume()
    here.github.webhooks.held.extend(others)
    here.github.webhooks.release()
    await here.quiet()
    assert f"`{pull.head_sha[:7]}`" in section(pull)
    assert "Out of date" not in section(pull)


async def test_if_the_head_is_unknown_the_section_says_why_until_the_next_build(here: Town) -> None:
    pull = await opened(here)
    here.github.webhooks.lose("pull_request")
    pull.push()
    here.github.faults.add("GET", PULL.removeprefix("GET "), status=403, message="Not accessible", times=1)
    built(here, pull)
    await here.quiet()
    shown = f"`{pull.head_sha[:7]}`"
    assert section(pull).startswith(f"**Docs:** built for commit {shown}, but I can't link them: GitHub ")
    here.github.clock.advance(seconds=5)
    built(here, pull, 4)
    await here.quiet()
    assert f"/PR-{pull.number}/4/" in section(pull)


async def test_an_address_with_only_the_commit_also_works_for_a_fork(tmp_path: Path) -> None:
    """A status names no pull request, and GitHub's search by commit finds none from a fork."""
    async with town(f"sqlite:///{tmp_path}/nightjar.db", config=BY_COMMIT) as here:
        pull = await opened(here, fork=True)
        built(here, pull, target_url=None)
        assert await cost(here) == {COMMENTS: 1, COMMENT: 1}
        assert f"https://docs.example.org/{pull.head_sha}/" in section(pull)


async def test_the_comment_appears_as_soon_as_any_section_has_content(here: Town) -> None:
    """TVM #12695: the whole comment failed while CI had not yet reported docs and tests."""
    pull = here.repo.open_pull_request("hubot", "Faster", "cc @stranger")
    await here.quiet()
    (first,) = pull.comments_by(BOT)
    assert sticky.sections_of(first.body).keys() == {"cc-reviewers"}
    built(here, pull)
    await here.quiet()
    (second,) = pull.comments_by(BOT)
    assert second is first
    assert sticky.sections_of(second.body).keys() == {"cc-reviewers", "docs-link"}


async def test_if_the_comment_cannot_be_written_the_next_build_tries_again(here: Town) -> None:
    pull = await opened(here)
    here.github.faults.add("POST", COMMENT.removeprefix("POST "), status=403, times=1)
    built(here, pull)
    await here.quiet()
    assert pull.comments == []
    assert len(await here.failures()) == 1
    built(here, pull)
    await here.quiet()
    assert f"/PR-{pull.number}/3/" in section(pull)
