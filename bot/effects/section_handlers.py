"""Mark the sections of the sticky comment that show an older commit as out of date after a push.

A section stays marked until it is written for the new head. The predecessor left the links and lists of an older commit
in place without saying so.
"""

from __future__ import annotations

from bot.core.events import PullRequestEvent
from bot.effects import texts
from bot.effects.section_state import SECTION, SECTION_TEXT
from bot.effects.sections import MarkOutOfDate, ShowSection
from bot.plan.handler import Context, Plan, Router

NAME, SHOW_NAME = "sections-out-of-date", "sections"


def section_router(sections: tuple[str, ...]) -> Router:
    """Return the handlers of the sections of the sticky comment that show something about a head."""
    router = Router()

    @router.on(SECTION_TEXT.name, name=SHOW_NAME)
    async def show(context: Context) -> Plan:
        """Write the text that an internal event has for a section."""
        event = SECTION_TEXT.read(context.delivery.payload)
        effect = ShowSection(event.section, event.number, event.sha, event.text, event.as_of)
        return Plan((effect,), why=texts.SECTION_COMPUTED.format(section=event.section, sha=event.sha))

    # Always on: a section may outlive the key in app.yaml that enabled it.
    @router.on("pull_request", "synchronize", name=NAME)
    async def mark(context: Context) -> Plan:
        """Mark the sections that show another commit; do nothing if our records have none."""
        pull = PullRequestEvent.of(context.delivery.payload).pull
        keys = [SECTION.of(context.repository.id, pull.number, section) for section in sections]
        known = [await context.records.get(key) for key in keys]
        if not any(shown is not None and shown.head != shown.mark(pull.head_sha) for shown in known):
            return Plan(why=texts.NO_SECTION_TO_MARK)
        return Plan((MarkOutOfDate(pull.number, sections),), why=texts.HEAD_HAS_MOVED.format(number=pull.number))

    return router
