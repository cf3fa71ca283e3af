"""app.yaml as all features read it."""

from __future__ import annotations

from pathlib import Path

from bot import config
from bot.config import Config, ConfigError
from bot.config.declared import config_with
from bot.config.keys import ConfigKey


def load_config(path: str | Path) -> Config:
    """Read app.yaml. Raises `ConfigError` with every error in it.

    The features are imported only for a file that has keys which they declare themselves: it takes a second.
    """
    try:
        return config.load_config(path)
    except ConfigError:
        from handlers import FEATURES

        declared = [key for feature in FEATURES for key in feature.config if isinstance(key, ConfigKey)]
        if not declared:
            raise
        return config.load_config(path, config_with(declared))
