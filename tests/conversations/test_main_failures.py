"""Alarms: a failure on main is reported once in every channel, and so is its recovery."""

from __future__ import annotations

import asyncio
import sqlite3
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import closing
from pathlib import Path

import pytest

from handlers.main_failures.handler import MOST_COMMITS
from handlers.main_failures.texts import ISSUE_END
from sandbox import Repository
from tests.conversations.alarms import HOUR, AlarmTown, alarm_town
from tests.conversations.town import replica_of

REPO = "/repos/{owner}/{repo}"
COMMITS = f"GET {REPO}/commits"
STATUSES, CHECKS = f"GET {REPO}/commits/{{ref}}/status", f"GET {REPO}/commits/{{ref}}/check-runs"
WORKFLOWS = f"GET {REPO}/actions/runs"
ISSUES, OPEN, CLOSE = f"GET {REPO}/issues", f"POST {REPO}/issues", f"PATCH {REPO}/issues/{{issue_number}}"
COMMENTS, COMMENT = f"GET {REPO}/issues/{{issue_number}}/comments", f"POST {REPO}/issues/{{issue_number}}/comments"
SCAN = "GET", f"{REPO}/commits"
FLOOD = 200


@pytest.fixture
def url(tmp_path: Path) -> str:
    return f"sqlite:///{tmp_path}/nightjar.db"


@pytest.fixture
async def place(url: str) -> AsyncIterator[AlarmTown]:
    async with alarm_town(url) as place:
        yield place


def finish_workflow(repo: Repository, sha: str, conclusion: str) -> None:
    """Let a workflow finish, with one watched job `lint` and one that is not watched."""
    repo.add_workflow_run(sha, "CI", conclusion, {"lint": conclusion, "docs": conclusion}, event="push", by="hubot")


async def test_a_failure_and_its_recovery_are_each_reported_once_in_every_channel(place: AlarmTown) -> None:
    good = place.push("All is well", cpu="success", gpu="success")
    finish_workflow(place.town.repo, good, "success")
    assert await place.news() == []
    broken = place.push("Break it", cpu="failure", gpu="error")
    finish_workflow(place.town.repo, broken, "failure")
    assert await place.news() == [
        f"❌ 3 checks began to fail on main at {broken[:7]}\n"
        "- cpu/branch: cpu: failure (details)\n"
        "- gpu/branch: gpu: error (details)\n"
        "- lint: failure (details)\n"
        f"{broken[:7]}: Break it"
    ]
    (issue,), (run,) = place.issues, place.town.repo.check_runs(broken, "lint")
    assert (issue.title, issue.state) == ("main is failing", "open")
    assert (issue.body or "").splitlines()[4:] == [
        f"- `cpu/branch`: cpu: failure ([details](<https://ci.example.org/cpu>)), first on {broken} Break it",
        f"- `gpu/branch`: gpu: error ([details](<https://ci.example.org/gpu>)), first on {broken} Break it",
        f"- `lint`: failure ([details](<{run.suite.repository.github.url}/octocat/compiler/runs/{run.id}>)), "
        f"first on {broken} Break it",
        "",
        ISSUE_END,
    ]
    # A lasting failure is not reported again, and causes no scan.
    still = place.push("Try to fix it", cpu="failure", gpu="failure")
    assert await place.news() == []
    assert len(await place.scans()) == 1
    place.report(still, gpu="success")
    assert await place.news() == [
        "❌ 1 check on main: recovered\n"
        f"- gpu/branch: recovered at {still[:7]}, 1 commit after {broken[:7]} Break it (details)\n"
        "2 checks still failing."
    ]
    assert issue.comments[-1].body.count("gpu/branch") == 1
    well = place.push("Fix it", cpu="success", gpu="success")
    finish_workflow(place.town.repo, well, "success")
    assert await place.news() == [
        "✅ main has recovered, after 2 commits\n"
        f"- cpu/branch: recovered at {well[:7]}, 2 commits after {broken[:7]} Break it (details)\n"
        f"- lint: recovered at {well[:7]}, 2 commits after {broken[:7]} Break it (details)"
    ]
    assert (issue.state, len(issue.comments), len(place.issues)) == ("closed", 2, 1)
    assert len(await place.scans()) == 3


async def test_what_is_not_fixed_in_time_is_reported_once_more(url: str) -> None:
    async with alarm_town(url, fix_within="1d") as place:
        place.push("All is well", cpu="success", gpu="success")
        broken = place.push("Break it", cpu="failure", gpu="failure")
        assert len(await place.news()) == 1
        await place.sweep(hours=23)
        assert await place.news() == []
        fixed = place.push("Fix one", cpu="failure", gpu="success")
        assert len(await place.news()) == 1
        await place.sweep(hours=2)
        assert await place.news() == [
            "❌ 1 check on main: not fixed within 1d\n"
            f"- cpu/branch: not fixed within 1d; first seen failing at {broken[:7]} Break it: cpu: failure (details)"
        ]
        (issue,) = place.issues
        assert ("not fixed within 1d" in issue.comments[-1].body, issue.state) == (True, "open")
        await place.sweep(hours=48)
        assert await place.news() == []
        # A new failure of the same check is reported in its own time.
        place.report(fixed, cpu="success")
        assert len(await place.news()) == 1
        place.push("Break it again", cpu="failure")
        assert len(await place.news()) == 1
        await place.sweep(hours=25)
        (text,) = await place.news()
        assert text.startswith("❌ 1 check on main: not fixed within 1d\n")


async def test_a_passing_rerun_ends_the_failure_and_another_failing_one_is_no_news(place: AlarmTown) -> None:
    place.push("All is well", cpu="success")
    flaky = place.push("Flake", cpu="failure")
    assert len(await place.news()) == 1
    place.report(flaky, cpu="pending")
    place.report(flaky, cpu="success")
    assert await place.news() == [
        f"✅ main has recovered\n- cpu/branch: recovered: a rerun passed at {flaky[:7]} Flake, where it was first seen "
        "failing (details)"
    ]
    place.report(flaky, cpu="failure")
    assert await place.news() == []
    next_one = place.push("The next one", cpu="failure")
    (message,) = await place.news()
    assert message.startswith(f"❌ 1 check began to fail on main at {next_one[:7]}\n")


async def test_a_failure_after_somebody_closed_the_issue_is_reported_in_a_new_issue(place: AlarmTown) -> None:
    place.push("All is well", cpu="success", gpu="success", npu="success")
    place.push("Break it", cpu="failure", gpu="success", npu="failure")
    assert len(await place.news()) == 1
    (first,) = place.issues
    first.close("octocat")
    place.push("Fix one", cpu="failure", gpu="success", npu="success")
    assert len(await place.news()) == 1
    assert place.issues == [first]
    place.push("Break more", cpu="failure", gpu="failure")
    assert len(await place.news()) == 1
    _, second = place.issues
    assert (first.state, second.state) == ("closed", "open")
    assert [name in (second.body or "") for name in ("cpu/branch", "gpu/branch")] == [True, True]


async def test_a_failure_that_is_fixed_before_the_scan_is_not_reported(place: AlarmTown) -> None:
    place.push("All is well", cpu="success")
    flaky = place.push("Flake", cpu="failure")
    place.report(flaky, cpu="success")
    assert await place.news() == []
    assert len(await place.scans()) == 1


async def test_a_late_failure_of_an_older_commit_is_no_news_if_a_newer_one_is_green(place: AlarmTown) -> None:
    slow = place.push("Slow", cpu="pending", gpu="success")
    place.push("Fast", cpu="success", gpu="success")
    assert await place.news() == []
    place.report(slow, cpu="failure")
    assert await place.news() == []
    assert len(await place.scans()) == 1
    assert place.issues == []


async def test_a_failure_whose_events_were_lost_is_found_within_an_hour(place: AlarmTown) -> None:
    place.town.github.webhooks.lose(times=100)
    place.push("All is well", cpu="success")
    broken = place.push("Break it", cpu="failure")
    assert await place.news() == []
    await place.sweep()
    (message,) = await place.news()
    assert message.startswith(f"❌ 1 check began to fail on main at {broken[:7]}\n")
    await place.sweep()
    assert await place.news() == []
    place.report(broken, cpu="success")
    await place.sweep()
    (message,) = await place.news()
    assert message.startswith("✅ main has recovered, after 2 hours\n")


async def test_a_removed_check_counts_as_missing_after_a_day(place: AlarmTown) -> None:
    place.push("All is well", cpu="success", gpu="success")
    place.push("Break it", cpu="failure", gpu="success")
    await place.town.quiet()
    for number in range(MOST_COMMITS):
        place.push(f"Without it {number}", gpu="success")
    await place.news()
    # The day begins with the first scan, however long ago the previous one was.
    for hours in (50, 23):
        await place.sweep(hours)
        assert await place.news() == []
        assert place.issues[0].state == "open"
    await place.sweep(hours=1)
    (message,) = await place.news()
    assert message.startswith("✅ 1 check on main: failing, and no longer reported\n")
    assert place.issues[0].state == "closed"


async def test_after_a_rewrite_of_the_branch_its_new_commits_count(place: AlarmTown) -> None:
    good = place.push("All is well", cpu="success")
    place.push("Break it", cpu="failure")
    assert len(await place.news()) == 1
    place.town.repo.move("refs/heads/main", good, "octocat")
    await place.sweep()
    (message,) = await place.news()
    assert message.splitlines()[0] == "✅ main has recovered, after 1 hour"


async def test_a_missing_branch_is_named(url: str) -> None:
    async with alarm_town(url, "release") as place:
        await place.sweep()
        assert await place.town.failures() == [
            "there is no branch release; list the branches to watch in app.yaml under main_failures.branches"
        ]
        assert await place.news() == []


async def test_each_branch_is_reported_separately(url: str) -> None:
    async with alarm_town(url, "main, release") as place:
        repo = place.town.repo
        good = place.push("All is well", cpu="success")
        repo.push("release", by="hubot", message="A release", onto=good)
        place.push("Break it", cpu="failure")
        for_release = repo.push("release", by="hubot", message="Break the release").sha
        place.report(for_release, cpu="failure")
        assert sorted(message.splitlines()[0] for message in await place.news()) == [
            f"❌ 1 check began to fail on main at {repo.branch('main')[:7]}",
            f"❌ 1 check began to fail on release at {for_release[:7]}",
        ]
        assert sorted(issue.title for issue in place.issues) == ["main is failing", "release is failing"]


async def test_a_forks_branch_called_main_is_ignored(place: AlarmTown) -> None:
    place.push("All is well", cpu="success")
    fork = place.town.repo.fork("stranger")
    fork.push("main", by="stranger", message="Break it")
    pull = place.town.repo.open_pull_request("stranger", "Mine", branch="main", fork=True)
    finish_workflow(place.town.repo, pull.head_sha, "failure")
    place.town.repo.set_status("hubot", pull.head_sha, "cpu/branch", "failure")
    assert await place.news() == []
    assert await place.scans() == []


async def test_two_replicas_and_repeated_deliveries_report_once(postgres_with_tables: str) -> None:
    async with alarm_town(postgres_with_tables) as place, replica_of(place.town, place.config, place.time) as replica:
        place.push("All is well", cpu="success", gpu="success")
        place.push("Break it", cpu="failure", gpu="failure")
        await place.town.github.delivered()
        for delivery in place.town.github.webhooks.find("status"):
            place.town.github.webhooks.send_under_new_guid(delivery)
        place.time.ahead += HOUR
        await asyncio.gather(place.town.bot.timers.tick(), replica.timers.tick())
        (message,) = await place.news()
        assert message.startswith("❌ 2 checks began to fail on main at ")
        assert len(place.issues) == 1
        assert len(await place.scans()) >= 2


async def test_a_scan_is_retried_when_github_is_down(place: AlarmTown) -> None:
    place.push("All is well", cpu="success")
    down = place.town.github.faults.add(*SCAN, status=502, times=3)
    place.push("Break it", cpu="failure")
    assert len(await place.news()) == 1
    assert down.hits == 3
    assert len(place.issues) == 1


async def test_the_next_scan_writes_an_issue_that_could_not_be_written(place: AlarmTown) -> None:
    place.push("All is well", cpu="success")
    place.town.github.faults.add(*OPEN.split(), status=403, message="Not accessible")
    place.push("Break it", cpu="failure")
    assert len(await place.news()) == 1
    assert place.issues == []
    await place.sweep()
    (issue,) = place.issues
    assert "cpu/branch" in (issue.body or "")
    place.town.github.faults.add(*CLOSE.split(), status=403, message="Not accessible")
    place.push("Fix it", cpu="success")
    assert len(await place.news()) == 1
    assert issue.state == "open"
    await place.sweep()
    assert issue.state == "closed"
    place.town.github.requests.clear()
    await place.sweep()
    assert not [route for route in request_counts(place) if "/issues" in route]
    assert await place.news() == []


async def test_a_replay_of_failed_messages_reports_nothing_that_is_already_over(place: AlarmTown) -> None:
    place.push("All is well", cpu="success")
    place.town.github.faults.add(*OPEN.split(), status=403, message="Not accessible")
    place.push("Break it", cpu="failure")
    assert len(await place.news()) == 1
    place.push("Fix it", cpu="success")
    assert len(await place.news()) == 1
    (failed,) = [scan for scan in await place.scans() if scan.state == "failed"]
    await place.town.bot.engine.replay(failed.guid)
    await place.town.quiet()
    assert place.issues == []
    assert await place.news() == []


async def test_a_channel_that_is_down_gets_the_message_later_and_the_others_at_once(place: AlarmTown) -> None:
    place.push("All is well", cpu="success")
    place.channels.discord.faults.add("POST", "*", status=503, times=1)
    place.push("Break it", cpu="failure")
    await place.town.quiet()
    titles = [
        message.splitlines()[0] for chat in (place.channels.discord, place.channels.slack) for message in chat.said
    ]
    assert len(titles) == 2
    assert len(set(titles)) == 1
    assert len(place.issues) == 1


def request_counts(place: AlarmTown) -> Counter[str]:
    """Return the requests since the count began, without one-time lookups of account and repository."""
    records = place.town.github.requests.of_installation
    return Counter(
        f"{request.method} {request.route}" for request in records if request.route not in {"/users/{username}", REPO}
    )


async def test_a_scan_costs_three_requests_for_each_of_the_newest_commits_and_one_to_list_them(url: str) -> None:
    async with alarm_town(url) as place:
        for number in range(MOST_COMMITS + 5):
            sha = place.push(f"Commit {number}", cpu="success", gpu="success")
        await place.town.quiet()
        place.town.github.requests.clear()
        place.report(sha, cpu="failure", gpu="failure")
        await place.town.quiet()
        scan_cost = {COMMITS: 1, **dict.fromkeys((STATUSES, CHECKS, WORKFLOWS), MOST_COMMITS)}
        assert request_counts(place) == scan_cost | {ISSUES: 2, OPEN: 1}
        place.town.github.requests.clear()
        place.report(sha, cpu="success")
        await place.town.quiet()
        assert request_counts(place) == scan_cost | {ISSUES: 1, CLOSE: 1, COMMENTS: 1, COMMENT: 1}
        place.town.github.requests.clear()
        await place.sweep()
        assert request_counts(place) == scan_cost


async def test_a_flood_of_statuses_elsewhere_costs_no_requests_and_hardly_any_work(url: str, place: AlarmTown) -> None:
    """A script used to ask GitHub at every status, and used up three quarters of the project's quota."""
    pull = place.town.repo.open_pull_request("hubot", "Faster")
    await place.town.quiet()
    place.town.github.requests.clear()
    first_counts = rows(url)
    for number in range(FLOOD):
        place.report(pull.head_sha, **{f"{number}": "failure"})
    await place.town.quiet()
    assert request_counts(place) == {}
    assert await place.scans() == []
    second_counts = rows(url)
    added_rows = {table: second_counts[table] - first_counts[table] for table in second_counts}
    # One status gets a job in doubt, which tells the prefilter for a moment what records say.
    assert added_rows["procrastinate_jobs"] == added_rows["nightjar_notes"] < FLOOD
    assert (added_rows["nightjar_inbox"], added_rows["nightjar_records"]) == (FLOOD, 0)


async def test_a_flood_of_green_statuses_on_main_costs_no_requests(place: AlarmTown) -> None:
    sha = place.push("All is well")
    await place.town.quiet()
    place.town.github.requests.clear()
    place.report(sha, **{f"{number}": "success" for number in range(50)})
    await place.town.quiet()
    assert request_counts(place) == {}
    assert await place.scans() == []


def rows(url: str) -> dict[str, int]:
    """Count the rows in the tables that grow with events; the bot's own timers run at any time."""
    of_events = "WHERE task_name IN ('deliver', 'handle', 'effect', 'conclude')"
    tables = {
        "procrastinate_jobs": of_events,
        "nightjar_notes": f"JOIN procrastinate_jobs ON id = job_id {of_events}",
        "nightjar_inbox": "",
        "nightjar_records": "",
    }
    with closing(sqlite3.connect(url.removeprefix("sqlite:///"))) as database:
        return {
            name: database.execute(f"SELECT count(*) FROM {name} {clause}").fetchone()[0]
            for name, clause in tables.items()
        }


async def test_failures_on_a_branch_that_the_bot_pushes_are_not_failures_of_main(url: str) -> None:
    """The nightly branch is moved to a commit of main and starts workflows there, so their runs have that commit."""
    async with alarm_town(url, also="    nightly: {}\n") as place:
        sha = place.push("All is well", cpu="success")
        await place.sweep()
        jobs = {"lint": "failure"}
        place.town.repo.add_workflow_run(sha, "CI", "failure", jobs, event="push", by="hubot", branch="nightly")
        assert await place.news() == []
        await place.sweep()
        assert (await place.news(), place.issues) == ([], [])
        place.town.repo.add_workflow_run(sha, "CI", "failure", jobs, event="push", by="hubot", branch="main")
        await place.sweep()
        assert (await place.news())[0].startswith(f"❌ 1 check began to fail on main at {sha[:7]}")
