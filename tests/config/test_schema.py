"""Editors must accept what the bot accepts, and mark what it refuses."""

import json
from pathlib import Path

import jsonschema_rs
import pytest
from ruamel.yaml import YAML

from bot.app.load import app_model, parse_config
from bot.config import ConfigError
from bot.config.schema import repository_file_schema_text, schema_text
from tests.settings import own_file

SCHEMA = json.loads(schema_text(app_model()))
REPOSITORY_FILE_SCHEMA = json.loads(repository_file_schema_text(app_model()))


@pytest.mark.parametrize("schema", [SCHEMA, REPOSITORY_FILE_SCHEMA], ids=["app.yaml", "nightjar.yaml"])
def test_the_schema_is_one_of_draft_2020_12(schema: dict[str, object]) -> None:
    assert schema["$schema"] == "https://json-schema.org/draft/2020-12/schema"
    jsonschema_rs.meta.validate(schema)


@pytest.mark.parametrize(
    "text",
    [
        (Path(__file__).parents[2] / "app.yaml").read_text(encoding="utf-8"),
        "repositories: {octocat/compiler: }",
        "repositories: {octocat/compiler: {help: , rerun: true, slow_tests: false, cc_reviewers: {}}}",
        "{repositories: {octocat/compiler: }, defaults: }",
    ],
)
def test_the_schema_accepts_what_the_bot_accepts(text: str) -> None:
    parse_config(text.encode(), "app.yaml")
    jsonschema_rs.Draft202012Validator(SCHEMA).validate(YAML(typ="safe", pure=True).load(text))


@pytest.mark.parametrize(
    "text",
    [
        "{}",
        "repositories: {}",
        "repositories: {octocat/compiler: true}",
        "repositories: {octocat/compiler: {help: off}}",
        "repositories: {octocat/compiler: {last_good: {}}}",
        "repositories: {octocat/compiler: {slow_tests: {branches: ['[']}}}",
        "repositories: {octocat/compiler: {rerun: {allow: []}}}",
        "repositories: {octocat/compiler: {rerun: {jenkins: [{}]}}}",
        "{repositories: {octocat/compiler: }, mentions: [ci]}",
        "{repositories: {octocat/compiler: }, public_url: ci.example.org}",
    ],
)
def test_the_schema_rejects_what_the_bot_refuses(text: str) -> None:
    with pytest.raises(ConfigError):
        parse_config(text.encode(), "app.yaml")
    assert not jsonschema_rs.Draft202012Validator(SCHEMA).is_valid(YAML(typ="safe", pure=True).load(text))


@pytest.mark.parametrize(
    "text",
    [
        "{}",
        "{help: , rerun: true, slow_tests: false, cc_reviewers: {}}",
        "{slow_tests: {allow: [write], branches: [main, 'release/*'], rerun: []}}",
        "{nightly: {require: []}, last_good: {}, main_failures: {branches: [main], contexts: ['*']}}",
    ],
)
def test_the_repository_schema_accepts_what_the_bot_accepts(text: str) -> None:
    own_file(text)
    jsonschema_rs.Draft202012Validator(REPOSITORY_FILE_SCHEMA).validate(YAML(typ="safe", pure=True).load(text))


@pytest.mark.parametrize(
    "text",
    [
        "{help: off}",
        "{nightly: true}",
        "{nightly: {branch: nightly}}",
        "{last_good: {require: []}}",
        "{slow_tests: {status: ci/slow-tests}}",
        "{rerun: {jenkins: []}}",
        "{results: {}}",
        "{repositories: {octocat/compiler: }}",
    ],
)
def test_the_repository_schema_rejects_what_the_bot_refuses(text: str) -> None:
    with pytest.raises(ConfigError):
        own_file(text)
    document = YAML(typ="safe", pure=True).load(text)
    assert not jsonschema_rs.Draft202012Validator(REPOSITORY_FILE_SCHEMA).is_valid(document)
