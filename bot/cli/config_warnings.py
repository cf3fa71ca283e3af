"""Warnings of `check-config`: settings that are allowed and probably a mistake. The bot starts with them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from bot.cli.texts import NOTHING_REQUIRED, OWN_CONTEXT
from bot.github.commits.ours import own_contexts

if TYPE_CHECKING:
    from bot.config import Config, RepositoryConfig


def warnings_of(config: Config) -> Iterator[str]:
    """Yield one line for each setting that is probably a mistake."""
    for name in config.repositories:
        repository = config.repository(name)
        if repository is not None:
            yield from _of(f"repositories.{name}", repository)


def _of(place: str, config: RepositoryConfig) -> Iterator[str]:
    if config.merge is not None and not config.merge.required:
        yield NOTHING_REQUIRED.format(place=place)
    own = own_contexts(config)
    required = {
        "merge.required": config.merge.required if config.merge else (),
        "nightly.require": config.nightly.require if config.nightly else (),
        "last_good.require": config.last_good.require if config.last_good else (),
    }
    for key, names in required.items():
        yield from (OWN_CONTEXT.format(place=place, key=key, name=name) for name in names if name in own)
