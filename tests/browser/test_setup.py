"""The setup in a real browser and with the real process: from the printed address to the first delivery."""

from __future__ import annotations

import json
import re
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path

import aiohttp
import pytest
import pytest_asyncio
from playwright.async_api import Browser

from bot.app.setup.run import open_port, setup_site
from sandbox.github import GitHubSandbox
from sandbox.processes import Program
from tests.app.setup.conftest import place_in
from tests.browser.conftest import Walk, profile, walking
from tests.handlers.dashboard.hostile import ATTACK
from tests.running import start
from tests.waiting import until

pytestmark = [pytest.mark.asyncio(loop_scope="session"), pytest.mark.xdist_group("browser")]
PRINTED = re.compile(r"http://127\.0\.0\.1:\d+/setup\?token=\S+")


@dataclass
class Starting:
    """`nightjar serve` in an empty folder; `output` is everything that it printed."""

    github: GitHubSandbox
    folder: Path
    process: Program
    output: list[str]

    async def printed(self) -> str:
        """Return the address printed in the terminal."""
        assert self.process.stderr is not None
        while not (match := PRINTED.search("".join(self.output))):
            line = await self.process.stderr.readline()
            assert line, "".join(self.output)
            self.output.append(line.decode())
        return match[0]

    async def stop(self) -> str:
        """Stop the process; return everything that it printed."""
        self.process.terminate()
        output, err = await self.process.communicate()
        return "".join(self.output) + output.decode() + err.decode()


@pytest_asyncio.fixture(loop_scope="session")
async def github() -> AsyncIterator[GitHubSandbox]:
    made = GitHubSandbox()
    made.create_repository("octocat/compiler")
    async with made.serve():
        yield made


@pytest_asyncio.fixture(loop_scope="session")
async def starting(github: GitHubSandbox, tmp_path: Path) -> AsyncIterator[Starting]:
    process = await start("serve", "--port", "0", env={}, cwd=tmp_path)
    try:
        yield Starting(github, tmp_path, process, [])
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()


async def test_the_setup_leads_from_the_printed_address_to_the_first_delivery(
    browser: Browser, starting: Starting
) -> None:
    address = await starting.printed()
    url = address.partition("/setup")[0]
    async with walking(browser, url) as walk:
        context = walk.page.context
        await walk.go(address.removeprefix(url))
        await walk.seen("setup")
        page = walk.page

        await page.get_by_label("Public address of this bot").fill("localhost:8080")
        await page.get_by_role("button", name="Continue").click()
        await page.get_by_text("GitHub cannot reach localhost").wait_for()
        await walk.seen("setup-wrong", colors=True)
        await page.get_by_label("Public address of this bot").fill(url)
        await page.get_by_label("Address of GitHub").fill(starting.github.url)
        await page.get_by_role("button", name="Continue").click()
        await page.get_by_role("button", name="Create the App on GitHub").wait_for()
        await walk.seen("setup-button", colors=True)
        await page.get_by_role("button", name="Create the App on GitHub").click()
        await page.get_by_role("button", name="Create GitHub App").click()

        await page.get_by_text("not installed yet").wait_for()
        await walk.seen("setup-install")
        async with context.expect_page() as opened:
            await page.get_by_role("link", name="Install nightjar-ci").click()
        tab = await opened.value
        starting.github.webhooks.hold()
        await tab.get_by_label("octocat/compiler").check()
        await tab.get_by_role("button", name="Install").click()
        await tab.get_by_text("Installed on octocat/compiler").wait_for()
        await tab.close()

        # The page continues by itself.
        await page.get_by_label("app.yaml").wait_for()
        await walk.seen("setup-config", colors=True)
        await page.get_by_role("button", name="Continue").click()
        await page.get_by_label("Name of the lab").fill("my-lab")
        await page.get_by_label("Targets").fill("board")
        await page.get_by_role("button", name="Add the lab").click()
        await page.get_by_text("is in the text below").wait_for()
        await walk.seen("setup-labs", colors=True)
        await page.get_by_role("button", name="Write app.yaml and start").click()
        await page.get_by_text("Waiting for the first delivery").wait_for()
        await walk.seen("setup-waiting")
        starting.github.webhooks.release()
        await page.get_by_text("The first delivery has arrived").wait_for()
        await page.get_by_role("heading", name="Set-up is complete").wait_for()
        await page.get_by_text("permissions").wait_for()
        await walk.seen("setup-done", colors=True)
        assert "Repositories" in await walk.follow("Open the dashboard")

        # A pull request gets an answer.
        pull = starting.github.repositories["octocat/compiler"].open_pull_request("octocat", "Fuse", "Saves a pass.")
        pull.comment("octocat", "@ci help")
        await starting.github.until(lambda: any(comment.user.type == "Bot" for comment in pull.comments))
        assert not walk.complaints
    # Strangers, who reach the same port through the public address, see nothing of the setup.
    async with aiohttp.ClientSession() as stranger:
        for path in ("/setup", "/setup/checks", "/setup/install", address.removeprefix(url)):
            for headers, status in (({}, (303, 403)), ({"Host": "ci.example.org"}, (421,))):
                async with stranger.get(url + path, headers=headers, allow_redirects=False) as answer:
                    assert answer.status in status
                    assert answer.headers.get("Location", "/setup/checks") == "/setup/checks"
                    assert "octocat" not in await answer.text()
    assert (starting.folder / "nightjar.env").stat().st_mode & 0o777 == 0o600
    printed = await starting.stop()
    [app] = [app for app in starting.github.apps.values() if app.slug == "nightjar-ci"]
    for secret in (app.webhook_secret, app.client_secret, app.private_key.splitlines()[5]):
        assert str(secret) not in printed


async def test_without_scripts_the_page_reloads_itself(browser: Browser, github: GitHubSandbox, tmp_path: Path) -> None:
    announced: list[str] = []
    with open_port("127.0.0.1", 0) as listening:
        async with (
            setup_site(place_in(tmp_path, announced), listening) as site,
            profile(browser, java_script_enabled=False) as context,
        ):
            page = await context.new_page()
            await page.goto(announced[0])
            await page.get_by_label("Public address of this bot").fill(announced[0].partition("/setup")[0])
            await page.get_by_label("Address of GitHub").fill(github.url)
            await page.get_by_role("button", name="Continue").click()
            await page.get_by_role("button", name="Create the App on GitHub").click()
            await page.get_by_role("button", name="Create GitHub App").click()
            await page.get_by_text("not installed yet").wait_for()
            [app] = [app for app in github.apps.values() if app.slug == "nightjar-ci"]
            app.install(github.repositories["octocat/compiler"])
            await page.get_by_label("app.yaml").wait_for()
            await page.get_by_role("button", name="Continue").click()
            await page.get_by_role("button", name="Write app.yaml and start").click(no_wait_after=True)
            await until(site.ready.is_set)
    assert (tmp_path / "app.yaml").exists()


async def test_a_setup_killed_before_storing_the_app_says_so_at_the_next_start(
    browser: Browser, starting: Starting
) -> None:
    held = starting.github.faults.pause("POST", "/app-manifests/{code}/conversions", when="after")
    address = await starting.printed()
    async with profile(browser) as context:
        page = await context.new_page()
        await page.goto(address)
        await page.get_by_label("Public address of this bot").fill("https://ci.example.org")
        await page.get_by_label("Address of GitHub").fill(starting.github.url)
        await page.get_by_role("button", name="Continue").click()
        await page.get_by_role("button", name="Create the App on GitHub").click()
        await page.get_by_role("button", name="Create GitHub App").click(no_wait_after=True)
        await held.reached.wait()
        starting.process.kill()
        await starting.process.wait()
        held.abandon()
        assert not (starting.folder / "nightjar.env").exists()
        starting.process, starting.output = await start("serve", "--port", "0", env={}, cwd=starting.folder), []
        # In the old tab, the browser may still be opening its page about the answer that never came.
        page = await context.new_page()
        await page.goto(await starting.printed())
        await page.get_by_text("ended before it stored").wait_for()
        link = page.get_by_role("link", name="GitHub's list of your Apps")
        assert await link.get_attribute("href") == f"{starting.github.url}/settings/apps"
        await starting.stop()


async def test_text_from_outside_is_escaped_on_every_page(browser: Browser, starting: Starting) -> None:
    address = await starting.printed()
    url, github = address.partition("/setup")[0], starting.github
    async with walking(browser, url) as walk:
        page = walk.page
        page.on("dialog", lambda dialog: walk.complaints.append(dialog.message))
        await walk.go(address.removeprefix(url))
        for label in ("Public address of this bot", "Organization", "Address of GitHub"):
            await page.get_by_label(label, exact=True).fill(ATTACK)
        await page.get_by_role("button", name="Continue").click()
        await page.get_by_text("3 entries are invalid").wait_for()
        assert await page.get_by_label("Organization", exact=True).input_value() == ATTACK
        await only_text(walk, github)
        await page.get_by_label("Public address of this bot").fill(url)
        await page.get_by_label("Organization", exact=True).fill("")
        await page.get_by_label("Address of GitHub").fill(github.url)
        await page.get_by_role("button", name="Continue").click()
        await page.get_by_role("button", name="Create the App on GitHub").click()
        await page.get_by_role("button", name="Create GitHub App").click()
        await page.get_by_text("not installed yet").wait_for()

        [app] = [app for app in github.apps.values() if app.slug == "nightjar-ci"]
        claimed = {"id": app.id, "slug": ATTACK, "html_url": f"javascript:alert(1)//{ATTACK}", "permissions": {}}
        github.faults.add("GET", "/app", status=422, message=ATTACK, times=None)
        await walk.go("/setup/install")
        await only_text(walk, github, ATTACK)
        github.faults.clear()
        github.faults.add("GET", "/app", status=200, text=json.dumps(claimed), times=None)
        await walk.go("/setup/install")
        await only_text(walk, github, ATTACK)
        app.install(github.repositories["octocat/compiler"])
        github.faults.add("GET", "/installation/repositories", status=200, text=json.dumps(hostile_listing()))
        await walk.go("/setup/install")
        await only_text(walk, github, ATTACK)
        await page.get_by_label("app.yaml").fill(f"{ATTACK}: 1")
        await page.get_by_role("button", name="Continue").click()
        await page.get_by_role("alert").wait_for()
        await only_text(walk, github, ATTACK)
        await page.get_by_label("app.yaml").fill("repositories:\n  octocat/compiler:\n")
        await page.get_by_role("button", name="Continue").click()
        for label in ("Name of the lab", "Targets"):
            await page.get_by_label(label).fill(ATTACK[:64])
        await page.get_by_role("button", name="Add the lab").click()
        await page.get_by_role("alert").wait_for()
        await only_text(walk, github, ATTACK[:64])
        await page.get_by_label("Name of the lab").fill("")
        await page.get_by_role("button", name="Write app.yaml and start").click()
        await page.get_by_role("heading", name="Checks").wait_for()
        await only_text(walk, github, ATTACK)
        assert not walk.complaints


def hostile_listing() -> dict[str, object]:
    """Return repositories of GitHub's answer, one of which has an impossible name."""
    return {"total_count": 2, "repositories": [{"full_name": "octocat/compiler"}, {"full_name": f"octocat/{ATTACK}"}]}


async def only_text(walk: Walk, github: GitHubSandbox, text: str = "") -> None:
    """Require that a page shows a text from outside, and that nothing on it leads elsewhere or runs."""
    assert text in await walk.text()
    assert await walk.foreign_links(f"{github.url}/") == []
    assert await walk.page.eval_on_selector_all("main script, main [onclick], main [onerror]", "all => all.length") == 0
