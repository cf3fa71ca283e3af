"""An owner suspends the App, takes it off a repository or uninstalls it, and undoes that: no work is lost."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator
from pathlib import Path
from typing import LiteralString

import pytest

from bot.app.doctor.findings import Check, Finding
from bot.core.events import Repository
from bot.engine.internal import announce
from bot.news.effects import MESSAGE_EVENT, PostNews
from bot.news.message import News
from handlers.repository_file.sweep import RepositoryFileSweep
from sandbox import PullRequest
from sandbox.model.apps import Installation
from tests.conversations.channels import channels
from tests.conversations.town import REPOSITORY, Town, town
from tests.waiting import until

WAITING: LiteralString = """
SELECT job.id FROM procrastinate_jobs AS job JOIN nightjar_notes AS note ON note.job_id = job.id
 WHERE job.status = 'todo' AND job.scheduled_at IS NOT NULL AND note.outcome = 'away'
"""
PIECES = 20


def installation_of(here: Town) -> Installation:
    return next(iter(here.app.installations.values()))


async def jobs_wait(here: Town, count: int = 1) -> None:
    async def wait() -> bool:
        return len(await here.bot.engine.database.connector.execute_query_all_async(WAITING)) >= count

    await until(wait)


async def commented(here: Town, *, before: str) -> PullRequest:
    """Return a pull request whose command arrived after the owner did what `before` says."""
    pull = here.repo.open_pull_request("hubot", "Faster")
    await here.quiet()
    here.github.webhooks.hold()
    pull.comment("hubot", "@ci help")
    stop(here, before)
    here.github.webhooks.release(reversed)  # the command comes first or last: GitHub guarantees no order
    return pull


def stop(here: Town, action: str) -> None:
    installation = installation_of(here)
    match action:
        case "suspend":
            installation.suspend()
        case "remove":
            installation.remove(here.repo)


def undo(here: Town, action: str) -> None:
    if action == "suspend":
        installation_of(here).unsuspend()
    else:
        here.app.install(here.repo)


@pytest.fixture(params=["sqlite_url", "postgres_url"])
async def either(request: pytest.FixtureRequest) -> AsyncIterator[Town]:
    """A town on each database."""
    async with town(request.getfixturevalue(request.param)) as place:
        yield place


@pytest.mark.parametrize("action", ["suspend", "remove"])
async def test_all_acknowledged_work_is_done_after_the_app_has_access_again(either: Town, action: str) -> None:
    here = either
    pulls = [here.repo.open_pull_request("hubot", f"Faster {number}") for number in range(PIECES)]
    await here.quiet()
    here.github.webhooks.hold()
    for pull in pulls:
        pull.comment("hubot", "@ci help")
    stop(here, action)
    here.github.webhooks.release()
    await jobs_wait(here, PIECES)
    assert [pull for pull in pulls if here.answers(pull)] == []
    undo(here, action)
    await here.quiet()
    assert [len(here.answers(pull)) for pull in pulls] == [1] * PIECES
    assert await here.failures() == []


@pytest.mark.parametrize(("action", "event"), [("suspend", "installation"), ("remove", "installation_repositories")])
async def test_work_waits_although_no_webhook_says_that_access_was_taken(here: Town, action: str, event: str) -> None:
    here.github.webhooks.lose(event)
    pull = await commented(here, before=action)
    await jobs_wait(here)
    undo(here, action)
    await here.quiet()
    assert len(here.answers(pull)) == 1
    assert await here.failures() == []


@pytest.mark.parametrize("action", ["suspend", "remove"])
async def test_a_waiting_job_sends_nothing_to_github(here: Town, action: str) -> None:
    await here.started()
    pull = await commented(here, before=action)
    await jobs_wait(here)
    await here.github.delivered()
    sent = len(here.github.requests.records)
    for _ in range(3):
        await here.bot.engine.release_waiting()
        await jobs_wait(here)
    assert here.github.requests.records[sent:] == []
    undo(here, action)
    await here.quiet()
    assert len(here.answers(pull)) == 1


@pytest.mark.parametrize("lost", [False, True])
async def test_readyz_and_the_doctor_name_the_suspended_installation(here: Town, lost: bool) -> None:
    """The doctor also finds out if GitHub's webhooks are lost, and lets the work go on."""
    await here.started()
    installation = installation_of(here)
    if lost:
        here.github.webhooks.lose("installation", times=2)
    pull = await commented(here, before="suspend")
    await jobs_wait(here)
    text = f"installation {installation.id} is suspended by octocat, so its jobs wait"
    assert text in (await repositories(here)).text
    status, _, answer = await here.ask("/readyz")
    assert (status, str(installation.id) in answer["warnings"]["installations"]) == (200, True)
    installation.unsuspend()
    if lost:
        await repositories(here)
    await here.quiet()
    assert len(here.answers(pull)) == 1
    assert (await repositories(here)).ok
    assert "installations" not in (await here.ask("/readyz"))[2].get("warnings", {})


async def repositories(here: Town) -> Finding:
    return {one.check: one for one in await here.bot.watch.doctor.examine()}[Check.REPOSITORIES]


async def test_news_of_a_suspended_repository_does_not_hold_up_the_channel(tmp_path: Path) -> None:
    async with channels() as chats, town(f"sqlite:///{tmp_path}/nightjar.db", environment=chats.environment) as here:
        here.repo.open_pull_request("hubot", "Faster")
        await here.quiet()
        installation_of(here).suspend()
        await here.quiet()
        about, news = Repository(here.repo.id, REPOSITORY, None), News("The nightly branch is back", good=True)
        await announce(here.bot.engine.accept, MESSAGE_EVENT, about, PostNews("discord", "1", news))
        await here.quiet()
        assert len(chats.discord.said) == 1
        assert await here.failures() == []


async def test_a_suspended_repository_costs_no_sweep_a_request(tmp_path: Path) -> None:
    async with town(f"sqlite:///{tmp_path}/nightjar.db") as here:
        here.repo.open_pull_request("hubot", "Faster")
        await here.quiet()
        await here.started()
        installation_of(here).suspend()
        await here.quiet()
        later = time.time() + 8 * 3600.0
        services = here.bot.services
        sweep = RepositoryFileSweep(
            services.config,
            services.records,
            announce_event=services.announce,
            github_for=services.github_for,
            clock=lambda: later,
        )
        sent = len(here.github.requests.records)
        assert await sweep.sweep() == "announced 0"
        assert here.github.requests.records[sent:] == []
