"""What app.yaml may say and hardly means: `check-config` warns of it, and the bot starts all the same."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from bot.github.ours import own_contexts

if TYPE_CHECKING:
    from bot.config import Config, RepositoryConfig

NOTHING_REQUIRED = (
    "{place}.merge: `required` is empty. Where the rules of the branch require nothing either, a pull request is "
    "merged when everything that CI has reported on it is green, and nothing tells whether more is to come. Name what "
    "matters."
)
OWN_CONTEXT = "{place}.{key}: {name} is a status of this bot, which never counts as CI: name what CI reports."


def warnings_of(config: Config) -> Iterator[str]:
    """Yield one line for each thing that is allowed and most likely not meant."""
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
