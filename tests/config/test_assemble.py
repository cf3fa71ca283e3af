"""Keys that features declare themselves: off unless app.yaml names them, and checked like all others."""

import json

import pytest

from bot.config import Config, ConfigError, read_config_text
from bot.config.assemble import config_with
from bot.config.docs import feature_pages, features_table, keys_table
from bot.config.keys import Keys
from bot.config.repository_keys import ConfigKey
from bot.config.schema import schema_text


class Greeting(Keys):
    text: str = "hello"


class Scheduled(Keys):
    @property
    def schedule(self) -> str:
        return "05:00"


GREETING = ConfigKey("greeting", Greeting, description="A greeting.")
WITH = config_with([GREETING])


def parsed(keys: str, model: type[Config] = WITH) -> Config:
    return read_config_text(f"repositories:\n  octocat/compiler: {keys}\n".encode(), "app.yaml", model)


@pytest.mark.parametrize(
    ("keys", "text"), [("{}", None), ("{greeting: true}", "hello"), ("{greeting: {text: hi}}", "hi")]
)
def test_a_declared_key_switches_its_feature_on_and_off(keys: str, text: str | None) -> None:
    config = parsed(keys).repositories["octocat/compiler"]
    found = config.of(GREETING)
    assert (found.text if found else None) == text
    assert ("greeting" in config.features) == (text is not None)


def test_a_fault_below_a_declared_key_has_its_place() -> None:
    with pytest.raises(ConfigError) as raised:
        parsed("{greeting: {txt: hi}}")
    assert "greeting.txt" in str(raised.value.faults[0])


def test_a_key_is_unknown_to_a_model_without_it() -> None:
    without = config_with([])
    with pytest.raises(ConfigError):
        parsed("{greeting: true}", without)
    with pytest.raises(AttributeError):
        parsed("{}", without).repositories["octocat/compiler"].of(GREETING)


def test_a_declared_key_is_in_the_schema_and_in_the_tables() -> None:
    assert "| [`repositories.OWNER/NAME.greeting`](configuration/greeting.md) |" in keys_table(WITH)
    (page,) = (text for path, text in feature_pages(WITH).items() if path.name == "greeting.md")
    assert "| `greeting.text` |" in page
    assert "| [`greeting`](configuration/greeting.md) | A greeting. | `text` | off |" in features_table(WITH)
    assert json.loads(schema_text(WITH))["$defs"]["Greeting"]["properties"]["text"]["default"] == "hello"


def test_a_declared_key_next_to_the_repositories_is_named_with_its_place() -> None:
    with pytest.raises(ConfigError, match="greeting: is a key of a repository; indent it below a repository"):
        read_config_text(b"greeting: true\nrepositories: {octocat/compiler: }\n", "app.yaml", WITH)


def test_a_name_may_be_declared_only_once() -> None:
    for name, keys in (
        ("greeting", [GREETING, GREETING]),
        ("api", [ConfigKey("api", Greeting, description="A word.")]),
    ):
        with pytest.raises(ValueError, match=f"^two features declare the key {name} of app.yaml$"):
            config_with(keys)
    with pytest.raises(ValueError, match=r"^RepositoryConfig has an attribute timers, so no key can be named so$"):
        config_with([ConfigKey("timers", Greeting, description="A greeting.")])
    clocks = [ConfigKey(name, Scheduled, description="A word.", timer="nightly") for name in ("first", "second")]
    with pytest.raises(ValueError, match=r"^two features declare the timer nightly$"):
        config_with(clocks)


def test_the_example_of_defaults_switches_the_first_such_feature_off() -> None:
    first, second = (
        ConfigKey(name, Greeting, description="A feature.", example=False, position=position)
        for name, position in (("later", 2), ("sooner", 1))
    )
    assert config_with([first, second]).model_fields["defaults"].examples == [{"sooner": False}]
