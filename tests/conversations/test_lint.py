"""The check run `nightjar/lint`, as people see it on their pull requests."""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import pytest

from handlers.teams.records import TEAM_LIST
from sandbox import PullRequest
from sandbox.model.checks import CheckRun
from tests.conversations.town import REPOSITORY, Town
from tests.conversations.town import town as start_town

CONFIG = f"""
repositories:
  {REPOSITORY}:
    slow_tests: false
    repository_file: false
    cc_reviewers: false
    skip_ci: {{title_tag: skip ci, docs: []}}
    teams: {{issue: 1}}
    lint: {{tags: [tests]}}
"""
REPO = "/repos/{owner}/{repo}"
SCAN, WRITE = f"GET {REPO}/commits/{{ref}}/check-runs", f"POST {REPO}/check-runs"
CHANGE = f"PATCH {REPO}/check-runs/{{check_run_id}}"
ISSUE, COMMENTS = f"GET {REPO}/issues/{{issue_number}}", f"GET {REPO}/issues/{{issue_number}}/comments"
PULL = f"GET {REPO}/pulls/{{pull_number}}"


@pytest.fixture
async def town(tmp_path: Path) -> AsyncIterator[Town]:
    async with start_town(f"sqlite:///{tmp_path}/nightjar.db", config=CONFIG) as place:
        place.repo.open_issue("octocat", "Who follows what", "- hexagon: @octocat")
        place.repo.open_pull_request("reader", "First", "It is the first.")
        await cost(place)
        yield place


async def cost(town: Town) -> Counter[str]:
    """Return the requests about checks and lists since the previous call."""
    await town.quiet()
    requests = Counter(f"{request.method} {request.route}" for request in town.github.requests.of_installation)
    town.github.requests.clear()
    return Counter(
        {route: count for route, count in requests.items() if "/statuses/" not in route and "/status" not in route}
    )


def check(town: Town, pull: PullRequest) -> CheckRun:
    """Return the check run on the head."""
    (run,) = town.repo.check_runs(pull.head_sha, "nightjar/lint")
    return run


async def test_a_pull_request_without_problems_succeeds(town: Town) -> None:
    pull = town.repo.open_pull_request("hubot", "[Hexagon][skip ci][tests] Faster", "Saves a pass.\n\ncc @octocat")
    assert await cost(town) == {SCAN: 1, WRITE: 1}
    run = check(town, pull)
    assert (run.conclusion, run.title) == ("success", "No problems")


async def test_problems_are_reported_with_their_fix_and_do_not_fail_the_check(town: Town) -> None:
    pull = town.repo.open_pull_request("hubot", "[frob] Faster.", None, draft=True)
    await town.quiet()
    run = check(town, pull)
    assert (run.conclusion, run.title) == ("neutral", "3 problems")
    assert run.summary is not None
    assert "unknown tags: `frob`.** Known tags: `hexagon`, `skip ci`, `tests`." in run.summary
    town.github.clock.advance(seconds=5)
    town.github.requests.clear()
    pull.edit("hubot", title="[tests] Faster", body="Saves a pass.")
    assert await cost(town) == {SCAN: 1, CHANGE: 1}
    assert check(town, pull) is run
    assert (run.conclusion, run.title) == ("success", "No problems")


async def test_a_push_is_checked_again_and_an_edit_without_effect_writes_nothing(town: Town) -> None:
    pull = town.repo.open_pull_request("hubot", "Faster", "Saves a pass.")
    await cost(town)
    pull.push()
    assert await cost(town) == {SCAN: 1, WRITE: 1}
    pull.edit("hubot", body="Saves two passes.")
    assert await cost(town) == {SCAN: 1}
    pull.label("hubot", "tests")
    pull.close("hubot")
    pull.edit("hubot", body="")
    assert await cost(town) == {}


async def test_pull_requests_are_checked_even_if_github_refuses_the_list_of_topics(
    town: Town,
) -> None:
    key = TEAM_LIST.of(town.repo.id)
    team_list = await town.bot.engine.records.get(key)
    assert team_list is not None
    await town.bot.engine.records.put(key, replace(team_list, read_at=0.0))
    town.github.faults.add("GET", ISSUE.removeprefix("GET "), status=403, times=None)
    pull = town.repo.open_pull_request("hubot", "[hexagon][tests] Faster", "Saves a pass.")
    await town.quiet()
    assert check(town, pull).title == "No problems"
    job_texts = [job.text for record in await town.bot.engine.journal.recent(limit=50) for job in record.jobs]
    assert "No problems; GitHub refused to let the bot read issue 1 (403), so the stored list was used" in job_texts
    assert await town.failures() == []


async def test_names_outside_of_code_only_cause_warnings_that_mention_nobody(town: Town) -> None:
    """TVM #12840: `@` in code counted as a mention; TVM #18432: so did `cc`; TVM #19798: so did addresses."""
    body = "As @monalisa said, `@T.prim_func` and octocat@example.org.\n\n```\n@decorator\n```\n\ncc @octocat"
    pull = town.repo.open_pull_request("hubot", "Faster", body)
    await town.quiet()
    run = check(town, pull)
    assert (run.conclusion, run.title) == ("success", "No problems; the text mentions people")
    assert run.summary is not None
    assert "GitHub notifies `monalisa` about this" in run.summary
    assert "@" not in run.summary


async def test_the_check_runs_again_when_somebody_asks(town: Town) -> None:
    pull = town.repo.open_pull_request("hubot", "Faster.", "Saves a pass.")
    await town.quiet()
    first = check(town, pull)
    town.github.requests.clear()
    first.rerequest("hubot")
    assert await cost(town) == {PULL: 1, SCAN: 1, WRITE: 1}
    second = check(town, pull)
    assert second is not first
    assert (second.conclusion, second.title) == ("neutral", "1 problem")


async def test_the_last_edit_counts_whatever_the_order_of_webhooks(town: Town) -> None:
    pull = town.repo.open_pull_request("hubot", "Faster", "Saves a pass.")
    await town.quiet()
    town.github.webhooks.hold()
    pull.edit("hubot", title="Faster.")
    town.github.clock.advance(seconds=5)
    pull.edit("hubot", title="Much faster")
    town.github.webhooks.release(reversed)
    await town.quiet()
    assert check(town, pull).title == "No problems"
