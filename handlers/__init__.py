"""The features, each a file or a folder; `bot/` takes all of them from here.

They are joined in `handlers.features` once somebody asks for them: whoever imports one module of one feature, such as a
process that reads a report, needs none of the others.
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from handlers.features import COMMANDS, ROUTER

__all__ = ["COMMANDS", "ROUTER"]


def __getattr__(name: str) -> Any:
    """Return one of `__all__`."""
    if name not in __all__:
        raise AttributeError(name)
    from handlers import features

    return getattr(features, name)
