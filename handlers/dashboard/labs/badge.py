"""`/r/{owner}/{repo}/badge/{lab}/{target}.svg`: a badge with the state of a target, for a README."""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING

import sqlalchemy as sa
from markupsafe import Markup
from nightjar_formats.model import TARGET_NAME, TargetKey

from bot.core.aliases import Aliases
from bot.results.compare.quarantine import QuarantineOf
from bot.results.compare.target_health import TargetHealth, TargetReport
from bot.results.store.failures.failing_now import targets_now
from bot.results.store.lists.lab_reports import newest_run, unusable_targets
from bot.web.openapi import Parameter
from bot.web.page_files import PageFile
from handlers.dashboard.labs.page import LAB_PART
from handlers.dashboard.shared import texts
from handlers.dashboard.shared.settings import quarantine_of, results_of
from handlers.results.config import RENAMES

if TYPE_CHECKING:
    from bot.web.page_routes import PageRequest
    from handlers.dashboard.shared.wiring import DashboardParts

LONGEST_LABEL, LONGEST_MESSAGE = 60, 30
CHARACTER, PADDING = 6.6, 10.0
"""Pixels of a character of the font, about, and beside each text; `textLength` fits the text to its place."""
# No `xml:space`, no style and no script: a page that embeds a badge gets shapes and text alone.
_BADGE = Markup(
    '<svg xmlns="http://www.w3.org/2000/svg" width="{width:.0f}" height="20" role="img" '
    'aria-label="{label}: {message}">'
    "<title>{label}: {message}</title>"
    '<rect width="{width:.0f}" height="20" rx="3" fill="{color}"/>'
    '<path d="M3 0h{left:.0f}v20H3a3 3 0 0 1-3-3V3a3 3 0 0 1 3-3z" fill="#3f4643"/>'
    '<g fill="#fff" font-family="Verdana,DejaVu Sans,sans-serif" font-size="11">'
    '<text x="{padding:.0f}" y="14" textLength="{label_length:.0f}">{label}</text>'
    '<text x="{message_at:.0f}" y="14" textLength="{message_length:.0f}">{message}</text>'
    "</g></svg>\n"
)


class BadgeColor(StrEnum):
    """Background colors of the message; white text has a contrast of 4.5:1 on each."""

    GOOD = "#1d6b3a"
    BAD = "#b3261e"
    UNKNOWN = "#5b635f"


def svg_badge(label: str, message: str, color: BadgeColor) -> str:
    """Return a badge as SVG."""
    label, message = _clipped(label, LONGEST_LABEL), _clipped(message, LONGEST_MESSAGE)
    label_length, message_length = (len(text) * CHARACTER for text in (label, message))
    label_width = label_length + 2 * PADDING
    return _BADGE.format(
        label=label,
        message=message,
        color=color.value,
        width=label_width + message_length + 2 * PADDING,
        left=label_width - 3,
        padding=PADDING,
        label_length=label_length,
        message_at=label_width + PADDING,
        message_length=message_length,
    )


def _clipped(text: str, most: int) -> str:
    return text if len(text) <= most else f"{text[: most - 1]}…"


SECONDS = 300
"""Seconds that caches may keep a badge: as long as `DashboardParts.moment` stays the same."""
TARGET_PART = Parameter("target", "The target's name in app.yaml.", {"type": "string", "pattern": f"^{TARGET_NAME}$"})


def target_badge(parts: DashboardParts) -> PageFile:
    """Return the file with the badge of a target; only targets of app.yaml have one."""

    async def load(request: PageRequest) -> str:
        name, settings, results = results_of(parts, request.repository)
        lab, target = request.path["lab"], request.path["target"]
        if lab not in results.labs or target not in results.labs[lab].targets:
            raise LookupError(target)
        target_key = TargetKey(name, lab, target)
        moment = parts.moment()
        aliases, quarantine = settings.of(RENAMES).aliases, quarantine_of(settings, moment)
        return await request.pages.run(parts.results.store.read, draw_badge, target_key, aliases, quarantine, moment)

    return PageFile(
        path="/r/{owner}/{repo}/badge/{lab}/{target}.svg",
        summary="A badge: how many tests of a target fail in the newest nightly runs",
        media_type="image/svg+xml",
        load=load,
        seconds=SECONDS,
        parts=(LAB_PART, TARGET_PART),
    )


def draw_badge(
    connection: sa.Connection, target_key: TargetKey, aliases: Aliases, quarantine: QuarantineOf, moment: float
) -> str:
    """Draw the badge of a target from the same figures as the overview; it blocks."""
    label = target_key.full_name
    newest = newest_run(connection, target_key)
    current = targets_now(connection, target_key.repository, 0, aliases, quarantine, {target_key}).get(target_key)
    unusable = unusable_targets(connection, target_key.repository, target_key.lab, target_key.target)
    infra = unusable.get(target_key, "")
    suites, failing = (current.suites, current.failing) if current else (0, 0)
    health = TargetReport(newest.received_at if newest else None, infra, suites, failing).health(moment)
    if health is TargetHealth.FAILING:
        return svg_badge(label, texts.BADGE_FAILING.format(count=failing), BadgeColor.BAD)
    return svg_badge(label, health.value, BadgeColor.GOOD if health is TargetHealth.PASSING else BadgeColor.UNKNOWN)
