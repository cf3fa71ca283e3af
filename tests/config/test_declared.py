"""Keys that features declare themselves: off unless app.yaml names them, and checked like all others."""

import pytest

from bot.config import Config, ConfigError, parse_config
from bot.config.declared import config_with
from bot.config.keys import ConfigKey, Keys


class Greeting(Keys):
    text: str = "hello"


GREETING = ConfigKey("greeting", Greeting, description="A greeting.")
WITH = config_with([GREETING])


def parsed(keys: str, model: type[Config] = WITH) -> Config:
    return parse_config(f"repositories:\n  octocat/compiler: {keys}\n".encode(), "app.yaml", model)


@pytest.mark.parametrize(
    ("keys", "text"), [("{}", None), ("{greeting: true}", "hello"), ("{greeting: {text: hi}}", "hi")]
)
def test_a_declared_key_switches_its_feature(keys: str, text: str | None) -> None:
    config = parsed(keys).repositories["octocat/compiler"]
    found = config.of(GREETING)
    assert (found.text if found else None) == text
    assert ("greeting" in config.features) == (text is not None)


def test_a_fault_below_a_declared_key_has_its_place() -> None:
    with pytest.raises(ConfigError) as raised:
        parsed("{greeting: {txt: hi}}")
    assert "greeting.txt" in str(raised.value.faults[0])


def test_a_declared_key_is_unknown_to_the_plain_model() -> None:
    with pytest.raises(ConfigError):
        parsed("{greeting: true}", Config)
    assert parsed("{}", Config).repositories["octocat/compiler"].of(GREETING) is None


def test_a_name_is_declared_once() -> None:
    for keys in ([GREETING, GREETING], [ConfigKey("merge", Greeting, description="A greeting.")]):
        with pytest.raises(ValueError, match="declared twice"):
            config_with(keys)
