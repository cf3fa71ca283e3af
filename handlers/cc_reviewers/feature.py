"""Everything of `cc @octocat`."""

from __future__ import annotations

from bot.feature import Feature
from handlers.cc_reviewers import handler
from handlers.cc_reviewers.effects import ReportReviewers, RequestReviewers

FEATURE = Feature(
    name="cc_reviewers",
    config=("cc_reviewers",),
    router=handler.router,
    effects=(ReportReviewers, RequestReviewers),
)
