"""`/r/{owner}/{repo}/badge/{lab}/{target}.svg`: a badge with the state of a target, for a README."""

from __future__ import annotations

from typing import TYPE_CHECKING

import sqlalchemy as sa
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
from handlers.dashboard.shared.badge_svg import SECONDS, BadgeColor, svg_badge
from handlers.dashboard.shared.content import content_of_results
from handlers.dashboard.shared.settings import quarantine_of, results_of
from handlers.results.config import RENAMES

if TYPE_CHECKING:
    from bot.web.page_routes import PageRequest
    from handlers.dashboard.shared.wiring import DashboardParts

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
        content=content_of_results(parts),
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
