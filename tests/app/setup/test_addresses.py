"""A person's input: lenient where the meaning is clear, and a remedy for everything else."""

from __future__ import annotations

import pytest

from bot.app.doctor.judge import WEBHOOK_PATH
from bot.app.registration import EVENTS, PERMISSIONS
from bot.app.setup.addresses import WEBHOOK, GitHubSite, github_site, organization_name, public_address
from bot.app.setup.site import LONGEST_NAME, app_manifest

GITHUB = GitHubSite()
ENTERPRISE = GitHubSite("https://github.example.com")


@pytest.mark.parametrize(
    ("written", "web", "api"),
    [
        ("", "https://github.com", "https://api.github.com"),
        (" github.com ", "https://github.com", "https://api.github.com"),
        ("https://www.github.com/", "https://github.com", "https://api.github.com"),
        ("https://octo.ghe.com", "https://octo.ghe.com", "https://api.octo.ghe.com"),
        ("GitHub.example.com", "https://github.example.com", "https://github.example.com/api/v3"),
        ("https://github.example.com:8443/", "https://github.example.com:8443", "https://github.example.com:8443/api/v3"),
        ("http://127.0.0.1:9", "http://127.0.0.1:9", "http://127.0.0.1:9/api/v3"),
    ],
)  # fmt: skip
def test_the_address_of_a_github_is_accepted_in_many_forms(written: str, web: str, api: str) -> None:
    site = github_site(written)
    assert (site.web, site.api) == (web, api)


@pytest.mark.parametrize(
    ("written", "problem"),
    [
        ("http://github.example.com", "must start with https://"),
        ("https://github.example.com/octo-org", "no /octo-org"),
        ("https://hubot:sesame@github.example.com", "must not contain a user name or password"),
        ("ftp://github.example.com", "as in https://github.example.com"),
        ("github .com", "must be a web address"),
        ("javascript://x%0aalert(1)", "must be a web address"),
    ],
)
def test_an_address_that_is_no_github_gets_a_remedy(written: str, problem: str) -> None:
    with pytest.raises(ValueError, match="The address of GitHub") as caught:
        github_site(written)
    assert problem in str(caught.value)
    assert "sesame" not in str(caught.value)


@pytest.mark.parametrize(
    ("written", "site", "url"),
    [
        ("https://ci.example.org/", GITHUB, "https://ci.example.org"),
        ("ci.example.org", GITHUB, "https://ci.example.org"),
        ("https://ci.example.org/webhook", GITHUB, "https://ci.example.org"),
        ("https://CI.example.org/nightjar", GITHUB, "https://ci.example.org/nightjar"),
        ("http://10.1.2.3:8080", ENTERPRISE, "http://10.1.2.3:8080"),
        ("http://nightjar", ENTERPRISE, "http://nightjar"),
    ],
)
def test_a_public_address_is_accepted_in_many_forms(written: str, site: GitHubSite, url: str) -> None:
    assert public_address(written, site) == url


@pytest.mark.parametrize(
    ("written", "problem"),
    [
        ("  ", "Enter the address"),
        ("http://ci.example.org", "must start with https://"),
        ("https://127.0.0.1:8080", "cannot reach 127.0.0.1"),
        ("https://192.168.1.2", "cannot reach 192.168.1.2"),
        ("https://[::1]", "cannot reach ::1"),
        ("http://localhost:8080", "cannot reach localhost"),
        ("https://build.local", "cannot reach build.local"),
        ("https://ci.example.org?x=1", "no ? and no #"),
        ("https://a b", "must be a web address"),
    ],
)
def test_an_address_that_github_cannot_reach_gets_a_remedy(written: str, problem: str) -> None:
    with pytest.raises(ValueError) as caught:
        public_address(written, GITHUB)
    assert problem in str(caught.value)


def test_the_owner_of_the_app_is_recognized() -> None:
    assert [organization_name(text) for text in ("", " octo-org ", "@octo-org")] == ["", "octo-org", "octo-org"]
    for text in ("octo org", "-octo", "a/b", "x" * 40, "https://github.com/"):
        with pytest.raises(ValueError, match="cannot be the name of an organization"):
            organization_name(text)
    assert GITHUB.new_app_page("") == "https://github.com/settings/apps/new"
    assert GITHUB.new_app_page("octo-org") == "https://github.com/organizations/octo-org/settings/apps/new"


def test_the_manifest_requests_what_the_docs_and_the_doctor_say() -> None:
    manifest = app_manifest("o" * 39, "https://ci.example.org", "http://127.0.0.1:8080/setup/created")
    assert manifest["default_permissions"] == PERMISSIONS
    assert manifest["default_events"] == list(EVENTS)
    assert manifest["hook_attributes"] == {"url": "https://ci.example.org/webhook", "active": True}
    assert len(manifest["name"]) <= LONGEST_NAME
    assert manifest["public"] is False
    assert WEBHOOK == WEBHOOK_PATH
