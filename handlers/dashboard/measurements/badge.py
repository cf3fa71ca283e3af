"""`/r/{owner}/{repo}/badge.svg`: a badge with the newest value of a measurement, for a README."""

from __future__ import annotations

from typing import TYPE_CHECKING

from bot.web.page_files import PageFile
from handlers.dashboard.measurements import texts
from handlers.dashboard.measurements.series_model import ChangeKind, SeriesQuery
from handlers.dashboard.measurements.series_page import read_series
from handlers.dashboard.shared.badge_svg import SECONDS, BadgeColor, svg_badge
from handlers.dashboard.shared.content import content_of_results
from handlers.dashboard.shared.settings import settings_and_target

if TYPE_CHECKING:
    from bot.web.page_routes import PageRequest
    from handlers.dashboard.measurements.series_model import SeriesPage
    from handlers.dashboard.shared.wiring import DashboardParts


def measurement_badge(parts: DashboardParts) -> PageFile:
    """Return the file with the badge of a measurement: on one target, or on the first one that has it."""

    async def load(request: PageRequest) -> str:
        name, settings = await settings_and_target(parts, request)
        page = await request.pages.run(parts.results.store.read, read_series, name, request.query, settings)
        return draw_badge(page)

    return PageFile(
        path="/r/{owner}/{repo}/badge.svg",
        summary="A badge: the newest value of a measurement, and by how much its level changed last",
        media_type="image/svg+xml",
        load=load,
        query=SeriesQuery,
        content=content_of_results(parts),
        seconds=SECONDS,
    )


def draw_badge(page: SeriesPage) -> str:
    """Draw the badge of a measurement. It is red while a change for the worse lasts."""
    label = texts.NAMED.format(name=page.measurement, test=page.id.rpartition("::")[2])
    if not page.targets:
        return svg_badge(label, texts.BADGE_NO_VALUE, BadgeColor.UNKNOWN)
    series = page.targets[0]
    if series.gone:
        return svg_badge(label, texts.BADGE_NO_VALUE, BadgeColor.UNKNOWN)
    value, move = series.amount(series.nights[0].value), series.lasting
    if move is not None and move.level_before > 0:
        value = texts.BADGE_MOVED.format(
            value=value, share=f"{100 * (move.level_after / move.level_before - 1):+.0f} %"
        )
    is_worse = move is not None and move.kind is ChangeKind.WORSE
    return svg_badge(label, value, BadgeColor.BAD if is_worse else BadgeColor.GOOD)
