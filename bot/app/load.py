"""app.yaml and a repository's own file as all features read them.

Only the features' declarations of keys are imported (`handlers/<feature>/config.py`): the features take a second.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path

from bot import config
from bot.config import Config, RepositoryConfig
from bot.config.assemble import config_with, repository_model
from bot.config.keys import Keys
from bot.config.repository_file import parse_repository_file, read_repository_file


@cache
def app_model() -> type[Config]:
    """Return the model of app.yaml with the keys of all features."""
    from handlers import CONFIG_KEYS

    return config_with(CONFIG_KEYS)


def app_repository_model() -> type[RepositoryConfig]:
    """Return the model of a repository's keys in app.yaml, those of all features."""
    return repository_model(app_model())


def load_config(path: str | Path) -> Config:
    """Read app.yaml. Raises `ConfigError` with every error in it."""
    return config.read_config(path, app_model())


def parse_config(raw: bytes, file: str) -> Config:
    """Read the text of an app.yaml; `file` is its name in errors. Raises `ConfigError` with every error in it."""
    return config.read_config_text(raw, file, app_model())


def load_repository_file(path: str | Path) -> Keys:
    """Read a repository's own file. Raises `ConfigError` with every error in it."""
    return read_repository_file(path, app_repository_model())


def parse_own_file(raw: bytes, file: str) -> Keys:
    """Read the text of a repository's own file. Raises `ConfigError` with every error in it."""
    return parse_repository_file(raw, app_repository_model(), file)
