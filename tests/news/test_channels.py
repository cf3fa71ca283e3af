"""Channels that app.yaml names but that have no webhook in the environment: the start fails, and names the variable."""

from __future__ import annotations

import pytest
from pydantic import SecretStr

from bot.app.load import parse_config
from bot.config.environment import Settings
from bot.core.errors import SettingsError
from bot.news.channels import check_channels
from tests.config.test_environment import GOOD

CONFIG = """
repositories:
  octocat/compiler:
    main_failures: {to: [discord, issue]}
  octocat/docs:
    main_failures: {to: [slack, discord]}
    results: {bucket: device-results, labs: {example-lab: {targets: [adreno]}}}
    nightly: {}
    regressions: {to: [slack]}
"""
DISCORD = (
    "DISCORD_WEBHOOK_URL is not set, but octocat/compiler names discord below main_failures.to in app.yaml; "
    "set it, or name another place"
)
SLACK = (
    "SLACK_WEBHOOK_URL is not set, but octocat/docs names slack below {key}.to in app.yaml; "
    "set it, or name another place"
)
URL = SecretStr("https://chat.example.org/only-the-tests-know")


def problems(config: str, **addresses: SecretStr) -> tuple[str, ...]:
    """Return the problems that prevent the start."""
    settings = Settings.from_environment(GOOD).model_copy(update=addresses)
    try:
        check_channels(parse_config(config.encode(), "app.yaml"), settings)
    except SettingsError as error:
        return error.problems
    return ()


@pytest.mark.parametrize(
    ("addresses", "expected"),
    [
        ({}, (DISCORD, SLACK.format(key="main_failures"))),
        ({"discord_webhook_url": URL}, (SLACK.format(key="main_failures"),)),
        ({"slack_webhook_url": URL}, (DISCORD,)),
        ({"discord_webhook_url": URL, "slack_webhook_url": URL}, ()),
    ],
)
def test_each_missing_variable_is_reported_once(addresses: dict[str, SecretStr], expected: tuple[str, ...]) -> None:
    assert problems(CONFIG, **addresses) == expected


def test_missing_variables_of_regressions_are_reported_too() -> None:
    config = CONFIG.replace("main_failures: {to: [slack, discord]}", "main_failures: {}")
    assert problems(config, discord_webhook_url=URL) == (SLACK.format(key="regressions"),)


def test_messages_in_issues_need_no_channel() -> None:
    config = CONFIG.replace("discord, ", "").replace("slack, discord", "issue").replace("slack", "issue")
    assert problems(config) == ()
