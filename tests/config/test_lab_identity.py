"""Who may act for a lab, as app.yaml names it."""

from __future__ import annotations

import pytest

from bot.app.load import parse_config
from bot.config import ConfigError
from bot.results.settings.texts import NO_WORKFLOW_LIMIT
from handlers.results.texts import NO_AUDIENCE

LAB = "{{targets: [x], identity: {written}}}"
CONFIG = f"{{public}}repositories:\n  octocat/a:\n    results: {{{{bucket: b-1, labs: {{{{a: {LAB}}}}}}}}}\n"
PUBLIC = "public_url: https://ci.example.org\n"
UUID = "018f3c1a-5d2e-4b6f-8a77-0c9d1e2f3a4b"


def parse(written: str, public: str = PUBLIC) -> None:
    parse_config(CONFIG.format(public=public, written=written).encode(), "app.yaml")


@pytest.mark.parametrize(
    "written",
    [
        "{github_oidc: {repository_id: 1, environment: devices}}",
        "{github_oidc: {repository_id: 1, owner_id: 2, branch: main, issuer: 'https://host/_services/token'}}",
        f"{{buildkite_oidc: {{organization_id: {UUID}, pipeline_id: {UUID}, branch: main}}}}",
    ],
)
def test_an_identity_is_limited_to_an_environment_or_a_branch(written: str) -> None:
    parse(written)


@pytest.mark.parametrize(
    ("written", "said"),
    [
        ("{github_oidc: {repository_id: 1}}", NO_WORKFLOW_LIMIT),
        ("{github_oidc: {repository_id: octocat/lab, branch: main}}", "it must be the number that GitHub gave it"),
        ("{github_oidc: {repository_id: 1, branch: main, issuer: 'http://host'}}", "must start with https://"),
        (f"{{buildkite_oidc: {{organization_id: acme, pipeline_id: {UUID}, branch: main}}}}", "must be a UUID"),
        (f"{{buildkite_oidc: {{organization_id: {UUID}, pipeline_id: {UUID}}}}}", "the key branch is missing"),
    ],
)
def test_a_wider_identity_is_an_error(written: str, said: str) -> None:
    with pytest.raises(ConfigError) as caught:
        parse(written)
    assert said in str(caught.value)


def test_tokens_need_an_audience() -> None:
    with pytest.raises(ConfigError) as caught:
        parse("{github_oidc: {repository_id: 1, branch: main}}", public="")
    assert NO_AUDIENCE in str(caught.value)
