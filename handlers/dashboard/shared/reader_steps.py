"""Choose what a page suggests to do next by the role of its reader.

For readers who are not signed in, a page names the role that each line is for. Whoever is signed in gets the lines for
their role: see docs/decisions/next-steps-by-role.md. Pages are cached for each role.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from bot.core.page_paths import history_path
from bot.web.sign_in.viewers import ReaderRole
from handlers.dashboard.shared import answer_texts as texts
from handlers.dashboard.shared.answers import MOST_STEPS, Sentence, phrase
from handlers.results.config import QUARANTINE

if TYPE_CHECKING:
    from pydantic import BaseModel

    from bot.results.settings.quarantine import QuarantinedTest
    from bot.web.page_routes import Page, PageRequest
    from handlers.dashboard.shared.wiring import DashboardParts

DAY = 86400.0
EXPIRING_DAYS = 7
"""A maintainer reads of a quarantine that ends within so many days."""
OPERATE_PATH = "/operate"
STEPS = "next_steps"


def with_reader_steps(page: Page, parts: DashboardParts) -> Page:
    """Return a page whose next steps are those for its reader; a page without next steps stays as it is."""
    if STEPS not in page.model.model_fields:
        return page

    async def load(request: PageRequest) -> BaseModel:
        content = await page.load(request)
        role = await request.pages.viewers.role(request.request, request.repository)
        if role is ReaderRole.UNKNOWN:
            return content
        steps = steps_for(role, getattr(content, STEPS))
        if role is ReaderRole.MAINTAINER:
            steps = [*await _expiring(parts, request.repository), *steps][:MOST_STEPS]
        return content.model_copy(update={STEPS: steps})

    return replace(page, load=load)


def steps_for(role: ReaderRole, steps: Sequence[Sentence]) -> list[Sentence]:
    """Return the steps for a reader whose role is known, at most `MOST_STEPS`; a step may name the role it is for."""
    if role is ReaderRole.OPERATOR:
        return [[phrase(texts.OPERATOR), phrase(texts.SEE_OPERATE, OPERATE_PATH)], *steps][:MOST_STEPS]
    others = texts.CONTRIBUTOR if role is ReaderRole.MAINTAINER else texts.MAINTAINER
    return [step for step in steps if step[0].text != others][:MOST_STEPS]


async def _expiring(parts: DashboardParts, repository: str) -> list[Sentence]:
    """Return the step about the next quarantine that ends soon; none if there is none."""
    name_and_settings = parts.config.configured.name_and_settings(repository)
    if name_and_settings is None:
        return []
    settings = await parts.in_force(*name_and_settings)
    item = next_to_expire(settings.of(QUARANTINE), parts.moment())
    if item is None:
        return []
    words = texts.QUARANTINE_ENDS.format(day=item.until, test=texts.shortened(item.test))
    return [[phrase(texts.MAINTAINER), phrase(words, history_path(name_and_settings[0], item.test))]]


def next_to_expire(items: Sequence[QuarantinedTest], moment: float) -> QuarantinedTest | None:
    """Return the quarantine that ends first among those whose last day is within `EXPIRING_DAYS` of a moment."""
    today, last = (
        f"{datetime.fromtimestamp(seconds, UTC).date()}" for seconds in (moment, moment + EXPIRING_DAYS * DAY)
    )
    return min((item for item in items if today <= item.until <= last), key=lambda item: item.until, default=None)
