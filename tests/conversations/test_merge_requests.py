"""What a merge costs: every request to GitHub, counted; the tables in `benchmarks/README.md` come from here."""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from sandbox import PullRequest
from tests.conversations.merges import KEYS, approve, merge_town, report
from tests.conversations.test_requests import CHECKS, COMMENT, COMMENTS, PULL, REACT, REPO, REVIEWS, ROLE, RUNS, cost
from tests.conversations.test_requests import STATUSES as COMBINED
from tests.conversations.town import Town

RULES, BRANCH = f"GET {REPO}/rules/branches/{{branch}}", f"GET {REPO}/branches/{{branch}}"
COMMITS, MERGE = f"GET {REPO}/pulls/{{pull_number}}/commits", f"PUT {REPO}/pulls/{{pull_number}}/merge"
LABELS, LABEL = f"GET {REPO}/issues/{{issue_number}}/labels", f"POST {REPO}/issues/{{issue_number}}/labels"
FACTS = "POST /graphql"
STATUS = f"POST {REPO}/statuses/{{sha}}"

SIGNALS = Counter({COMBINED: 1, RUNS: 1, CHECKS: 1})
"""The state of a commit."""
PATTERN = SIGNALS + Counter({f"GET {REPO}/commits": 1, f"GET {REPO}/commits/{{commit_sha}}/pulls": 1})
"""Finding what a pattern of `required` matches, if the base has one commit, which came from no pull request."""
SCAN = SIGNALS + Counter({PULL: 1, RULES: 1, BRANCH: 1, REVIEWS: 1, ROLE: 1}) + PATTERN
"""With one person who approved or requested changes; each further person costs one more request."""
COMMAND = Counter({PULL: 1, ROLE: 1, REACT: 2})
MERGED = SCAN + Counter({ROLE: 1, FACTS: 1, COMMITS: 1, MERGE: 1})
"""Just before the merge, the bot reads the roles of the requester and of the approver again."""
AFTERWARDS = Counter({COMBINED: 1, STATUS: 1})
"""The push to the base branch gets the status of the slow tests, as every push does."""
PUSHED = AFTERWARDS + Counter({f"GET {REPO}/contents/{{path}}": 1})
"""What any push to a pull request costs: that status, and a check for another `.github/nightjar.yaml`."""


@pytest.fixture
async def town(tmp_path: Path) -> AsyncIterator[Town]:
    async with merge_town(f"sqlite:///{tmp_path}/nightjar.db") as place:
        yield place


@pytest.fixture
async def labeled(tmp_path: Path) -> AsyncIterator[Town]:
    async with merge_town(f"sqlite:///{tmp_path}/nightjar.db", f"{KEYS}, label: ready-for-merge") as place:
        yield place


def opened(town: Town) -> PullRequest:
    pull = town.repo.open_pull_request("hubot", "Faster")
    report(town, pull, "pending")
    return pull


async def test_a_merge_reads_twice_and_a_refusal_once(town: Town) -> None:
    """TVM #12361:

    its bot had to start CI on `main` after a merge. An App's merge is an ordinary push, which starts it.
    """
    pull = opened(town)
    refused = await cost(town, lambda: pull.comment("octocat", "@ci merge"))
    assert refused == COMMAND + SCAN - Counter({ROLE: 1}) + Counter({COMMENTS: 1, COMMENT: 1})
    report(town, pull)
    approve(pull, by="octocat")
    merged = await cost(town, lambda: pull.comment("octocat", "@ci merge"))
    assert pull.merged_at
    # The answer that they have access is cached for less than a minute.
    assert merged == COMMAND - Counter({ROLE: 1}) + SCAN + MERGED + AFTERWARDS


async def test_a_pending_merge_costs_a_refresh_only_after_a_relevant_event(
    town: Town,
) -> None:
    pull, other_pull = opened(town), opened(town)
    approve(pull, by="octocat")
    pending = await cost(town, lambda: pull.comment("octocat", "@ci merge when green"))
    assert pending == COMMAND + SCAN + SCAN + Counter({COMMENTS: 1, COMMENT: 1})
    assert await cost(town, lambda: report(town, other_pull)) == {}
    assert await cost(town, lambda: report(town, pull, "failure")) == {}
    assert await cost(town, lambda: report(town, pull, context="docs")) == SCAN
    assert await cost(town, lambda: pull.label("hubot", "docs")) == {}
    green = await cost(town, lambda: report(town, pull))
    assert pull.merged_at
    assert green == SCAN + MERGED + AFTERWARDS


async def test_names_cost_less_than_patterns(tmp_path: Path) -> None:
    async with merge_town(f"sqlite:///{tmp_path}/nightjar.db", "required: [cpu/pr-head]") as town:
        pull = opened(town)
        refused = await cost(town, lambda: pull.comment("octocat", "@ci merge"))
        assert refused == COMMAND + SCAN - PATTERN - Counter({ROLE: 1}) + Counter({COMMENTS: 1, COMMENT: 1})


async def test_a_push_ends_a_pending_merge_without_a_refresh(town: Town) -> None:
    pull = opened(town)
    pull.comment("octocat", "@ci merge when green")
    pushed = await cost(town, pull.push)
    assert pushed == Counter({COMMENTS: 1, COMMENT: 1}) + PUSHED
    assert await cost(town, pull.push) == PUSHED


async def test_the_label_costs_a_refresh_per_relevant_event_and_two_requests_per_change(labeled: Town) -> None:
    pull = opened(labeled)
    await cost(labeled, lambda: None)
    assert await cost(labeled, lambda: report(labeled, pull)) == {}
    approved = await cost(labeled, lambda: approve(pull))
    # One for the approval, and one once its checks are recorded as watched.
    assert approved == SCAN + SCAN + Counter({LABELS: 1, LABEL: 1})
    assert await cost(labeled, lambda: report(labeled, pull, context="docs")) == SCAN
    assert await cost(labeled, lambda: pull.review("reader", "Hm.")) == {}
    pushed = await cost(labeled, pull.push)
    assert pushed == PUSHED + Counter({LABELS: 1, f"DELETE {REPO}/issues/{{issue_number}}/labels/{{name}}": 1})
