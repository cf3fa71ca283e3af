"""app.yaml -> typed settings; every fault with its line."""

from bot.config.faults import ConfigError, ConfigFault
from bot.config.load import check, load_config, parse_config
from bot.config.model import CcReviewers, Config, Help, JenkinsServer, RepositoryConfig, Rerun, SlowTests
from bot.config.types import Role, matches

__all__ = [
    "CcReviewers",
    "Config",
    "ConfigError",
    "ConfigFault",
    "Help",
    "JenkinsServer",
    "RepositoryConfig",
    "Rerun",
    "Role",
    "SlowTests",
    "check",
    "load_config",
    "matches",
    "parse_config",
]
