"""Settings of a repository with the keys of all features."""

from __future__ import annotations

from typing import Any

from bot.app.load import app_repository_model
from bot.config import RepositoryConfig
from bot.config.keys import Keys
from bot.config.repository_file import parse_repository_file
from bot.config.repository_keys import ConfigKey, K

MODEL = app_repository_model()


def repository_config(**keys: Any) -> RepositoryConfig:
    """Return the settings of a repository with these keys in app.yaml."""
    return MODEL(**keys)


def own_file(text: str | bytes, config: RepositoryConfig | None = None) -> Keys:
    """Read a repository's own file; `config` is what app.yaml says about the repository."""
    return parse_repository_file(text.encode() if isinstance(text, str) else text, MODEL, config=config)


def enabled(config: RepositoryConfig, key: ConfigKey[K]) -> K:
    """Return the settings of a feature, which must be on."""
    section = config.of(key)
    assert section is not None
    return section
