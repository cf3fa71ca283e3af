"""The feature `cc_reviewers`: its configuration, records, handlers and effects."""

from __future__ import annotations

from bot.feature import Feature
from handlers.cc_reviewers import handler
from handlers.cc_reviewers.config import KEYS
from handlers.cc_reviewers.effects import ReportReviewers, RequestReviewers
from handlers.cc_reviewers.records import REVIEWERS

FEATURE = Feature(
    name="cc_reviewers",
    config=KEYS,
    records=(REVIEWERS,),
    router=handler.router,
    effects=(ReportReviewers, RequestReviewers),
    titles={"cc-reviewers": "Reviewers"},
)
