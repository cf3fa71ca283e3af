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
    for name in config.repositories:
        repository = config.repository(name)
        if repository is not None:
            yield from _warnings_of_repository(name, repository)


def _warnings_of_repository(repository: str, config: RepositoryConfig) -> Iterator[ConfigWarning]:
    place, keys = f"repositories.{repository}", ("repositories", repository)
    for key, text in config.warnings():
        yield ConfigWarning((*keys, key), text.format(place=place))
    bot_contexts = config.own_contexts
    for path, patterns in config.required():
        for context in patterns:
            if context in bot_contexts:
                text = OWN_CONTEXT.format(place=place, key=".".join(path), name=context)
                yield ConfigWarning((*keys, *path, context), text)


def place_of(root: Value, keys: Sequence[str]) -> tuple[int, int]:
    """Return line and column of the deepest of a repository's `keys` that app.yaml has, there or in `defaults`."""
    in_repository = _places(root, keys)
    # `repositories` and the name of the repository stand for `defaults`.
    in_defaults = _places(root, ["defaults", *keys[2:]])
    places = in_defaults if len(in_defaults) + 1 > len(in_repository) else in_repository
    return places[-1] if places else (root.line, root.column)


def _places(value: Value, keys: Sequence[str]) -> list[tuple[int, int]]:
    """Return line and column of each of the keys, up to the first that the file does not have."""
    places: list[tuple[int, int]] = []
    for key in keys:
        if isinstance(value.content, dict) and key in value.content:
            entry = value.content[key]
            places.append((entry.line, entry.column))
            value = entry.value
        elif isinstance(value.content, tuple):
            places += [(item.line, item.column) for item in value.content if item.content == key][:1]
            break
        else:
            break
    return places
