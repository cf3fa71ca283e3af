"""`/r/{owner}/{repo}/badge/{lab}/{target}.svg`: a badge with the state of a target, for a README."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nightjar_formats.model import TARGET_NAME, TargetKey

from bot.web.openapi import Parameter
from bot.web.page_files import PageFile
from bot.web.svg_badge import BadgeColor, svg_badge
from handlers.dashboard import texts
from handlers.dashboard.cells import STALE_SECONDS
from handlers.dashboard.lab import LAB_PART
from handlers.dashboard.settings import results_of

if TYPE_CHECKING:
    from bot.results.store.store import ResultsStore
    from bot.web.page_routes import PageRequest
    from handlers.dashboard.wiring import DashboardParts

SECONDS = 300
"""Seconds that caches may keep a badge: as long as `DashboardParts.moment` stays the same."""
TARGET_PART = Parameter("target", "The target's name in app.yaml.", {"type": "string", "pattern": f"^{TARGET_NAME}$"})


def target_badge(parts: DashboardParts) -> PageFile:
    """Return the file with the badge of a target; only targets of app.yaml have one."""

    async def load(request: PageRequest) -> str:
        name, _, results = results_of(parts, request.repository)
        lab, target = request.path["lab"], request.path["target"]
        if lab not in results.labs or target not in results.labs[lab].targets:
            raise LookupError(target)
        target_key = TargetKey(name, lab, target)
        return await request.pages.run(draw_badge, parts.store, target_key, parts.moment())

    return PageFile(
        path="/r/{owner}/{repo}/badge/{lab}/{target}.svg",
        summary="A badge: how many tests of a target fail in the newest nightly runs",
        media_type="image/svg+xml",
        load=load,
        seconds=SECONDS,
        parts=(LAB_PART, TARGET_PART),
    )


def draw_badge(store: ResultsStore, target_key: TargetKey, moment: float) -> str:
    """Draw the badge of a target from the same figures as the overview; it blocks."""
    label = target_key.full_name
    newest = store.labs.newest(target_key)
    runs = store.failures.newest_runs(target_key)
    if newest is None or not runs:
        return svg_badge(label, texts.BADGE_NO_RESULTS, BadgeColor.UNKNOWN)
    # Before the failures: old results say nothing about the target as it is now, green ones least of all.
    if moment - newest.received_at > STALE_SECONDS:
        return svg_badge(label, texts.BADGE_STALE, BadgeColor.UNKNOWN)
    if failing := sum(run.failing for run in runs):
        return svg_badge(label, texts.BADGE_FAILING.format(count=failing), BadgeColor.BAD)
    return svg_badge(label, texts.BADGE_GREEN, BadgeColor.GOOD)
