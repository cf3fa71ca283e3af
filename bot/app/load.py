"""app.yaml as all features read it."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path

from bot import config
from bot.config import Config, ConfigError
from bot.config.declared import config_with
from bot.config.keys import ConfigKey


def load_config(path: str | Path) -> Config:
    """Read app.yaml. Raises `ConfigError` with every error in it."""
    return _with_declared_keys(partial(config.load_config, path))


def parse_app_config(raw: bytes, file: str) -> Config:
    """Read the text of an app.yaml; `file` is its name in errors. Raises `ConfigError` with every error in it."""
    return _with_declared_keys(partial(config.parse_config, raw, file))


def _with_declared_keys(read: Callable[[type[Config]], Config]) -> Config:
    """Read with the keys of all features, which are imported only where it fails without: it takes a second."""
    try:
        return read(Config)
    except ConfigError:
        from handlers import FEATURES

        declared = [key for feature in FEATURES for key in feature.config if isinstance(key, ConfigKey)]
        if not declared:
            raise
        return read(config_with(declared))
