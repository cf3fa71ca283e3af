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
from tests.conversations.town import CONFIG, REPOSITORY, Town
from tests.conversations.town import town as start_town

NIGHTLY = CONFIG.rstrip() + "\n    nightly: {at: '03:00', timezone: UTC, require: []}\n"


@pytest.fixture
async def nightly(tmp_path: Path) -> AsyncIterator[Town]:
    async with start_town(f"sqlite:///{tmp_path}/nightjar.db", config=NIGHTLY) as town:
        await town.bot.watch.checked.wait()
        yield town


async def timer(town: Town) -> TimerState:
    """Ask with a token, because nobody else may read about a repository that is no longer ours."""
    token, _ = await TokenStore(town.bot.engine.database.connector, API).create(REPOSITORY, seconds=60.0)
    _, _, answer = await town.ask(f"/api/v1/repos/{REPOSITORY}/timers", token)
    return answer["timers"][0]  # type: ignore[no-any-return]


async def repositories(town: Town) -> Finding:
    return {finding.check: finding for finding in await town.bot.watch.doctor.examine()}[Check.REPOSITORIES]


@pytest.mark.parametrize("message", [True, False])
async def test_a_renamed_repository_is_served_under_its_new_name(nightly: Town, message: bool) -> None:
    town = nightly
    pull = town.repo.open_pull_request("hubot", "Faster")
    await town.quiet()
    if not message:
        town.github.webhooks.lose("repository")
    town.repo.rename("octocat", "compiler-next")
    await town.quiet()
    finding = await repositories(town)
    assert finding.text == "octocat/compiler: it is now called octocat/compiler-next on GitHub"
    assert finding.remedy == "change its name in app.yaml; until then the bot finds it by its ID"
    pull.comment("hubot", "@ci help")
    await town.quiet()
    assert len(town.answers(pull)) == 1
    # A timer only knows the name in app.yaml, and GitHub does not redirect writes.
    await town.bot.timers.announce(REPOSITORY, "nightly", "2026-11-20T03:00:00Z")
    await town.quiet()
    assert "refs/heads/nightly" in town.repo.refs
    assert await town.failures() == []


async def test_a_transferred_repository_is_served_under_its_new_owner(nightly: Town) -> None:
    town = nightly
    pull = town.repo.open_pull_request("hubot", "Faster")
    town.app.install(town.github.create_repository("example-lab/tools"))
    await town.quiet()
    town.repo.transfer("octocat", "example-lab")
    await town.quiet()
    assert (await repositories(town)).text == "octocat/compiler: it is now called example-lab/compiler on GitHub"
    pull.comment("hubot", "@ci help")
    await town.quiet()
    assert len(town.answers(pull)) == 1
    await town.bot.timers.announce(REPOSITORY, "nightly", "2026-11-20T03:00:00Z")
    await town.quiet()
    assert "refs/heads/nightly" in town.repo.refs
    assert await town.failures() == []


@pytest.mark.parametrize("order", [list, reversed])
async def test_a_command_from_before_a_transfer_is_answered_under_the_new_owner(
    nightly: Town, order: Callable[[list[SentDelivery]], Iterable[SentDelivery]]
) -> None:
    """Its payload names the installation of the old owner, which no longer includes the repository."""
    town = nightly
    pull = town.repo.open_pull_request("hubot", "Faster")
    town.app.install(town.github.create_repository("example-lab/tools"))
    await town.quiet()
    town.github.webhooks.hold()
    pull.comment("hubot", "@ci help")
    town.repo.transfer("octocat", "example-lab")
    town.github.webhooks.release(order)
    await town.quiet()
    assert len(town.answers(pull)) == 1
    assert await town.failures() == []


@pytest.mark.parametrize("message", [True, False])
async def test_a_new_repository_under_the_old_name_is_not_taken_for_the_renamed_one(
    nightly: Town, message: bool
) -> None:
    """Settings in app.yaml are for the repository that had the name; the new one may be anybody's."""
    town = nightly
    pull = town.repo.open_pull_request("hubot", "Faster")
    await town.quiet()
    if not message:
        town.github.webhooks.lose("repository")
    town.repo.rename("octocat", "compiler-next")
    new_repo = town.github.create_repository(REPOSITORY, people={"hubot": "write"})
    town.app.install(new_repo)
    new_pull = new_repo.open_pull_request("hubot", "Other")
    new_pull.comment("hubot", "@ci help")
    await town.quiet()
    assert new_pull.comments_by("nightjar[bot]") == []
    assert (await repositories(town)).text == "octocat/compiler: it is now called octocat/compiler-next on GitHub"
    await town.bot.timers.announce(REPOSITORY, "nightly", "2026-11-20T03:00:00Z")
    pull.comment("hubot", "@ci help")
    await town.quiet()
    assert len(town.answers(pull)) == 1
    assert ("refs/heads/nightly" in town.repo.refs, "refs/heads/nightly" in new_repo.refs) == (True, False)


@pytest.mark.parametrize("message", [True, False])
async def test_a_repository_that_was_deleted_and_created_again_is_served(nightly: Town, message: bool) -> None:
    town = nightly
    town.repo.open_pull_request("hubot", "Faster")
    await town.quiet()
    if not message:
        town.github.webhooks.lose("repository")
    town.repo.delete("octocat")
    next(iter(town.app.installations.values())).repositories.remove(town.repo)
    new_repo = town.github.create_repository(REPOSITORY, people={"hubot": "write"})
    town.app.install(new_repo)
    await town.quiet()
    await repositories(town)  # the bot finds the repository although no webhook announced it
    pull = new_repo.open_pull_request("hubot", "Again")
    pull.comment("hubot", "@ci help")
    await town.quiet()
    assert len(town.answers(pull)) == 1
    await town.bot.timers.announce(REPOSITORY, "nightly", "2026-11-20T03:00:00Z")
    await town.quiet()
    assert "refs/heads/nightly" in new_repo.refs
    assert (await timer(town))["outcome"] == "done"  # type: ignore[index]


async def test_timers_of_an_archived_repository_stop_until_it_is_unarchived(nightly: Town) -> None:
    town = nightly
    town.repo.archive("octocat")
    await town.quiet()
    state = await timer(town)
    assert (state["outcome"], state["reason"]) == ("stopped", "it is archived on GitHub")  # type: ignore[index]
    assert await town.bot.timers.tick() == "announced 0"
    assert (await repositories(town)).text == "octocat/compiler: it is archived on GitHub, so its timers are stopped"
    town.repo.archive("octocat", archived=False)
    await town.quiet()
    assert (await timer(town))["outcome"] == "never"  # type: ignore[index]
    assert (await repositories(town)).ok


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
    town, installation = nightly, next(iter(nightly.app.installations.values()))
    match event:
        case "delete":
            town.repo.delete("octocat")
        case "remove":
            installation.remove(town.repo)
        case "uninstall":
            installation.delete()
        case "suspend":
            installation.suspend()
    await town.quiet()
    state = await timer(town)
    assert (state["outcome"], state["reason"]) == ("stopped", reason)  # type: ignore[index]
    assert not (await repositories(town)).ok
    if event == "suspend":
        installation.unsuspend()
        await town.quiet()
        assert (await timer(town))["outcome"] == "never"  # type: ignore[index]


async def test_a_newly_granted_permission_is_used_at_once(town: Town) -> None:
    """A token keeps the permissions of its creation for an hour."""
    installation = next(iter(town.app.installations.values()))
    installation.accepted = {name: level for name, level in PERMISSIONS.items() if name != "statuses"}
    pull = town.repo.open_pull_request("hubot", "Faster")
    await town.quiet()
    assert town.repo.statuses(pull.head_sha) == []
    assert len(await town.failures()) == 1
    installation.accept(PERMISSIONS)
    await town.quiet()
    pull.push()
    await town.quiet()
    assert [status.context for status in town.repo.statuses(pull.head_sha)] == ["ci/slow-tests"]
