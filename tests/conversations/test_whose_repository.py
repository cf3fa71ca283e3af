"""Repositories that are renamed, archived, deleted or removed from the App, and permissions that change."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterable
from pathlib import Path

import pytest

from bot.app.doctor.findings import Check, Finding
from bot.app.registration import PERMISSIONS
from bot.engine.tokens import API, TokenStore
from bot.timers.timers import TimerState
from sandbox.webhooks import SentDelivery
from tests.conversations.town import CONFIG, REPOSITORY, Town, town

NIGHTLY = CONFIG.rstrip() + "\n    nightly: {at: '03:00', timezone: UTC, require: []}\n"


@pytest.fixture
async def nightly(tmp_path: Path) -> AsyncIterator[Town]:
    async with town(f"sqlite:///{tmp_path}/nightjar.db", config=NIGHTLY) as place:
        await place.bot.watch.checked.wait()
        yield place


async def timer(here: Town) -> TimerState:
    """Ask with a token, because nobody else may read about a repository that is no longer ours."""
    token, _ = await TokenStore(here.bot.engine.database.connector, API).create(REPOSITORY, seconds=60.0)
    _, _, answer = await here.ask(f"/api/v1/repos/{REPOSITORY}/timers", token)
    return answer["timers"][0]  # type: ignore[no-any-return]


async def repositories(here: Town) -> Finding:
    return {one.check: one for one in await here.bot.watch.doctor.examine()}[Check.REPOSITORIES]


@pytest.mark.parametrize("message", [True, False])
async def test_a_renamed_repository_is_served_under_its_new_name(nightly: Town, message: bool) -> None:
    here = nightly
    pull = here.repo.open_pull_request("hubot", "Faster")
    await here.quiet()
    if not message:
        here.github.webhooks.lose("repository")
    here.repo.rename("octocat", "compiler-next")
    await here.quiet()
    found = await repositories(here)
    assert found.text == "octocat/compiler: it is now called octocat/compiler-next on GitHub"
    assert found.remedy == "change its name in app.yaml; until then the bot finds it by its ID"
    pull.comment("hubot", "@ci help")
    await here.quiet()
    assert len(here.answers(pull)) == 1
    # A timer only knows the name in app.yaml, and GitHub does not redirect writes.
    await here.bot.timers.announce(REPOSITORY, "nightly", "2026-11-20T03:00:00Z")
    await here.quiet()
    assert "refs/heads/nightly" in here.repo.refs
    assert await here.failures() == []


async def test_a_transferred_repository_is_served_under_its_new_owner(nightly: Town) -> None:
    here = nightly
    pull = here.repo.open_pull_request("hubot", "Faster")
    here.app.install(here.github.create_repository("example-lab/tools"))
    await here.quiet()
    here.repo.transfer("octocat", "example-lab")
    await here.quiet()
    assert (await repositories(here)).text == "octocat/compiler: it is now called example-lab/compiler on GitHub"
    pull.comment("hubot", "@ci help")
    await here.quiet()
    assert len(here.answers(pull)) == 1
    await here.bot.timers.announce(REPOSITORY, "nightly", "2026-11-20T03:00:00Z")
    await here.quiet()
    assert "refs/heads/nightly" in here.repo.refs
    assert await here.failures() == []


@pytest.mark.parametrize("order", [list, reversed])
async def test_a_command_from_before_a_transfer_is_answered_under_the_new_owner(
    nightly: Town, order: Callable[[list[SentDelivery]], Iterable[SentDelivery]]
) -> None:
    """Its payload names the installation of the old owner, which no longer includes the repository."""
    here = nightly
    pull = here.repo.open_pull_request("hubot", "Faster")
    here.app.install(here.github.create_repository("example-lab/tools"))
    await here.quiet()
    here.github.webhooks.hold()
    pull.comment("hubot", "@ci help")
    here.repo.transfer("octocat", "example-lab")
    here.github.webhooks.release(order)
    await here.quiet()
    assert len(here.answers(pull)) == 1
    assert await here.failures() == []


@pytest.mark.parametrize("message", [True, False])
async def test_a_new_repository_under_the_old_name_is_not_taken_for_the_renamed_one(
    nightly: Town, message: bool
) -> None:
    """Settings in app.yaml are for the repository that had the name; the new one may be anybody's."""
    here = nightly
    pull = here.repo.open_pull_request("hubot", "Faster")
    await here.quiet()
    if not message:
        here.github.webhooks.lose("repository")
    here.repo.rename("octocat", "compiler-next")
    other = here.github.create_repository(REPOSITORY, people={"hubot": "write"})
    here.app.install(other)
    theirs = other.open_pull_request("hubot", "Other")
    theirs.comment("hubot", "@ci help")
    await here.quiet()
    assert theirs.comments_by("nightjar[bot]") == []
    assert (await repositories(here)).text == "octocat/compiler: it is now called octocat/compiler-next on GitHub"
    await here.bot.timers.announce(REPOSITORY, "nightly", "2026-11-20T03:00:00Z")
    pull.comment("hubot", "@ci help")
    await here.quiet()
    assert len(here.answers(pull)) == 1
    assert ("refs/heads/nightly" in here.repo.refs, "refs/heads/nightly" in other.refs) == (True, False)


@pytest.mark.parametrize("message", [True, False])
async def test_a_repository_that_was_deleted_and_created_again_is_served(nightly: Town, message: bool) -> None:
    here = nightly
    here.repo.open_pull_request("hubot", "Faster")
    await here.quiet()
    if not message:
        here.github.webhooks.lose("repository")
    here.repo.delete("octocat")
    next(iter(here.app.installations.values())).repositories.remove(here.repo)
    anew = here.github.create_repository(REPOSITORY, people={"hubot": "write"})
    here.app.install(anew)
    await here.quiet()
    await repositories(here)  # the bot finds the repository although no webhook announced it
    pull = anew.open_pull_request("hubot", "Again")
    pull.comment("hubot", "@ci help")
    await here.quiet()
    assert len(here.answers(pull)) == 1
    await here.bot.timers.announce(REPOSITORY, "nightly", "2026-11-20T03:00:00Z")
    await here.quiet()
    assert "refs/heads/nightly" in anew.refs
    assert (await timer(here))["outcome"] == "done"  # type: ignore[index]


async def test_timers_of_an_archived_repository_stop_until_it_is_unarchived(nightly: Town) -> None:
    here = nightly
    here.repo.archive("octocat")
    await here.quiet()
    state = await timer(here)
    assert (state["outcome"], state["reason"]) == ("stopped", "it is archived on GitHub")  # type: ignore[index]
    assert await here.bot.timers.tick() == "announced 0"
    assert (await repositories(here)).text == "octocat/compiler: it is archived on GitHub, so its timers are stopped"
    here.repo.archive("octocat", archived=False)
    await here.quiet()
    assert (await timer(here))["outcome"] == "never"  # type: ignore[index]
    assert (await repositories(here)).ok


@pytest.mark.parametrize(
    ("event", "reason"),
    [
        ("delete", "it was deleted on GitHub"),
        ("remove", "the App was taken off it"),
        ("uninstall", "the App was uninstalled from its account"),
        ("suspend", "the App's installation on its account is suspended"),
    ],
)
async def test_timers_of_a_repository_that_is_no_longer_ours_stop_and_say_why(
    nightly: Town, event: str, reason: str
) -> None:
    here, installation = nightly, next(iter(nightly.app.installations.values()))
    match event:
        case "delete":
            here.repo.delete("octocat")
        case "remove":
            installation.remove(here.repo)
        case "uninstall":
            installation.delete()
        case "suspend":
            installation.suspend()
    await here.quiet()
    state = await timer(here)
    assert (state["outcome"], state["reason"]) == ("stopped", reason)  # type: ignore[index]
    assert not (await repositories(here)).ok
    if event == "suspend":
        installation.unsuspend()
        await here.quiet()
        assert (await timer(here))["outcome"] == "never"  # type: ignore[index]


async def test_a_newly_granted_permission_is_used_at_once(here: Town) -> None:
    """A token keeps the permissions of its creation for an hour."""
    installation = next(iter(here.app.installations.values()))
    installation.accepted = {name: level for name, level in PERMISSIONS.items() if name != "statuses"}
    pull = here.repo.open_pull_request("hubot", "Faster")
    await here.quiet()
    assert here.repo.statuses(pull.head_sha) == []
    assert len(await here.failures()) == 1
    installation.accept(PERMISSIONS)
    await here.quiet()
    pull.push()
    await here.quiet()
    assert [status.context for status in here.repo.statuses(pull.head_sha)] == ["ci/slow-tests"]
