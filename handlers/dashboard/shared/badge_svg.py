"""Draw a badge as SVG: a label and a message."""

from __future__ import annotations

from enum import StrEnum

from markupsafe import Markup

SECONDS = 300
"""Seconds that caches may keep a badge: as long as `DashboardParts.moment` stays the same."""
LONGEST_LABEL, LONGEST_MESSAGE = 60, 30
CHARACTER, PADDING, CORNER = 6.6, 10.0, 3.0
"""Pixels of a character, about, beside each text, and of a corner; `textLength` fits the text to its place."""
# No `xml:space`, no style and no script: a page that embeds a badge gets shapes and text alone.
_BADGE = Markup(
    '<svg xmlns="http://www.w3.org/2000/svg" width="{width:.0f}" height="20" role="img" '
    'aria-label="{label}: {message}">'
    "<title>{label}: {message}</title>"
    '<rect width="{width:.0f}" height="20" rx="3" fill="{color}"/>'
    '<path d="M3 0h{label_edge:.0f}v20H3a3 3 0 0 1-3-3V3a3 3 0 0 1 3-3z" fill="#3f4643"/>'
    '<g fill="#fff" font-family="Verdana,DejaVu Sans,sans-serif" font-size="11">'
    '<text x="{label_x:.0f}" y="14" textLength="{label_length:.0f}">{label}</text>'
    '<text x="{message_x:.0f}" y="14" textLength="{message_length:.0f}">{message}</text>'
    "</g></svg>\n"
)


class BadgeColor(StrEnum):
    """Background colors of the message; white text has a contrast of 4.5:1 on each."""

    GOOD = "#1d6b3a"
    BAD = "#b3261e"
    UNKNOWN = "#5b635f"


def svg_badge(label: str, message: str, color: BadgeColor) -> str:
    """Return a badge as SVG: two boxes with texts, which are cut where they are too long, and escaped."""
    label, message = _clipped(label, LONGEST_LABEL), _clipped(message, LONGEST_MESSAGE)
    label_pixels, message_pixels = (len(text) * CHARACTER for text in (label, message))
    label_width = label_pixels + 2 * PADDING
    return _BADGE.format(
        label=label,
        message=message,
        color=color.value,
        width=label_width + message_pixels + 2 * PADDING,
        label_edge=label_width - CORNER,
        label_x=PADDING,
        label_length=label_pixels,
        message_x=label_width + PADDING,
        message_length=message_pixels,
    )


def _clipped(text: str, most: int) -> str:
    return text if len(text) <= most else f"{text[: most - 1]}…"
