"""Writes that take effect after the bot checked for them: nothing is there twice, and nothing is missing.

The bot's waits are shortened, GitHub's clock is moved by hand, and each test moves it at the request that it waits for.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from bot.config.shared import PATH
from handlers.repository_file.report import NAME as CONFIG
from sandbox import PullRequest
from sandbox.faults import Fault
from tests.conversations.town import BOT, Town, Works, works
from tests.waiting import until

LATE = 20.0
"""Seconds until a write takes effect: the tests let them pass when they want to."""

COMMENTS = "/repos/{owner}/{repo}/issues/{issue_number}/comments"
STATUSES = "/repos/{owner}/{repo}/statuses/{sha}"
REVIEWERS = "/repos/{owner}/{repo}/pulls/{pull_number}/requested_reviewers"
CHECK_RUNS = "/repos/{owner}/{repo}/check-runs"
RERUN = "/repos/{owner}/{repo}/actions/runs/{run_id}/rerun-failed-jobs"


@dataclass(frozen=True)
class Case:
    """A write: its route, the route that checks for it, what triggers it, and how often its result exists."""

    name: str
    route: str
    scan: str
    cause: Callable[[Works], PullRequest]
    count: Callable[[Works, PullRequest], int]

    def __str__(self) -> str:
        return self.name


def opened(site: Works, body: str = "") -> PullRequest:
    return site.town.repo.open_pull_request("hubot", "Faster", body)


def commented(site: Works, text: str) -> PullRequest:
    pull = opened(site)
    pull.comment("hubot", text)
    return pull


def failed_workflow(site: Works) -> PullRequest:
    pull = opened(site)
    site.town.repo.add_workflow_run(pull.head_sha, "CI", "failure", {"unit": "failure"}, by="hubot")
    pull.comment("hubot", "@ci rerun")
    return pull


def settings_with_a_fault(site: Works) -> PullRequest:
    site.town.repo.push("main", {PATH: "help: maybe\n"}, by="hubot", message="Set what holds here")
    return opened(site)


def config_checks(site: Works, _: PullRequest) -> int:
    """Count the check runs that still report a problem."""
    runs = [run for suite in site.town.repo.suites for run in suite.runs if run.name == CONFIG]
    return sum(run.title != "Superseded" for run in runs)


def review_requests(site: Works, pull: PullRequest) -> int:
    guids = {d.guid for d in site.town.github.webhooks.find("pull_request", "review_requested")}
    return len(guids)


def answers(site: Works, pull: PullRequest) -> int:
    return len(pull.comments_by(BOT))


CASES = [
    Case("an answer", COMMENTS, COMMENTS, lambda site: commented(site, "@ci reruun"), answers),
    Case("the sticky comment", COMMENTS, COMMENTS, lambda site: opened(site, "cc @stranger"), answers),
    Case(
        "a status",
        STATUSES,
        "/repos/{owner}/{repo}/commits/{ref}/status",
        opened,
        lambda site, pull: len(site.town.repo.all_statuses(pull.head_sha)),
    ),
    Case("a request for review", REVIEWERS, REVIEWERS, lambda site: opened(site, "cc @triager"), review_requests),
    Case(
        "a check run",
        CHECK_RUNS,
        "/repos/{owner}/{repo}/commits/{ref}/check-runs",
        settings_with_a_fault,
        config_checks,
    ),
    Case(
        "a rerun",
        RERUN,
        "/repos/{owner}/{repo}/actions/runs/{run_id}",
        failed_workflow,
        lambda site, _: site.town.repo.workflow_runs[0].attempt - 1,
    ),
]


@pytest.fixture
async def site(tmp_path: Path) -> AsyncIterator[Works]:
    """Start a town with a Jenkins, and a bot that waits only for a moment."""
    async with works(f"sqlite:///{tmp_path}/nightjar.db") as place:
        await place.town.started()
        yield place


def scans(town: Town, case: Case, fault: Fault) -> int:
    """Count the checks since the write was lost."""
    records = town.github.requests.records
    lost = next(n for n, r in enumerate(records) if r.method == "POST" and r.route == case.route)
    return sum(r.method == "GET" and r.route == case.scan for r in records[lost + 1 :]) if fault.hits else 0


def sent(town: Town, case: Case) -> int:
    return town.github.requests.count("POST", case.route)


@pytest.mark.parametrize("status", [502, None], ids=["502", "cut"])
@pytest.mark.parametrize("case", CASES, ids=str)
async def test_a_write_that_takes_effect_after_the_first_check_is_found_and_not_sent_again(
    site: Works, case: Case, status: int | None
) -> None:
    town = site.town
    fault = town.github.faults.add("POST", case.route, status=status, late=LATE)
    pull = case.cause(site)
    await town.github.until(lambda: fault.hits and scans(town, case, fault))
    town.github.clock.advance(seconds=LATE)
    await town.quiet()
    assert (case.count(site, pull), sent(town, case)) == (1, 1)
    assert await town.failures() == []


@pytest.mark.parametrize("case", [case for case in CASES if case.route in (COMMENTS, CHECK_RUNS)], ids=str)
async def test_a_write_that_takes_effect_after_it_was_sent_again_leaves_no_duplicate(site: Works, case: Case) -> None:
    town = site.town
    fault = town.github.faults.add("POST", case.route, status=502, late=LATE)
    pull = case.cause(site)
    await town.github.until(lambda: sent(town, case) == 2)
    assert scans(town, case, fault) >= 2
    town.github.clock.advance(seconds=LATE)
    assert case.count(site, pull) == 2
    await town.quiet()
    assert case.count(site, pull) == 1
    assert await town.failures() == []


async def test_a_write_that_never_took_effect_is_sent_again_after_two_checks(site: Works) -> None:
    town, (answer, *_) = site.town, CASES
    fault = town.github.faults.add("POST", COMMENTS, status=500)
    pull = answer.cause(site)
    await town.github.until(lambda: sent(town, answer) == 2)
    assert scans(town, answer, fault) == 2
    await town.quiet()
    assert answers(site, pull) == 1


async def test_a_request_that_never_left_is_sent_again_without_waiting(site: Works) -> None:
    """GitHub refused it, or there was no connection: it cannot take effect later."""
    town, (answer, *_) = site.town, CASES
    fault = town.github.faults.add("POST", COMMENTS, status=429, headers={"Retry-After": "1"})
    pull = answer.cause(site)
    await town.quiet()
    assert scans(town, answer, fault) == 0
    assert answers(site, pull) == 1


async def test_a_build_that_starts_late_is_not_started_twice(site: Works) -> None:
    pull = opened(site)
    await site.town.quiet()
    job = site.job(pull, "gpu", "FAILURE")
    job.builds[-1].timestamp -= 3600
    fault = site.jenkins.faults.add("POST", "*", status=502, late=LATE)
    pull.comment("hubot", "@ci rerun gpu/pr-head")
    await site.town.github.until(lambda: pull.reactions(pull.comments[0], by=BOT))

    def scanned() -> bool:
        methods = [method for method, path in site.jenkins.requests if not path.startswith("/crumb")]
        return bool(fault.hits) and methods[-1] == "GET"

    await until(scanned)
    site.jenkins.clock.advance(seconds=LATE)
    await site.town.quiet()
    assert len(job.builds) == 2


async def test_a_lagging_list_hides_neither_our_comment_nor_our_check_from_the_next_job(site: Works) -> None:
    town = site.town
    pull = opened(site)
    await town.quiet()
    town.github.lists_lag = 3600
    for body in ("cc @stranger", "cc @stranger and @nobody-here"):
        pull.edit("hubot", body=body)
        await town.quiet()
    for text in ("help: maybe\n", "help: perhaps\n"):
        pull.push({PATH: text})
        await town.quiet()
    assert len(pull.comments_by(BOT)) == 1
    assert "nobody-here" in pull.comments_by(BOT)[0].body
    assert await town.failures() == []
