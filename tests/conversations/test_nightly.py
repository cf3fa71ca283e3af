"""The nightly branch: it moves to a good commit, and people see why if it does not."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import aiohttp
import pytest

from bot.app.registration import PERMISSIONS
from bot.timers.timers import manual_run
from tests.conversations.branches import API
from tests.conversations.nightly_runs import SCHEDULE, NightlyTown, nightly_town
from tests.conversations.town import REPOSITORY, replica_of

SCAN = "GET", "/repos/{owner}/{repo}/git/ref/{ref}"
MOVE = "PATCH", "/repos/{owner}/{repo}/git/refs/{ref}"
MAKE = "POST", "/repos/{owner}/{repo}/git/refs"


@pytest.fixture
def url(tmp_path: Path) -> str:
    return f"sqlite:///{tmp_path}/nightjar.db"


@pytest.fixture
async def place(url: str) -> AsyncIterator[NightlyTown]:
    async with nightly_town(url) as place:
        yield place


@pytest.fixture
async def strict(url: str) -> AsyncIterator[NightlyTown]:
    async with nightly_town(url, require=["*/branch", "lint"]) as place:
        yield place


def green(place: NightlyTown, sha: str) -> None:
    """Report success for a commit: a status and a check run of another App."""
    place.town.repo.set_status("hubot", sha, "cpu/branch", "success")
    place.town.repo.add_workflow_run(sha, "CI", "success", {"lint": "skipped"}, by="hubot")


async def test_the_first_nightly_run_creates_the_branch_and_the_next_one_moves_it(place: NightlyTown) -> None:
    assert "refs/heads/nightly" not in place.town.repo.refs
    assert (await place.town.ask(f"{API}/nightly"))[0] == 404
    first = place.push("The first")
    await place.nightly_run()
    assert place.head == first
    branch_state = await place.branch_state()
    facts = [branch_state[name] for name in ("branch", "sha", "previous_sha", "commits")]
    assert facts == ["nightly", first, None, None]
    status = place.town.repo.status(first, "nightly")
    assert status is not None
    assert status.state == "success"
    assert (status.description or "").startswith("the branch nightly moved here on 20")
    place.push("The second")
    third = place.push("The third")
    await place.nightly_run()
    assert place.head == third
    branch_state = await place.branch_state()
    assert (branch_state["sha"], branch_state["previous_sha"], branch_state["commits"]) == (third, first, 2)
    assert branch_state["why"] == f"the newest good commit is {third[:7]}, 2 commits after {first[:7]}"
    assert [(move["sha"], move["previous_sha"]) for move in branch_state["moves"]] == [(third, first), (first, None)]
    assert place.writes() == ["POST 201", "PATCH 200"]
    assert place.issues == []


async def test_a_nightly_run_with_nothing_new_writes_nothing(place: NightlyTown) -> None:
    first = place.push()
    await place.nightly_run()
    first_state = await place.branch_state()
    written = len(place.town.github.requests.writes)
    await place.nightly_run()
    assert len(place.town.github.requests.writes) == written
    branch_state = await place.branch_state()
    assert {**branch_state, "scanned_at": "", "why": "", "why_not_newer": []} == {
        **first_state,
        "scanned_at": "",
        "why": "",
        "why_not_newer": [],
    }
    assert (place.head, branch_state["why"]) == (first, "nothing new: nightly is at the head of main")


async def test_the_newest_good_commit_is_chosen_and_each_newer_one_has_its_reason(strict: NightlyTown) -> None:
    repo = strict.town.repo
    fit, red, pending, missing = (strict.push(title) for title in ("fit", "red", "pending", "missing"))
    green(strict, fit)
    green(strict, red)
    repo.set_status("hubot", red, "gpu/branch", "failure")
    green(strict, pending)
    repo.add_workflow_run(pending, "Again", None, {"gpu/branch": None}, by="hubot")
    repo.set_status("hubot", missing, "cpu/branch", "success")
    await strict.nightly_run()
    assert strict.head == fit
    assert await strict.verdicts() == [
        ("missing", "missing", ["lint missing"]),
        ("pending", "pending", ["gpu/branch pending"]),
        ("red", "red", ["gpu/branch red"]),
        ("fit", "chosen", []),
    ]
    branch_state = await strict.branch_state()
    assert branch_state["why"] == (
        f"nightly begins at {fit[:7]}. Skipped newer commits: {missing[:7]}: lint is missing"
    )


async def test_a_branch_stays_until_a_newer_commit_is_good(strict: NightlyTown) -> None:
    first = strict.push("first")
    green(strict, first)
    await strict.nightly_run()
    second = strict.push("second")
    await strict.nightly_run()
    assert strict.head == first
    branch_state = await strict.branch_state()
    assert (branch_state["sha"], branch_state["trouble"]) == (first, "")
    assert branch_state["why"] == (
        f"the only new commit of main is not green: {second[:7]}: */branch is missing, lint is missing"
    )
    green(strict, second)
    await strict.nightly_run()
    assert strict.head == second
    assert strict.issues == []


async def test_after_a_rerun_the_newest_result_counts(strict: NightlyTown) -> None:
    repo = strict.town.repo
    sha = strict.push()
    repo.set_status("hubot", sha, "cpu/branch", "failure")
    repo.add_workflow_run(sha, "CI", "failure", {"lint": "failure"}, by="hubot")
    green(strict, sha)
    await strict.nightly_run()
    assert strict.head == sha


async def test_statuses_and_checks_are_read_to_their_last_page(strict: NightlyTown) -> None:
    repo = strict.town.repo
    sha = strict.push()
    repo.set_status("hubot", sha, "first/branch", "failure")
    for n in range(130):
        repo.set_status("hubot", sha, f"{n}/branch", "success")
    repo.add_workflow_run(
        sha, "CI", "success", {"lint": "success", **{f"job {n}": "success" for n in range(130)}}, by="hubot"
    )
    await strict.nightly_run()
    assert strict.head is None
    assert (await strict.verdicts())[0] == ("Improve it", "red", ["first/branch red"])


async def test_a_commit_that_came_in_with_a_merge_is_never_chosen(strict: NightlyTown) -> None:
    repo, git = strict.town.repo, strict.town.repo.git
    first = strict.push("first")
    green(strict, first)
    await strict.nightly_run()
    side = repo.push("side", by="hubot", onto=first)
    green(strict, side.sha)
    tip = strict.push("on main")
    merge = git.commit((tip, side.sha), {}, "Merge", strict.town.github.user("hubot"), strict.town.github.clock.now())
    repo.move("refs/heads/main", merge.sha, "hubot")
    await strict.nightly_run()
    assert strict.head == first
    assert [title for title, _, _ in await strict.verdicts()] == ["Merge", "on main"]


async def test_a_branch_that_has_diverged_is_left_alone_and_reported_once(place: NightlyTown) -> None:
    place.push()
    await place.nightly_run()
    stray = place.town.repo.push("nightly", by="hubot", message="A stray commit").sha
    tip = place.push()
    await place.nightly_run()
    assert place.head == stray
    (issue,) = place.issues
    assert (issue.title, issue.state) == ("The branch nightly cannot be moved", "open")
    assert "it has commits that" in (issue.body or "")
    assert "it has commits that" in (await place.branch_state())["trouble"]
    (failed, *_) = await place.runs()
    assert failed.state == "failed"
    await place.hour()
    await place.nightly_run()
    assert len(place.issues) == 1
    # Somebody deletes the branch, as the issue asks.
    place.town.repo.move("refs/heads/nightly", None, "octocat")
    await place.hour()
    assert place.head == tip
    assert [issue.state for issue in place.issues] == ["closed"]
    assert (await place.branch_state())["trouble"] == ""


@pytest.mark.parametrize("made", [False, True])
async def test_a_move_over_changed_workflows_names_the_required_permission(place: NightlyTown, made: bool) -> None:
    """GitHub only says "Resource not accessible by integration"."""
    first = None
    if made:
        first = place.push()
        await place.nightly_run()
    sha = place.town.repo.push("main", {".github/workflows/ci.yml": "on: push"}, by="hubot").sha
    await place.nightly_run()
    assert place.head == first
    (issue,) = place.issues
    needed = (
        "The branch nightly cannot be moved: GitHub denied this: it changes files in `.github/workflows`, so the "
        "App needs *Contents: write* and *Workflows: write*."
    ).casefold()
    assert needed in (issue.body or "").casefold()
    assert "*Workflows: write*" in (await place.branch_state())["trouble"]
    assert "*Workflows: write*" in (await place.runs())[0].reason
    place.town.app.permissions["workflows"] = "write"
    place.town.github.tokens.expire_all()
    await place.hour()
    assert (place.head, issue.state) == (sha, "closed")


async def test_an_issue_closed_by_a_person_stays_closed_until_the_problem_ends_and_returns(
    place: NightlyTown,
) -> None:
    place.push()
    await place.nightly_run()
    repo = place.town.repo
    fork_point = place.head
    assert fork_point is not None
    repo.push("nightly", by="hubot", message="A stray commit")
    place.push()
    await place.nightly_run()
    place.issues[0].close("octocat")
    await place.nightly_run()
    assert [issue.state for issue in place.issues] == ["closed"]
    repo.move("refs/heads/nightly", fork_point, "octocat")
    await place.nightly_run()
    repo.push("nightly", by="hubot", message="Another stray commit")
    place.push()
    await place.nightly_run()
    assert [issue.state for issue in place.issues] == ["closed", "open"]


@pytest.mark.parametrize(
    ("status", "message", "branch_state"),
    [
        (422, "Cannot update this protected ref.", "GitHub refused this: `Cannot update this protected ref.`"),
        (403, "Resource not accessible by integration", "GitHub denied this: the App needs"),
    ],
)
async def test_a_protected_branch_is_reported_in_an_issue_that_closes_once_the_branch_can_move(
    place: NightlyTown, status: int, message: str, branch_state: str
) -> None:
    first = place.push()
    await place.nightly_run()
    tip = place.push()
    fault = place.town.github.faults.add(*MOVE, status=status, message=message, times=None)
    await place.nightly_run()
    assert place.head == first
    (issue,) = place.issues
    assert issue.state == "open"
    assert branch_state in (issue.body or "")
    assert place.town.repo.status(tip, "nightly") is None
    fault.times = fault.hits
    await place.hour()
    assert place.head == tip
    assert issue.state == "closed"


async def test_an_issue_names_the_permission_that_the_app_lacks(url: str) -> None:
    async with nightly_town(url, permissions={**PERMISSIONS, "contents": "read"}) as place:
        place.push()
        await place.nightly_run()
        assert place.head is None
        assert "*Contents: write*" in (place.issues[0].body or "")


async def test_a_push_to_the_branch_between_check_and_move_is_not_overwritten(place: NightlyTown) -> None:
    place.push()
    await place.nightly_run()
    place.push()
    pause = place.town.github.faults.pause(*MOVE, when="before")
    await place.reach_scheduled_time()
    await pause.reached.wait()
    stray = place.town.repo.push("nightly", by="octocat", message="By hand").sha
    pause.resume()
    await place.town.quiet()
    assert place.head == stray
    assert "it has commits that" in (place.issues[0].body or "")


async def test_a_branch_that_somebody_advances_between_check_and_move_is_accepted(place: NightlyTown) -> None:
    place.push()
    await place.nightly_run()
    chosen = place.push()
    pause = place.town.github.faults.pause(*MOVE, when="before")
    await place.reach_scheduled_time()
    await pause.reached.wait()
    newer = place.push()
    place.town.repo.move("refs/heads/nightly", newer, "octocat")
    pause.resume()
    await place.town.quiet()
    assert place.head == newer
    assert place.issues == []
    assert (await place.branch_state())["sha"] == newer
    assert place.town.repo.status(chosen, "nightly") is None


async def test_a_push_to_main_between_scan_and_move_waits_for_the_next_nightly_run(place: NightlyTown) -> None:
    chosen = place.push()
    pause = place.town.github.faults.pause(*MAKE, when="before")
    await place.reach_scheduled_time()
    await pause.reached.wait()
    newer = place.push()
    pause.resume()
    await place.town.quiet()
    assert place.head == chosen
    await place.nightly_run()
    assert place.head == newer


async def test_a_source_that_does_not_exist_is_named(place: NightlyTown) -> None:
    place.town.repo.move("refs/heads/main", None, "octocat")
    await place.nightly_run()
    assert (await place.town.failures())[0].startswith("there is no branch main; set `from`")


async def test_a_branch_name_may_contain_a_slash(url: str) -> None:
    async with nightly_town(url, branch="labs/nightly") as place:
        place.push()
        await place.nightly_run()
        second = place.push()
        await place.nightly_run()
        assert place.head == second


async def test_one_run_catches_up_after_a_week(place: NightlyTown) -> None:
    sha = place.push()
    place.time.ahead += 6 * 86400
    await place.nightly_run()
    assert place.head == sha
    assert len(await place.runs()) == 1


async def test_a_scheduled_time_is_announced_once_whatever_the_number_of_ticks(place: NightlyTown) -> None:
    place.push()
    await place.nightly_run()
    for _ in range(3):
        place.time.ahead += 60
        await place.town.bot.timers.tick()
    await place.town.quiet()
    assert len(await place.runs()) == 1


async def test_two_replicas_on_one_postgresql_tick_once(postgres_with_tables: str) -> None:
    async with nightly_town(postgres_with_tables) as place, replica_of(place.town, place.config, place.time) as replica:
        shas = []
        for _ in range(3):
            shas.append(place.push())
            place.time.advance_to(SCHEDULE.next_time(place.time()) + 1)
            await asyncio.gather(place.town.bot.timers.tick(), replica.timers.tick(), replica.timers.tick())
            await place.town.quiet()
        assert place.head == shas[-1]
        assert len(await place.runs()) == 3
        assert place.writes() == ["POST 201", "PATCH 200", "PATCH 200"]
        contexts = [[status.context for status in place.town.repo.all_statuses(sha)] for sha in shas]
        assert [names.count("nightly") for names in contexts] == [1, 1, 1]


async def test_the_api_and_the_metrics_show_the_timer(place: NightlyTown) -> None:
    sha = place.push()
    status, _, first_reply = await place.town.ask(f"{API}/timers")
    assert (status, first_reply["timers"][0]["outcome"], first_reply["timers"][0]["last_run"]) == (200, "never", None)
    await place.nightly_run()
    _, _, second_reply = await place.town.ask(f"{API}/timers")
    (timer,) = second_reply["timers"]
    assert (timer["name"], timer["schedule"]) == ("nightly", str(SCHEDULE))
    assert (timer["outcome"], timer["reason"]) == ("done", f"nightly begins at {sha[:7]}; nightly is at {sha[:7]}")
    assert (await place.town.ask("/api/v1/repos/octocat/other/timers"))[0] == 401
    async with aiohttp.ClientSession() as session, session.get(f"{place.town.url}/metrics") as response:
        measured = await response.text()
    labels = 'repository="octocat/compiler",timer="nightly"'
    assert f'nightjar_timer_last_outcome{{outcome="done",{labels}}} 1.0' in measured
    assert number_in(measured, f"nightjar_timer_last_run_age_seconds{{{labels}}}") >= 0
    assert number_in(measured, f"nightjar_timer_next_run_seconds{{{labels}}}") >= 80_000
    assert second_reply["timers"][0]["next_run"] != first_reply["timers"][0]["next_run"]


def number_in(measured: str, name: str) -> float:
    return next(float(line.split()[-1]) for line in measured.splitlines() if line.startswith(name))


async def test_two_runs_requested_in_one_second_both_notify_labs(place: NightlyTown) -> None:
    moment = int(place.time()) + 10
    for title in ("one", "two"):
        sha = place.push(title)
        place.time.advance_to(moment)
        await place.town.bot.timers.announce(REPOSITORY, "nightly", manual_run())
        await place.town.quiet()
        assert place.head == sha
        assert place.town.repo.status(sha, "nightly") is not None
