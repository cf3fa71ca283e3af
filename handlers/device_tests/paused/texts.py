"""Every sentence about paused targets, and the functions that build texts from them. Pure.

The reason of a pause is text from outside, so it is shown as code.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime

from bot.github.text.markdown import code, truncate
from handlers.device_tests.paused.rule import LONGEST_PAUSE, TargetPause

# Help
PAUSE_SUMMARY = (
    "Pause a lab's target until a day (UTC): it accepts no requests, and missing nightly runs do not degrade it. "
    "The people in the lab's `contact_ids` can use it too."
)
RESUME_SUMMARY = "End the pause of a target. The people in the lab's `contact_ids` can use it too."

# Answers
USAGE = "Name a target and a day, as in {command}."
RESUME_USAGE = "Name a target, as in {command}."
BAD_DATE = "{date} is not a day in the next {days} days. Write it as in {example}."
UNKNOWN_TARGET = "No lab has a target named {name}."
NOT_YOURS = "You need maintain access to pause or resume {name}, or your ID in `contact_ids` of its lab in app.yaml."
NOT_PAUSED = "{name} is not paused."
OVERTAKEN = "{name}: a later comment paused or resumed it, so that applies."
PAUSED = "{name} is paused until {until}{reason}. Requests that no lab has claimed were cancelled."
RESUMED = "{name} accepts requests again."

# What check runs, answers and help say
REFUSED = "{name} accepts no requests now: {by} paused it until {until}{reason}."
NOTICE = "This target is paused until {until}, by {by}{reason}."
HELP = "Paused: {targets}."
HELP_TARGET = "{name} until {until}"
REASON = ", because {reason}"

# The audit log
CANCELLED = "cancelled {jobs} of {target}"

MOST_REASON = 200
"""Characters of a reason."""


def day_text(moment: float) -> str:
    """Write the day on which a pause ends."""
    return f"{datetime.fromtimestamp(moment, UTC):%Y-%m-%d}"


def reason_text(pause: TargetPause) -> str:
    """Return the end of a sentence that says why a target is paused; empty if nobody said it."""
    return REASON.format(reason=code(truncate(pause.reason, MOST_REASON))) if pause.reason else ""


def paused_refusal(name: str, pause: TargetPause) -> str:
    """Return the answer to a request for a test on a paused target."""
    return REFUSED.format(name=code(name), by=code(pause.by), until=day_text(pause.until), reason=reason_text(pause))


def paused_notice(pause: TargetPause | None) -> str:
    """Return what check runs of a target say while it is paused, empty otherwise."""
    if pause is None:
        return ""
    return NOTICE.format(by=code(pause.by), until=day_text(pause.until), reason=reason_text(pause))


def paused_text(paused: Mapping[str, TargetPause]) -> str:
    """Return what help says about paused targets, given by LAB/TARGET; empty for none."""
    names = [HELP_TARGET.format(name=code(name), until=day_text(pause.until)) for name, pause in paused.items()]
    return HELP.format(targets=", ".join(names)) if names else ""


def bad_date(text: str, example: str) -> str:
    """Say that a text is no day on which a pause can end; `example` is one that is."""
    return BAD_DATE.format(date=code(truncate(text, 40)), days=LONGEST_PAUSE, example=code(example))
