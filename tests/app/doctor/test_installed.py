"""Where the App is installed: few requests for each hundred repositories, whatever has changed."""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass

import aiohttp
import pytest
from gidgethub import BadRequest

from bot.app.doctor.installed import INSTALLATIONS_LAST, MOST_LOOKUPS, REPOSITORIES_LAST, InstallationScan
from bot.app.doctor.judge import InstallationState, judge_repositories
from bot.app.load import parse_config
from bot.github.access import InstalledRepository
from bot.github.app import GitHubApp
from bot.github.repositories.installed import InstalledRepositories
from bot.github.repositories.known import KnownRepository
from sandbox import App, GitHubSandbox
from tests.github.virtual import JumpingTime

LIST = {"GET /app/installations": 1}
TOKEN = "POST /app/installations/{installation_id}/access_tokens"
READ = "GET /repos/{owner}/{repo}"
REPOSITORIES, LOOK_UP = "GET /installation/repositories", "GET /repos/{owner}/{repo}/installation"


@dataclass
class Office:
    """A GitHub with an App, and the client of the App on a clock that the test sets."""

    github: GitHubSandbox
    app: App
    client: GitHubApp
    time: JumpingTime

    def scan(self, *names: str) -> InstallationScan:
        """Return a scan for an app.yaml with these repositories."""
        text = "repositories:\n" + "".join(f"  {name}:\n" for name in names)
        return InstallationScan(self.client, parse_config(text.encode(), "app.yaml"), lambda: self.time.now)

    def install(self, *names: str) -> None:
        for name in names:
            self.app.install(self.github.create_repository(name))

    async def requests(
        self, scan: InstallationScan, stored: Sequence[KnownRepository] = (), *, idle: bool = True
    ) -> tuple[Counter[str], list[InstallationState]]:
        """Scan, and return the requests and the states."""
        self.github.requests.clear()
        states = await scan.states(stored, idle=idle)
        return self.github.requests.counts(), states


@pytest.fixture
async def office() -> AsyncIterator[Office]:
    github, time = GitHubSandbox(), JumpingTime()
    async with github.serve() as url, aiohttp.ClientSession() as session:
        app = github.create_app(webhook_secret="0123456789abcdef")
        client = GitHubApp(session, app_id=app.id, private_key=app.private_key, api_url=url, timing=time.timing())
        yield Office(github, app, client, time)
        assert not github.violations, github.violations


def names(count: int, owner: str = "octocat") -> list[str]:
    return [f"{owner}/compiler-{number}" for number in range(count)]


@pytest.mark.parametrize(("count", "pages"), [(1, 1), (10, 1), (99, 1), (250, 3)])
async def test_the_first_scan_lists_a_hundred_repositories_with_a_request_and_the_next_ones_ask_nothing(
    office: Office, count: int, pages: int
) -> None:
    office.install(*names(count))
    scan = office.scan(*names(count))
    requests, states = await office.requests(scan)
    assert requests == LIST | {TOKEN: 1, REPOSITORIES: pages}
    assert all(state.listed is not None and state.permissions for state in states)
    office.time.now += INSTALLATIONS_LAST - 1
    assert (await office.requests(scan))[0] == {}
    office.time.now += 1
    assert (await office.requests(scan))[0] == LIST
    office.time.now += REPOSITORIES_LAST
    assert (await office.requests(scan))[0] == LIST | {TOKEN: 1, REPOSITORIES: pages}


async def test_a_pattern_of_an_account_without_the_app_is_found(office: Office) -> None:
    """The doctor said nothing, because no repository of app.yaml was missing."""
    office.install("octocat/compiler")
    scan = office.scan("'octocat/*'", "'Octo-Org/*'")
    await scan.states(())
    assert scan.uninstalled_patterns == ["Octo-Org/*"]
    (finding,) = judge_repositories([], (), scan.uninstalled_patterns)
    assert not finding.ok
    assert finding.text == "Octo-Org/*: the App is not installed on this account, so no repository matches"


async def test_what_the_doctor_lists_is_not_listed_again_for_others(office: Office) -> None:
    """The doctor and the others had a list each."""
    office.install("octocat/compiler")
    installed = InstalledRepositories(office.client, lambda: office.time.now)
    config = parse_config(b"repositories: {octocat/compiler: }", "app.yaml")
    await InstallationScan(office.client, config, lambda: office.time.now, installed).states(())
    office.github.requests.clear()
    (installation,) = await installed.installations()
    assert [repository.full_name for repository in await installed.repositories_of(installation.id)] == [
        "octocat/compiler"
    ]
    assert office.github.requests.counts() == {}


async def test_an_installation_costs_two_requests_a_day(office: Office) -> None:
    repositories = [name for number in range(30) for name in names(1, f"octo-org-{number}")]
    office.install(*repositories)
    assert (await office.requests(office.scan(*repositories)))[0] == LIST | {TOKEN: 30, REPOSITORIES: 30}


async def test_clients_use_what_was_listed(office: Office) -> None:
    office.install("octocat/compiler")
    await office.scan("octocat/compiler").states(())
    office.github.requests.clear()
    assert await office.client.place_of("octocat/compiler") == InstalledRepository(
        next(iter(office.app.installations)), office.github.repositories["octocat/compiler"].id
    )
    assert office.github.requests.counts() == {}


async def test_clients_of_repositories_that_match_a_pattern_use_the_first_list(office: Office) -> None:
    """Timers of 10,000 new repositories asked for an installation and a token each, until the doctor's next round."""
    office.install(*names(2))
    await office.scan("'octocat/*'").states(())
    office.github.requests.clear()
    for name in names(2):
        place = await office.client.place_of(name)
        await office.client.client(place).getitem("/repos/{+repo}", {"repo": name})
        with pytest.raises(BadRequest):
            await office.client.client(place).getitem("/repos/{+repo}/contents/missing", {"repo": name})
    # The list has just said that GitHub shows them, so the clients believe a 404.
    assert office.github.requests.counts() == {READ: 2, "GET /repos/{owner}/{repo}/contents/{path}": 2, TOKEN: 1}


async def test_a_change_that_a_webhook_reported_is_listed_at_once(office: Office) -> None:
    office.install("octocat/compiler")
    scan = office.scan("octocat/compiler", "octocat/other")
    await scan.states(())
    office.install("octocat/other")
    was_outdated = scan.is_outdated
    office.client.forget(next(iter(office.app.installations)))
    assert (was_outdated, scan.is_outdated) == (False, True)
    requests, states = await office.requests(scan)
    assert (requests[REPOSITORIES], scan.is_outdated) == (1, False)
    assert all(state.listed is not None for state in states)


async def test_a_suspended_installation_is_noticed_and_asked_for_again_until_it_works(office: Office) -> None:
    office.install("octocat/compiler")
    scan = office.scan("octocat/compiler")
    await scan.states(())
    (installation,) = office.app.installations.values()
    installation.suspend()
    office.time.now += INSTALLATIONS_LAST
    requests, (state,) = await office.requests(scan)
    assert (requests, state.suspended, state.suspended_by) == (LIST, True, "octocat")
    assert office.client.suspended is not None
    assert (await office.requests(scan))[0] == LIST
    installation.unsuspend()
    requests, (state,) = await office.requests(scan)
    assert (state.suspended, state.listed is None) == (False, False)
    assert office.client.suspended is None


async def test_a_known_repository_is_found_by_its_id_without_a_request_after_a_rename(office: Office) -> None:
    office.install("octocat/compiler")
    repository = office.github.repositories["octocat/compiler"]
    stored = [KnownRepository(repository.id, "octocat/compiler", "octocat/compiler")]
    repository.rename("octocat", "compiler-next")
    office.install("octocat/compiler")  # somebody has created another one under the old name
    requests, (state,) = await office.requests(office.scan("octocat/compiler"), stored)
    assert state.listed is not None
    assert (state.listed.id, state.listed.full_name) == (repository.id, "octocat/compiler-next")
    assert LOOK_UP not in requests


async def test_repositories_without_the_app_are_looked_up_in_turns(office: Office) -> None:
    office.install("octocat/compiler")
    missing = [f"octocat/missing-{number}" for number in range(MOST_LOOKUPS + 5)]
    scan = office.scan("octocat/compiler", *missing)
    requests, states = await office.requests(scan)
    assert requests[LOOK_UP] == len(missing)
    assert [state.repository for state in states if state.permissions is None] == missing
    for _ in range(3):
        assert (await office.requests(scan))[0] == LIST | {LOOK_UP: MOST_LOOKUPS}
    office.install(missing[-1])
    await office.requests(scan)
    _, states = await office.requests(scan)
    assert next(state for state in states if state.repository == missing[-1]).listed is not None


async def test_a_scan_waits_for_points_of_the_next_minute(office: Office) -> None:
    office.install("octocat/compiler")
    office.github.faults.add("GET", "/app/installations", status=429, headers={"Retry-After": "40"})
    _, (state,) = await office.requests(office.scan("octocat/compiler"))
    assert state.listed is not None
    assert 40 in [round(seconds) for seconds in office.time.slept]
