"""Every sentence that people who run suites read."""

from __future__ import annotations

# Discovery
EXITS = "its module calls sys.exit({status})"
NOT_ONE = "{value} is not a {kind} and returns none, but {found}"
UNKNOWN_NAME = "there is no {kind} named {name}; there are: {names}. To load one by its module, write MODULE:NAME"
NONE = "none"
