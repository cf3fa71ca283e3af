"""The last good branch tracks green commits, and people see how far behind it is and what blocks it."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from handlers.tracking_branches.decide import MOST_REQUESTED
from tests.conversations.branches import API
from tests.conversations.good import GoodTown, good_town, routes
from tests.conversations.nightly_runs import NightlyTown
from tests.conversations.town import REPOSITORY

MOVE = "PATCH", "/repos/{owner}/{repo}/git/refs/{ref}"
CHECK_RUNS = "GET", "/repos/{owner}/{repo}/commits/{ref}/check-runs"
ABOUT = f'repository="{REPOSITORY}"'
GREEN, RED, RUNS = {"cpu": "success"}, {"cpu": "failure"}, {"cpu": None}
CONCLUSIONS = ("failure", "cancelled", "timed_out", "action_required", "success", "neutral", "skipped")


@pytest.fixture
def url(tmp_path: Path) -> str:
    return f"sqlite:///{tmp_path}/nightjar.db"


@pytest.fixture
async def place(url: str) -> AsyncIterator[GoodTown]:
    """Return a town where `cpu` must be green."""
    async with good_town(url, require=["cpu"]) as place:
        yield place


async def test_the_first_scan_creates_the_branch_and_a_later_one_moves_it(place: GoodTown) -> None:
    assert (await place.town.ask(f"{API}/last-good"))[0] == 404
    assert await place.measured() == {}
    first = place.checked("first", GREEN)
    await place.scan()
    assert place.head == first
    place.checked("second", RED)
    third = place.checked("third", GREEN)
    await place.scan()
    assert place.head == third
    branch_state = await place.branch_state()
    assert (branch_state["branch"], branch_state["sha"], branch_state["previous_sha"], branch_state["commits"]) == (
        "last-successful",
        third,
        first,
        2,
    )
    assert branch_state["lag"] == {"commits": 0, "hours": 0.0, "since": None}
    assert branch_state["require"] == ["cpu"]
    assert place.writes() == ["POST 201", "PATCH 200"]
    # Labs read the `nightly` status; nobody needs a status on each good commit.
    assert place.town.repo.all_statuses(third) == []
    assert place.issues == []


async def test_scans_without_news_write_nothing(place: GoodTown) -> None:
    place.checked("first", GREEN)
    await place.scan()
    written = len(place.town.github.requests.writes)
    first_state = await place.branch_state()
    await place.scan()
    await place.scan()
    second_state = await place.branch_state()
    assert len(place.town.github.requests.writes) == written
    assert second_state["why"] == "nothing new: last-successful is at the head of main"
    assert second_state["scanned_at"] > first_state["scanned_at"]
    assert (second_state["sha"], second_state["moved_at"]) == (first_state["sha"], first_state["moved_at"])


async def test_each_conclusion_of_any_app_counts_as_green_red_or_pending(place: GoodTown) -> None:
    first = place.checked("success first", GREEN)
    await place.scan()
    for conclusion in CONCLUSIONS[:4]:
        place.checked(conclusion, {"cpu": conclusion, "docs": "success"})
    place.checked("it runs", RUNS)
    place.checked("nothing has begun", {})
    await place.scan()
    assert place.head == first
    assert [(title, verdict) for title, verdict, _ in await place.verdicts()] == [
        ("nothing has begun", "missing"),
        ("it runs", "pending"),
        *((conclusion, "red") for conclusion in reversed(CONCLUSIONS[:4])),
    ]
    for conclusion in CONCLUSIONS[4:]:
        # This check is not required, so its failure does not matter.
        sha = place.checked(conclusion, {"cpu": conclusion, "typos": "failure"})
        await place.scan()
        assert place.head == sha, conclusion


async def test_every_pattern_must_match_and_all_its_matches_must_be_green(url: str) -> None:
    async with good_town(url, require=["*/branch", "lint"]) as place:
        repo = place.town.repo
        good = place.checked("good", {"lint": "neutral", "gpu/branch": "skipped"})
        repo.set_status("hubot", good, "cpu/branch", "success")
        red = place.checked("one is red", {"lint": "success", "gpu/branch": "success"})
        repo.set_status("hubot", red, "cpu/branch", "error")
        pending = place.checked("one runs", {"lint": "success", "gpu/branch": "success"})
        repo.set_status("hubot", pending, "cpu/branch", "pending")
        place.checked("no lint", {"gpu/branch": "success"})
        await place.scan()
        assert place.head == good
        assert await place.verdicts() == [
            ("no lint", "missing", ["lint missing"]),
            ("one runs", "pending", ["cpu/branch pending"]),
            ("one is red", "red", ["cpu/branch red"]),
            ("good", "chosen", []),
        ]


async def test_a_red_commit_blocks_the_branch_until_a_rerun_is_green(place: GoodTown) -> None:
    first = place.checked("first", GREEN)
    await place.scan()
    second = place.push("second")
    run = place.town.repo.add_workflow_run(second, "CI", "failure", {"cpu": "failure"}, by="hubot")
    await place.scan()
    branch_state = await place.branch_state()
    assert (place.head, branch_state["trouble"]) == (first, "")
    assert branch_state["why"] == f"the only new commit of main is not green: {second[:7]}: cpu is red"
    assert branch_state["blockers"] == [{"name": "cpu", "commits": 1}]
    run.rerun(place.town.github.user("hubot"), only_failed=True)
    await place.scan()
    assert (place.head, (await place.branch_state())["blockers"]) == (first, [])
    run.finish("success")
    await place.scan()
    assert place.head == second
    assert place.issues == []


async def test_required_names_that_no_longer_match_are_reported(url: str) -> None:
    async with good_town(url, require=["cpu", "cortexm/*"]) as place:
        place.checked("first", GREEN)
        place.checked("second", RED)
        await place.scan()
        assert place.head is None
        reason = (await place.branch_state())["why"]
        assert "nothing on them matches cortexm/*: check the names in `require`" in reason


async def test_a_branch_that_has_diverged_is_left_alone_and_reported_once(place: GoodTown) -> None:
    place.checked("first", GREEN)
    await place.scan()
    stray = place.town.repo.push("last-successful", by="hubot", message="A stray commit").sha
    tip = place.checked("second", GREEN)
    await place.scan()
    await place.scan()
    assert place.head == stray
    (issue,) = place.issues
    assert (issue.title, issue.state) == ("The branch last-successful cannot be moved", "open")
    assert "it has commits that" in (issue.body or "")
    branch_state = await place.branch_state()
    assert "it has commits that" in branch_state["trouble"]
    assert branch_state["lag"]["commits"] == 1
    # Somebody deletes the branch, as the issue asks.
    place.town.repo.move("refs/heads/last-successful", None, "octocat")
    await place.scan()
    assert place.head == tip
    assert [issue.state for issue in place.issues] == ["closed"]
    assert (await place.branch_state())["trouble"] == ""


async def test_a_protected_branch_is_reported_in_an_issue_that_closes_once_the_branch_can_move(place: GoodTown) -> None:
    first = place.checked("first", GREEN)
    await place.scan()
    tip = place.checked("second", GREEN)
    fault = place.town.github.faults.add(*MOVE, status=422, message="Cannot update this protected ref.", times=None)
    await place.scan()
    assert place.head == first
    (issue,) = place.issues
    assert "GitHub refused this: `Cannot update this protected ref.`" in (issue.body or "")
    assert (await place.branch_state())["lag"]["commits"] == 1
    fault.times = fault.hits
    await place.scan()
    assert (place.head, issue.state) == (tip, "closed")


async def test_a_move_over_changed_workflows_names_the_required_permission(place: GoodTown) -> None:
    """GitHub only says "Resource not accessible by integration"."""
    first = place.checked("first", GREEN)
    await place.scan()
    sha = place.town.repo.push("main", {".github/workflows/ci.yml": "on: push"}, by="hubot").sha
    place.check(sha, GREEN)
    await place.scan()
    assert place.head == first
    (issue,) = place.issues
    needed = (
        "But the branch last-successful cannot be moved: GitHub denied this: it changes files in "
        "`.github/workflows`, so the App needs *Contents: write* and *Workflows: write*."
    )
    assert needed in (issue.body or "")
    assert "*Workflows: write*" in (await place.branch_state())["trouble"]
    place.town.app.permissions["workflows"] = "write"
    place.town.github.tokens.expire_all()
    await place.scan()
    assert (place.head, issue.state) == (sha, "closed")


async def test_creating_a_branch_with_workflows_names_the_required_permission(place: GoodTown) -> None:
    sha = place.town.repo.push("main", {".github/workflows/ci.yml": "on: push"}, by="hubot").sha
    place.check(sha, GREEN)
    await place.scan()
    assert place.head is None
    assert "*Workflows: write*" in (place.issues[0].body or "")


async def test_a_refusal_to_list_checks_fails_the_run_visibly(place: GoodTown) -> None:
    place.checked("first", GREEN)
    fault = place.town.github.faults.add(*CHECK_RUNS, status=403, message="Resource not accessible", times=None)
    await place.scan()
    assert place.head is None
    _, _, answer = await place.town.ask(f"{API}/timers")
    assert (answer["timers"][0]["name"], answer["timers"][0]["outcome"]) == ("last-good", "failed")
    assert len(await place.town.failures()) == 1
    fault.times = fault.hits
    await place.scan()
    assert place.head is not None


async def test_two_branches_of_a_repository_move_by_their_own_rules(url: str) -> None:
    also = "    nightly: {require: [cpu]}\n"
    async with good_town(url, require=["*"], also=also) as good:
        nightly_run = NightlyTown(good.town, good.time, "nightly", good.config)
        sha = good.checked("first", {"cpu": "success", "gpu": "failure"})
        await nightly_run.nightly_run()
        assert (nightly_run.head, good.head) == (sha, None)
        assert next((title, checks) for title, _, checks in await good.verdicts()) == ("first", ["gpu red"])
        good.check(sha, {"gpu": "success"})
        await good.scan()
        assert (nightly_run.head, good.head) == (sha, sha)
        assert {run.guid.split(":")[2] for run in await good.runs()} == {"nightly", "last-good"}
        assert ((await nightly_run.branch_state())["sha"], (await good.branch_state())["sha"]) == (sha, sha)


async def test_the_bots_own_reports_make_no_commit_good(url: str) -> None:
    async with good_town(url, require=["*"], also="    nightly: {}\n") as place:
        sha = place.push("first")
        await NightlyTown(place.town, place.time, "nightly", place.config).nightly_run()
        assert {status.context for status in place.town.repo.statuses(sha)} == {"ci/slow-tests", "nightly"}
        assert (place.head, (await place.verdicts())[0]) == (None, ("first", "missing", ["* missing"]))
        place.town.repo.add_check_run(place.town.app, sha, "hardware/example-lab/adreno", conclusion="neutral")
        place.town.repo.add_check_run(place.town.app, sha, "nightjar/lint", conclusion="success")
        await place.scan()
        assert (place.head, (await place.verdicts())[0]) == (None, ("first", "missing", ["* missing"]))
        place.check(sha, {"cpu": "success"})
        await place.scan()
        assert place.head == sha


async def test_a_status_of_the_bot_never_counts_even_if_its_name_is_required(url: str) -> None:
    async with good_town(url, require=["nightly"], also="    nightly: {}\n") as place:
        place.push("first")
        await NightlyTown(place.town, place.time, "nightly", place.config).nightly_run()
        await place.scan()
        assert (place.head, (await place.verdicts())[0]) == (None, ("first", "missing", ["nightly missing"]))


@pytest.mark.parametrize("conclusion", ["success", "failure"])
async def test_a_workflow_started_by_our_own_push_does_not_count_for_main(url: str, conclusion: str) -> None:
    """It runs on a commit of main, because the nightly branch was moved there."""
    async with good_town(url, require=["cpu"], also="    nightly: {}\n") as place:
        sha = place.push("first")
        place.town.repo.add_workflow_run(sha, "CI", conclusion, {"cpu": conclusion}, event="push", branch="nightly")
        await place.scan()
        assert (place.head, (await place.verdicts())[0]) == (None, ("first", "missing", ["cpu missing"]))
        place.town.repo.add_workflow_run(sha, "CI", "success", {"cpu": "success"}, event="push", branch="main")
        await place.scan()
        assert place.head == sha


@pytest.mark.one_clock
async def test_the_lag_and_the_blockers_are_updated_between_scans(place: GoodTown) -> None:
    place.checked("good", GREEN)
    await place.scan()
    assert await place.measured() == {f"lag_commits{{{ABOUT}}}": 0, f"lag_seconds{{{ABOUT}}}": 0}
    place.checked("red", RED)
    place.checked("red again", RED)
    place.checked("it runs", RUNS)
    await place.scan()
    measured = await place.measured()
    blocker = f'sole_blocker{{name="cpu",{ABOUT}}}'
    assert (measured[f"lag_commits{{{ABOUT}}}"], measured[blocker], len(measured)) == (3, 2, 3)
    place.time.ahead += 5 * 3600
    later = await place.measured()
    assert later[f"lag_seconds{{{ABOUT}}}"] >= measured[f"lag_seconds{{{ABOUT}}}"] + 5 * 3600
    branch_state = await place.branch_state()
    assert (branch_state["lag"]["commits"], branch_state["blockers"]) == (3, [{"name": "cpu", "commits": 2}])
    since = datetime.fromisoformat(branch_state["lag"]["since"]).timestamp()
    assert since <= time.time()
    assert 5 <= branch_state["lag"]["hours"] <= 6


async def test_one_scan_catches_up_after_a_week(place: GoodTown) -> None:
    place.checked("first", GREEN)
    await place.scan()
    place.checked("red", RED)
    sha = place.checked("good", GREEN)
    place.time.ahead += 7 * 86400
    await place.scan()
    assert place.head == sha
    assert len(await place.runs()) == 2
    assert (await place.branch_state())["commits"] == 2


SCAN = {"GET /git/ref/{ref}": 2, "GET /commits": 1}
"""The bot reads the heads of both branches, and the commits only if they differ."""
ASKED = {"GET /commits/{ref}/status": 1, "GET /commits/{ref}/check-runs": 1, "GET /actions/runs": 1}


async def test_a_scan_costs_two_requests_if_nothing_is_new_and_else_three_for_each_newer_commit(
    place: GoodTown,
) -> None:
    place.checked("first", GREEN)
    await place.scan()
    assert routes(await place.asked()) == {"GET /git/ref/{ref}": 2}
    for _ in range(4):
        place.checked("red", RED)
    red = routes(await place.asked())
    assert red == {**SCAN, **dict.fromkeys(ASKED, 4)}


async def test_a_move_reads_twice_before_it_writes(place: GoodTown) -> None:
    place.checked("first", GREEN)
    await place.scan()
    place.checked("second", GREEN)
    moved = routes(await place.asked())
    writes = {"GET /git/ref/{ref}": 3, "GET /compare/{basehead}": 1, "PATCH /git/refs/{ref}": 1}
    assert moved == {**SCAN, **ASKED, **writes}


async def test_an_unchanged_repository_costs_no_quota(place: GoodTown) -> None:
    place.checked("first", GREEN)
    await place.scan()
    shas = [place.checked("red", RED) for _ in range(4)]
    await place.scan()
    assert {request.status for request in await place.asked()} == {304}
    place.check(shas[1], RUNS)
    changed = [request for request in await place.asked() if request.status != 304]
    assert routes(changed) == {"GET /commits/{ref}/check-runs": 1}


async def test_a_long_queue_is_read_completely_in_scans_of_limited_size(place: GoodTown) -> None:
    good = place.checked("good", GREEN)
    for n in range(MOST_REQUESTED + 15):
        place.checked(f"waiting {n}", RUNS)
    assert routes(await place.asked())["GET /commits/{ref}/check-runs"] == MOST_REQUESTED
    assert (place.head, len(await place.verdicts())) == (None, MOST_REQUESTED)
    # Reads the newest ones again and those that it did not reach, down to the good one, but nothing before that.
    assert routes(await place.asked())["GET /commits/{ref}/check-runs"] == MOST_REQUESTED - 1
    assert place.head == good
    branch_state = await place.branch_state()
    assert (branch_state["lag"]["commits"], len(branch_state["why_not_newer"])) == (
        MOST_REQUESTED + 15,
        MOST_REQUESTED + 15 + 1,
    )


async def test_a_branch_that_is_far_behind_asks_once_since_when(place: GoodTown) -> None:
    repo, github = place.town.repo, place.town.github
    far = place.push("far back")
    repo.move("refs/heads/last-successful", far, "octocat")
    # By the bot's clock, with which it counts the hours.
    week_ago = datetime.fromtimestamp(int(place.time()), UTC) - timedelta(days=7)
    late = repo.git.commit((far,), {}, "a week ago", github.user("hubot"), week_ago)
    repo.move("refs/heads/main", late.sha, "hubot")
    for n in range(110):
        late = repo.git.commit((late.sha,), {}, f"later {n}", github.user("hubot"), github.clock.now())
    repo.move("refs/heads/main", late.sha, "hubot")
    first_requests = routes(await place.asked())
    assert first_requests["GET /compare/{basehead}"] == 2
    branch_state = await place.branch_state()
    assert (branch_state["lag"]["commits"], datetime.fromisoformat(branch_state["lag"]["since"])) == (111, week_ago)
    assert branch_state["lag"]["hours"] >= 7 * 24
    second_requests = routes(await place.asked())
    assert second_requests["GET /compare/{basehead}"] == 1
    assert (await place.branch_state())["lag"]["since"] == branch_state["lag"]["since"]
    place.check(late.sha, GREEN)
    await place.scan()
    assert (place.head, (await place.branch_state())["lag"]["commits"]) == (late.sha, 0)
