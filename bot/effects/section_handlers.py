"""Mark the sections of the sticky comment that show an older commit as out of date after a push.

A section stays marked until it is written for the new head.
"""

from __future__ import annotations

from bot.core.events import PullRequestEvent
from bot.effects import texts
from bot.effects.section_state import SECTION, SECTION_TEXT
from bot.effects.sections import MarkOutOfDate, ShowSection
from bot.plan.handler import Context, Plan, Router

NAME, SHOW_NAME = "sections-out-of-date", "sections"


def section_router(sections: tuple[str, ...]) -> Router:
    """Return the handlers for the sections of the sticky comment that depend on the head."""
    router = Router()

    @router.on(SECTION_TEXT.name, name=SHOW_NAME)
    async def show(context: Context) -> Plan:
        """Plan to write the text of a section that an internal event brings."""
        event = SECTION_TEXT.read(context.delivery.payload)
        effect = ShowSection(event.section, event.number, event.sha, event.text, event.as_of)
        return Plan((effect,), why=texts.SECTION_COMPUTED.format(section=event.section, sha=event.sha))

    # Always on: a section may outlive the key in app.yaml that enabled it.
    @router.on("pull_request", "synchronize", name=NAME)
    async def mark(context: Context) -> Plan:
        """Plan to mark the sections that show another commit, if there are any."""
        pull = PullRequestEvent.of(context.delivery.payload).pull
        keys = [SECTION.of(context.repository.id, pull.number, section) for section in sections]
        states = [await context.records.get(key) for key in keys]
        if not any(state is not None and state.head != state.mark(pull.head_sha) for state in states):
            return Plan(why=texts.NO_SECTION_TO_MARK)
        return Plan((MarkOutOfDate(pull.number, sections),), why=texts.HEAD_HAS_MOVED.format(number=pull.number))

    return router
