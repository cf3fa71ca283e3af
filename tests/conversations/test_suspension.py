"""An owner suspends the App, takes it off a repository or uninstalls it, and undoes that: no work is lost."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path
from typing import LiteralString

import pytest

from bot.app.doctor.findings import Check, Finding
from bot.core.events import Repository
from bot.engine.internal import announce
from bot.engine.records import Records
from bot.github.repositories.installed import INSTALLED
from bot.github.repositories.known import KNOWN_REPOSITORY, LeftAlone
from bot.news.effects import MESSAGE_EVENT, PostNews
from bot.news.message import News
from handlers.repository_file.sweep import RepositoryFileSweep
from sandbox import PullRequest
from sandbox.journal import Request
from sandbox.model.apps import Installation
from tests.conversations.channels import channels
from tests.conversations.town import REPOSITORY, Town
from tests.conversations.town import town as start_town
from tests.waiting import until

WAITING: LiteralString = """
SELECT job.id FROM procrastinate_jobs AS job JOIN nightjar_notes AS note ON note.job_id = job.id
 WHERE job.status = 'todo' AND job.scheduled_at IS NOT NULL AND note.outcome = 'away'
"""
PIECES = 20
DELIVERIES = "/app/hook/deliveries"
REACTIONS = "/repos/{owner}/{repo}/issues/comments/{comment_id}/reactions"


def installation_of(town: Town) -> Installation:
    return next(iter(town.app.installations.values()))


async def jobs_wait(town: Town, count: int = 1) -> None:
    async def wait() -> bool:
        return len(await town.bot.engine.database.connector.execute_query_all_async(WAITING)) >= count

    await until(wait)


async def commented(town: Town, *, action: str) -> PullRequest:
    """Return a pull request whose command arrives while the App loses access; `action` says how."""
    pull = town.repo.open_pull_request("hubot", "Faster")
    await town.quiet()
    town.github.webhooks.hold()
    pull.comment("hubot", "@ci help")
    stop(town, action)
    town.github.webhooks.release(reversed)  # the command comes first or last: GitHub guarantees no order
    return pull


def stop(town: Town, action: str) -> None:
    installation = installation_of(town)
    match action:
        case "suspend":
            installation.suspend()
        case "remove":
            installation.remove(town.repo)


def undo(town: Town, action: str) -> None:
    if action == "suspend":
        installation_of(town).unsuspend()
    else:
        town.app.install(town.repo)


@pytest.fixture(params=["sqlite_url", "postgres_with_tables"])
async def town_on_each_database(request: pytest.FixtureRequest) -> AsyncIterator[Town]:
    """A town on each database."""
    async with start_town(request.getfixturevalue(request.param)) as town:
        yield town


@pytest.mark.exhaustive("sqlite_url-suspend")
@pytest.mark.parametrize("action", ["suspend", "remove"])
async def test_all_acknowledged_work_is_done_after_the_app_has_access_again(
    town_on_each_database: Town, action: str
) -> None:
    town = town_on_each_database
    pulls = [town.repo.open_pull_request("hubot", f"Faster {number}") for number in range(PIECES)]
    await town.quiet()
    town.github.webhooks.hold()
    for pull in pulls:
        pull.comment("hubot", "@ci help")
    stop(town, action)
    town.github.webhooks.release()
    await jobs_wait(town, PIECES)
    assert [pull for pull in pulls if town.answers(pull)] == []
    undo(town, action)
    await town.quiet()
    assert [len(town.answers(pull)) for pull in pulls] == [1] * PIECES
    assert await town.failures() == []


@pytest.mark.parametrize(("action", "event"), [("suspend", "installation"), ("remove", "installation_repositories")])
async def test_work_waits_although_no_webhook_says_that_access_was_taken(town: Town, action: str, event: str) -> None:
    town.github.webhooks.lose(event)
    pull = await commented(town, action=action)
    await jobs_wait(town)
    undo(town, action)
    await town.quiet()
    assert len(town.answers(pull)) == 1
    assert await town.failures() == []


def sent_by_jobs(town: Town, start: int) -> list[Request]:
    """Return the requests since one, without those of the timer that looks for lost deliveries each minute."""
    return [request for request in town.github.requests.records[start:] if request.route != DELIVERIES]


@pytest.mark.parametrize("action", ["suspend", "remove"])
async def test_a_waiting_job_sends_nothing_to_github(town: Town, action: str) -> None:
    await town.started()
    pull = await commented(town, action=action)
    await jobs_wait(town)
    await town.github.delivered()
    sent = len(town.github.requests.records)
    for _ in range(3):
        await town.bot.engine.release_waiting()
        await jobs_wait(town)
    assert sent_by_jobs(town, sent) == []
    undo(town, action)
    await town.quiet()
    assert len(town.answers(pull)) == 1


async def test_a_plan_stops_when_another_process_stores_that_access_was_taken(town_on_each_database: Town) -> None:
    town = town_on_each_database
    pull = town.repo.open_pull_request("hubot", "Faster")
    await town.quiet()
    paused_request = town.github.faults.pause("POST", REACTIONS, when="after")
    comment = pull.comment("hubot", "@ci help")
    await paused_request.reached.wait()
    key, records = KNOWN_REPOSITORY.of(town.repo.id), Records(town.bot.engine.database.connector)
    repository = await records.get(key)
    assert repository is not None
    await records.put(key, replace(repository, away=LeftAlone.REMOVED))
    paused_request.resume()
    await jobs_wait(town)
    assert (pull.reactions(comment), town.answers(pull)) == (["eyes"], [])
    await records.put(key, repository)
    await town.bot.engine.release_waiting()
    await town.quiet()
    assert (pull.reactions(comment), len(town.answers(pull))) == (["eyes", "+1"], 1)
    assert await town.failures() == []


@pytest.mark.parametrize("lost", [False, True])
async def test_readyz_and_the_doctor_name_the_suspended_installation(town: Town, lost: bool) -> None:
    """The doctor also finds out if GitHub's webhooks are lost, and lets the work go on."""
    await town.started()
    installation = installation_of(town)
    if lost:
        town.github.webhooks.lose("installation", times=2)
    pull = await commented(town, action="suspend")
    await jobs_wait(town)
    text = f"installation {installation.id} is suspended by octocat, so its jobs wait"
    assert text in (await repositories(town)).text
    status, _, answer = await town.ask("/readyz")
    assert (status, str(installation.id) in answer["warnings"]["installations"]) == (200, True)
    installation.unsuspend()
    if lost:
        await repositories(town)
    await town.quiet()
    assert len(town.answers(pull)) == 1
    assert (await repositories(town)).ok
    assert "installations" not in (await town.ask("/readyz"))[2].get("warnings", {})


async def repositories(town: Town) -> Finding:
    return {finding.check: finding for finding in await town.bot.watch.doctor.examine()}[Check.REPOSITORIES]


async def test_news_of_a_suspended_repository_does_not_hold_up_the_channel(tmp_path: Path) -> None:
    async with (
        channels() as chats,
        start_town(f"sqlite:///{tmp_path}/nightjar.db", environment=chats.environment) as town,
    ):
        town.repo.open_pull_request("hubot", "Faster")
        await town.quiet()
        installation_of(town).suspend()
        await town.quiet()
        repository, news = Repository(town.repo.id, REPOSITORY, None), News("The nightly branch is back", good=True)
        await announce(town.bot.engine.accept, MESSAGE_EVENT, repository, PostNews("discord", "1", news))
        await town.quiet()
        assert len(chats.discord.said) == 1
        assert await town.failures() == []


async def test_a_suspended_repository_costs_no_sweep_a_request(tmp_path: Path) -> None:
    async with start_town(f"sqlite:///{tmp_path}/nightjar.db") as town:
        town.repo.open_pull_request("hubot", "Faster")
        await town.quiet()
        await town.started()
        installation_of(town).suspend()
        await town.quiet()
        later = time.time() + 8 * 3600.0
        services = town.bot.services
        sweep = RepositoryFileSweep(
            services.config,
            services.records,
            announce_event=services.announce,
            github_for=services.github_for,
            installed=lambda: services.part(INSTALLED),
            clock=lambda: later,
        )
        sent = len(town.github.requests.records)
        assert await sweep.sweep() == "announced 0"
        assert sent_by_jobs(town, sent) == []
