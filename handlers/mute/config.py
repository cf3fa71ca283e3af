"""The key `mute`: whether people may open the pull request of a muted test from its page."""

from __future__ import annotations

from pydantic_core import PydanticCustomError

from bot.config.own_file import REPOSITORY_FILE
from bot.config.repository_keys import RepositoryKey, ValidatedKeys
from bot.config.texts import NEEDS_RESULTS
from bot.config.types import LACKING
from handlers.mute.texts import NEEDS_FILE
from handlers.results.config import LAB_RESULTS


def _check(value: bool, keys: ValidatedKeys) -> None:  # a check gets the value of its key
    """Raise an error of type LACKING if there are no labs, or if the file that the pull request changes is not read."""
    if value and keys.has(LAB_RESULTS) and keys.of(LAB_RESULTS) is None:
        raise PydanticCustomError(LACKING, NEEDS_RESULTS)
    if value and keys.has(REPOSITORY_FILE) and not keys.of(REPOSITORY_FILE):
        raise PydanticCustomError(LACKING, NEEDS_FILE)


MUTE: RepositoryKey[bool] = RepositoryKey(
    "mute",
    bool,
    default=False,
    description=(
        "People with the write role can mute a failing test on its page: the bot opens a pull request that adds the "
        "test to `quarantine` in `.github/nightjar.yaml`. It needs write access to contents and pull requests."
    ),
    example=True,
    position=245,
    check=_check,
)
KEYS = (MUTE,)
