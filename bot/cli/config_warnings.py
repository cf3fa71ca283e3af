"""Warnings of `check-config`: settings that are allowed and probably a mistake. The bot starts with them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, NamedTuple

from bot.cli.texts import OWN_CONTEXT

if TYPE_CHECKING:
    from bot.config import Config, RepositoryConfig
    from bot.config.source import Value


class ConfigWarning(NamedTuple):
    """A probable mistake. `keys` lead to it: `("repositories", "octocat/compiler", "merge", "required", "ci/lint")`.

    The last key may be an item of a list.
    """

    keys: tuple[str, ...]
    text: str


def warnings_of(config: Config) -> Iterator[ConfigWarning]:
    """Yield a warning for each setting that is probably a mistake."""
    for entry, settings in config.configured.entries.items():
        yield from _warnings_of_entry(entry, settings)


def _warnings_of_entry(entry: str, config: RepositoryConfig) -> Iterator[ConfigWarning]:
    place, keys = f"repositories.{entry}", ("repositories", entry)
    for key, text in config.warnings():
        yield ConfigWarning((*keys, key), text.format(place=place))
    bot_contexts = config.own_contexts
    for path, patterns in config.required():
        for context in patterns:
            if context in bot_contexts:
                text = OWN_CONTEXT.format(place=place, key=".".join(path), name=context)
                yield ConfigWarning((*keys, *path, context), text)


def place_of(merged: Value, keys: Sequence[str]) -> tuple[str, int, int]:
    """Return file, line and column of the deepest of a repository's `keys` that the merged files have."""
    place, value = (merged.file, merged.line, merged.column), merged
    for key in keys:
        if isinstance(value.content, dict) and key in value.content:
            entry = value.content[key]
            place, value = (entry.file, entry.line, entry.column), entry.value
        elif isinstance(value.content, tuple):
            items = [item for item in value.content if item.content == key]
            return (items[0].file, items[0].line, items[0].column) if items else place
        else:
            break
    return place
