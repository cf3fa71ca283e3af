"""The key `cc_reviewers`: whether people named after `cc` are asked for a review."""

from __future__ import annotations

from bot.config.keys import Keys
from bot.config.repository_keys import ConfigKey


class CcReviewers(Keys):
    """`cc @hubot` in a pull request's body: the bot asks those named for a review."""


CC_REVIEWERS = ConfigKey(
    "cc_reviewers",
    CcReviewers,
    description="`cc @hubot` in a pull request's description requests a review.",
    example=False,
    position=30,
    shared=True,
    on_by_default=True,
)
KEYS = (CC_REVIEWERS,)
