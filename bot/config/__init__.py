"""app.yaml -> typed settings; every fault with its line. `bot.app.load` reads it with the keys of all features."""

from bot.config.faults import ConfigError, ConfigFault
from bot.config.load import check, read_config, read_config_text
from bot.config.model import Config, RepositoryConfig
from bot.config.types import Role, matches

__all__ = [
    "Config",
    "ConfigError",
    "ConfigFault",
    "RepositoryConfig",
    "Role",
    "check",
    "matches",
    "read_config",
    "read_config_text",
]
