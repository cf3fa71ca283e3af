"""The setup from the printed address to app.yaml, and everything else that a person may try."""

from __future__ import annotations

import json
from pathlib import Path
from urllib.parse import urlencode

import aiohttp
import pytest

from bot.app.load import load_config
from bot.app.registration import EVENTS, PERMISSIONS
from bot.cli.env_file import read_env_file
from bot.config.environment import Settings
from handlers.results.config import LAB_RESULTS
from sandbox.github import GitHubSandbox
from tests.app.setup.conftest import SetupWalk, Shown, setup_walk

CONVERSIONS = "/app-manifests/{code}/conversions"


async def test_the_setup_leads_from_the_button_to_app_yaml(walk: SetupWalk) -> None:
    assert "Public address of this bot" in (await walk.enter()).text
    page = await walk.create()
    assert (page.status, page.url) == (200, f"{walk.url}/setup/install")
    assert "not installed yet" in page.text
    made = walk.install()
    assert (made.permissions, made.events) == (PERMISSIONS, EVENTS)
    assert (made.webhook_url, made.callback_urls) == (f"{walk.url}/webhook", (f"{walk.url}/login/callback",))

    env = walk.folder / "nightjar.env"
    settings = Settings.from_environment(read_env_file(env))
    assert (settings.app_id, settings.private_key.get_secret_value()) == (str(made.id), made.private_key)
    assert [one.get_secret_value() for one in settings.webhook_secrets] == [made.webhook_secret]
    assert settings.api_url == f"{walk.github.url}/api/v3"
    assert read_env_file(env)["GITHUB_CLIENT_SECRET"] == made.client_secret
    assert env.stat().st_mode & 0o777 == 0o600

    page = await walk.get("/setup/install")
    page = await walk.post(page.action, **{n: page.field(n) for n in ("form", "config")})
    assert "Which labs send results?" in page.text
    async with walk.browser.post(page.action, data={n: page.field(n) for n in ("form", "config")},
                                 allow_redirects=False) as answer:  # fmt: skip
        assert (answer.status, answer.headers["Location"]) == (303, "/setup/checks")
    config = load_config(walk.folder / "app.yaml")
    assert (config.public_url, list(config.repositories)) == (walk.url, ["octocat/compiler"])
    assert walk.site.ready.is_set()


async def test_the_address_works_once(walk: SetupWalk) -> None:
    assert (await walk.get("/setup")).status == 403
    first = await walk.enter()
    assert "token" not in first.url
    assert (await walk.get(walk.announced[0])).status == 200, "the same browser can open it again"
    async with aiohttp.ClientSession(cookie_jar=aiohttp.CookieJar(unsafe=True)) as other:
        async with other.get(walk.announced[0]) as answer:
            assert answer.status == 403
            assert "has printed a new one" in await answer.text()
        async with other.get(f"{walk.url}/setup?token=guess") as answer:
            assert answer.status == 403
        assert len(walk.announced) == 2
        async with other.get(walk.announced[1]) as answer:
            assert answer.status == 200


@pytest.mark.parametrize("host", ["attacker.example.com", "ci.example.org:8080", "127.0.0.1.nip.io", "[", "10.0.0.1"])
async def test_another_host_name_of_this_machine_is_refused(walk: SetupWalk, host: str) -> None:
    await walk.enter()
    for path in ("/setup", walk.announced[0], "/setup/install", "/setup/created?code=c&state=s"):
        assert (await walk.get(path, Host=host)).status == 421
    assert (await walk.get("/setup", Host="localhost:9000")).status == 200, "a forwarded port"


async def test_only_our_own_form_starts_the_bot(walk: SetupWalk) -> None:
    await walk.enter()
    await walk.create()
    walk.install()
    assert (await walk.post("/setup/start", form="guess", config="repositories: {}\n")).status == 403
    assert (await walk.post("/setup/start", config="repositories: {}\n")).status == 403
    assert not (walk.folder / "app.yaml").exists()


async def test_another_site_opens_only_the_empty_form(walk: SetupWalk) -> None:
    await walk.enter()
    choice = {"public_url": "https://attacker.example.org", "owner": "attacker", "github": "https://github.com"}
    for fields in (choice, {"public_url": "https://attacker.example.org"}, {"owner": "attacker"}):
        page = await walk.get(f"/setup?{urlencode(fields)}", **{"Sec-Fetch-Site": "cross-site"})
        assert (page.status, [page.field(name) for name in choice]) == (200, ["", "", ""])
        assert "attacker" not in page.text
        for token in ({}, {"form": ""}, {"form": "guess"}):
            page = await walk.post("/setup", **fields, **token)
            assert (page.status, "attacker" in page.text) == (403, False)


async def test_a_strangers_body_is_not_read_and_an_invalid_form_is_an_error(walk: SetupWalk) -> None:
    broken = {"Content-Type": "multipart/form-data"}
    async with (
        aiohttp.ClientSession() as stranger,
        stranger.post(f"{walk.url}/setup/start", data=b"x", headers=broken) as answer,
    ):
        assert answer.status == 403
    await walk.enter()
    async with walk.browser.post(f"{walk.url}/setup/start", data=b"x", headers=broken) as answer:
        assert answer.status == 400


async def test_only_the_page_with_the_button_sends_a_form_to_github(walk: SetupWalk) -> None:
    policies = [(await walk.enter()).headers, (await walk.choose()).headers]
    own, both = ([part for part in one["Content-Security-Policy"].split("; ") if "form" in part] for one in policies)
    assert own == ["form-action 'self'"]
    assert both == [f"form-action 'self' {walk.github.url}"]
    assert policies[1]["Cache-Control"] == "no-store"


async def test_each_wrong_entry_has_a_remedy_next_to_it(walk: SetupWalk) -> None:
    await walk.enter()
    page = await walk.choose(public_url="http://localhost", owner="no such", github="https://github.com")
    assert page.status == 422
    assert "2 entries are invalid" in page.text
    assert page.field("owner") == "no such"
    page = await walk.choose(github='"><script>alert(1)</script>')
    assert "<script>alert" not in page.text
    without = walk.github.url.removeprefix("http://")
    assert "must be a web address" not in (await walk.choose(github=without)).text


async def test_an_organization_may_own_the_app(walk: SetupWalk) -> None:
    await walk.enter()
    page = await walk.choose(owner="octo-org")
    assert page.action.startswith(f"{walk.github.url}/organizations/octo-org/settings/apps/new?state=")
    assert json.loads(page.field("manifest"))["name"] == "Nightjar for octo-org"


@pytest.mark.parametrize(
    "pasted",
    [
        "https://github.com/octo-org",
        "github.com/octo-org/",
        "https://github.com/orgs/octo-org/repositories",
        "@octo-org",
    ],
)
async def test_the_organization_may_be_pasted_as_an_address(walk: SetupWalk, pasted: str) -> None:
    await walk.enter()
    page = await walk.choose(owner=pasted)
    assert "/organizations/octo-org/settings/apps/new" in page.action


async def test_the_address_is_probed_before_the_app_exists(walk: SetupWalk) -> None:
    await walk.enter()
    assert "This bot answers at its public address" in (await walk.choose()).text
    other = await walk.choose(public_url=walk.github.url)
    assert "Something else than this bot answers" in other.text
    away = await walk.choose(public_url="http://127.0.0.1:9")
    assert "We could not reach this bot at its public address" in away.text
    assert away.field("manifest"), "the person may know better"
    async with aiohttp.ClientSession() as stranger, stranger.get(f"{walk.url}/setup/probe") as answer:
        assert len(await answer.text()) == 32


async def test_labs_are_added_one_by_one_and_edited(walk: SetupWalk) -> None:
    await walk.enter()
    await walk.create()
    walk.install()
    page = await walk.get("/setup/install")
    page = await walk.post(page.action, **{n: page.field(n) for n in ("form", "config")})
    assert "octocat/compiler</option>" in page.text.replace("<wbr>", "")
    entered = {"form": page.field("form"), "repository": "octocat/compiler"}

    async def add(lab: str, targets: str, text: str, path: str = "/setup/labs") -> Shown:
        return await walk.post(path, **entered, lab=lab, targets=targets, config=text, add="1")

    wrong = await add("", "board", page.field("config"))
    assert (wrong.status, "at least one target" in wrong.text) == (422, True)
    wrong = await add("my lab", "board", page.field("config"))
    assert (wrong.status, wrong.field("lab"), wrong.field("config")) == (422, "my lab", page.field("config"))
    page = await add("my-lab", "board, rpi-4@lab:1", page.field("config"))
    assert page.field("lab") == ""
    # The other button does not lose what was entered.
    page = await add("second", "adreno", page.field("config"), "/setup/start")
    assert not walk.site.ready.is_set()
    page = await add("my-lab", "board", page.field("config"))
    async with walk.browser.post(
        f"{walk.url}/setup/start", data={**entered, "config": page.field("config")}, allow_redirects=False
    ) as answer:
        assert answer.status == 303
    text = (walk.folder / "app.yaml").read_text()
    assert text.startswith("# Written by Nightjar's set-up.")
    results = load_config(walk.folder / "app.yaml").repositories["octocat/compiler"].of(LAB_RESULTS)
    assert results is not None
    assert {lab: list(keys.targets) for lab, keys in results.labs.items()} == {
        "my-lab": ["board"],
        "second": ["adreno"],
    }


async def test_a_name_that_is_taken_is_changed_on_github(walk: SetupWalk) -> None:
    walk.github.create_app("nightjar-ci")
    await walk.enter()
    refused = await walk.create()
    assert (refused.status, "already been taken" in refused.text) == (422, True)
    page = await walk.post(str(refused.url), manifest=refused.field("manifest"), name="Nightjar 2", create="1")
    assert page.url == f"{walk.url}/setup/install"


async def test_a_callback_that_was_not_started_here_stores_nothing(walk: SetupWalk) -> None:
    await walk.enter()
    for query in ("code=abc&state=guess", "code=abc", "state=x", ""):
        page = await walk.get(f"/setup/created?{query}")
        assert (page.status, "started elsewhere" in page.text) == (400, True)
    assert walk.github.requests.records == []
    assert list(walk.folder.iterdir()) == []


async def test_going_back_or_reloading_after_the_app_exists_does_no_harm(walk: SetupWalk) -> None:
    await walk.enter()
    page = await walk.choose()
    await walk.create()
    text = (walk.folder / "nightjar.env").read_text()
    for path in ("/setup", "/setup/created?code=abc&state=guess", "/setup/checks"):
        assert (await walk.get(path)).url == f"{walk.url}/setup/install"
    # A second press of the button: GitHub creates a second App, whose code is not used.
    again = await walk.post(page.action, manifest=page.field("manifest"), name="Another", create="1")
    assert again.url == f"{walk.url}/setup/install"
    assert (walk.folder / "nightjar.env").read_text() == text


async def test_an_expired_code_is_explained(walk: SetupWalk) -> None:
    await walk.enter()
    walk.github.faults.add("POST", CONVERSIONS, status=404)
    page = await walk.create()
    assert page.status == 410
    assert f"Delete the App at {walk.github.url}/settings/apps" in page.text.replace("<wbr>", "")
    assert list(walk.folder.iterdir()) == []


async def test_after_an_outage_of_github_a_reload_tries_again(walk: SetupWalk) -> None:
    await walk.enter()
    walk.github.faults.add("POST", CONVERSIONS, drop="before")
    page = await walk.create()
    assert (page.status, "Reload this page" in page.text) == (502, True)
    assert (await walk.get(page.url)).url == f"{walk.url}/setup/install"


async def test_a_lost_answer_is_explained(walk: SetupWalk) -> None:
    """The App exists, but its secrets are lost: a reload says so, and so does the next setup in this folder."""
    await walk.enter()
    walk.github.faults.add("POST", CONVERSIONS, drop="after")
    page = await walk.create()
    async with setup_walk(walk.github, walk.folder) as later:
        text = (await later.enter()).text
        assert "ended before it stored an App" in text
        assert f'href="{walk.github.url}/settings/apps"' in text
    assert (await walk.get(page.url)).status == 410
    assert "ended before" not in (await walk.get("/setup")).text


@pytest.mark.parametrize("text", ["<html>", "[]", "{}", '{"id": 1, "slug": "x", "pem": "no key"}'])
async def test_an_odd_answer_stores_nothing(walk: SetupWalk, text: str) -> None:
    await walk.enter()
    walk.github.faults.add("POST", CONVERSIONS, status=201, text=text)
    page = await walk.create()
    assert (page.status, "GitHub answered without" in page.text) == (502, True)
    assert list(walk.folder.iterdir()) == []


async def test_existing_files_are_not_overwritten(walk: SetupWalk) -> None:
    await walk.enter()
    page = await walk.choose()
    (walk.folder / "nightjar.env").write_text("# mine\n")
    assert (await walk.get("/setup")).status == 409
    back = await walk.post(page.action, manifest=page.field("manifest"), create="1")
    assert (back.status, "move the file away" in back.text) == (409, True)
    assert not walk.github.requests.records, "the code is still valid"
    (walk.folder / "nightjar.env").unlink()
    assert (await walk.get(back.url)).url == f"{walk.url}/setup/install"


async def test_a_folder_that_cannot_be_written_does_not_use_up_the_code(github: GitHubSandbox, tmp_path: Path) -> None:
    # /proc is read-only for everybody, root too.
    async with setup_walk(github, tmp_path, Path("/proc/nightjar.env")) as walk:
        await walk.enter()
        page = await walk.create()
        assert page.status == 500
        assert "Make the folder writable" in page.text
        assert not github.requests.records


async def test_app_yaml_is_checked_before_it_is_written(walk: SetupWalk) -> None:
    await walk.enter()
    await walk.create()
    walk.install()
    form = (await walk.get("/setup/install")).field("form")
    wrong = "repositories:\n  octocat/compiler: {slow_test: true}\n"
    page = await walk.post("/setup/start", form=form, config=wrong)
    assert page.status == 422
    assert "app.yaml:2:22: repositories.octocat/compiler.slow_test" in page.text.replace("<wbr>", "")
    assert page.field("config") == wrong
    (walk.folder / "app.yaml").write_text(wrong)
    assert "Nightjar uses it unchanged" in (await walk.get("/setup/install")).text
    page = await walk.post("/setup/start", form=form)
    assert (page.status, "slow_test" in page.text) == (422, True)
    page = await walk.post("/setup/start", form=form, config="repositories: {octocat/compiler: {}}\n")
    assert (page.status, "never overwrites" in page.text) == (422, True)
    assert not walk.site.ready.is_set()


async def test_a_setup_continues_after_a_restart(walk: SetupWalk) -> None:
    await walk.enter()
    await walk.create()
    walk.install()
    async with setup_walk(walk.github, walk.folder) as later:
        page = await later.enter()
        assert page.url == f"{later.url}/setup/install"
        assert page.field("config").endswith(f"public_url: {walk.url}\n\nrepositories:\n  octocat/compiler:\n")


async def test_while_github_is_down_the_installation_page_retries(walk: SetupWalk) -> None:
    await walk.enter()
    walk.github.faults.add("GET", "/app", status=401, times=None)
    page = await walk.create()
    assert (page.status, "This page retries" in page.text) == (200, True)


async def test_deliveries_are_refused_until_the_bot_serves(walk: SetupWalk) -> None:
    async with walk.browser.post(f"{walk.url}/webhook", data=b"{}", headers={"Host": "ci.example.org"}) as answer:
        assert (answer.status, answer.headers["Retry-After"]) == (503, "60")
