"""Warnings of `check-config`: settings that are allowed and probably a mistake. The bot starts with them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from bot.cli.texts import OWN_CONTEXT

if TYPE_CHECKING:
    from bot.config import Config, RepositoryConfig


def warnings_of(config: Config) -> Iterator[str]:
    """Yield one line for each setting that is probably a mistake."""
    for name in config.repositories:
        repository = config.repository(name)
        if repository is not None:
            yield from _of(f"repositories.{name}", repository)


def _of(place: str, config: RepositoryConfig) -> Iterator[str]:
    for _, text in config.warnings():
        yield text.format(place=place)
    own = config.own_contexts
    for keys, patterns in config.required():
        key = ".".join(keys)
        yield from (OWN_CONTEXT.format(place=place, key=key, name=name) for name in patterns if name in own)
