"""Contrast of the stylesheet's colors in both schemes: 4.5:1 for text, 3:1 for edges of controls and for the focus.

https://www.w3.org/TR/WCAG22/#contrast-minimum and https://www.w3.org/TR/WCAG22/#non-text-contrast
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

import bot.web

STYLE = (Path(bot.web.__file__).parent / "static/site.css").read_text(encoding="utf-8")
TEXT, EDGE = 4.5, 3.0
SCHEMES = ("light", "dark")
ROOTS = re.findall(r":root \{([^}]*)\}", STYLE)
RULE = re.compile(r"([^{}/;]+?)\s*\{([^{}]*)\}")
EVERYWHERE = ("page", "soft")
"""What any text may stand on: rows under the pointer are softly colored, as commands and outputs are."""


def colors_of(scheme: str) -> Mapping[str, str]:
    """Return the colors of a scheme by variable name; a dark scheme overrides those of the light one."""
    roots = ROOTS[: SCHEMES.index(scheme) + 1]
    return dict(pair for root in roots for pair in re.findall(r"--([a-z-]+): (#[0-9a-f]{6})", root))


def luminance(color: str) -> float:
    """Return the relative luminance of a color: https://www.w3.org/TR/WCAG22/#dfn-relative-luminance."""
    parts = [int(color[place : place + 2], 16) / 255 for place in (1, 3, 5)]
    red, green, blue = (part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def contrast(first: str, second: str) -> float:
    """Return the contrast of two colors: https://www.w3.org/TR/WCAG22/#dfn-contrast-ratio."""
    darker, brighter = sorted((luminance(first), luminance(second)))
    return (brighter + 0.05) / (darker + 0.05)


def pairs() -> Iterator[tuple[str, str, str]]:
    """Yield each text color with its background, and the selector that sets them."""
    for selector, body in RULE.findall(STYLE):
        for color in re.findall(r"(?<![a-z-])(?:color|fill): var\(--([a-z-]+)\)", body):
            own_backgrounds = re.findall(r"background: var\(--([a-z-]+)\)", body)
            yield from ((selector.strip(), color, behind) for behind in own_backgrounds or EVERYWHERE)


def test_the_stylesheet_is_read() -> None:
    color_pairs = set(pairs())
    assert (".tag.bad", "on-bad", "bad") in color_pairs
    assert (".dim", "dim", "page") in color_pairs
    assert contrast("#000000", "#ffffff") == pytest.approx(21)
    assert contrast(colors_of("light")["page"], colors_of("dark")["page"]) > 15


@pytest.mark.parametrize("scheme", SCHEMES)
def test_text_is_readable(scheme: str) -> None:
    colors = colors_of(scheme)
    weak = {
        f"{selector}: {color} on {behind}": round(contrast(colors[color], colors[behind]), 2)
        for selector, color, behind in pairs()
        if contrast(colors[color], colors[behind]) < TEXT
    }
    assert weak == {}


@pytest.mark.parametrize("scheme", SCHEMES)
@pytest.mark.parametrize("edge", ["control", "focus"])
def test_controls_and_the_focus_are_visible(scheme: str, edge: str) -> None:
    colors = colors_of(scheme)
    assert min(contrast(colors[edge], colors[behind]) for behind in EVERYWHERE) >= EDGE
    for selector in ("input, select, button", "textarea", ":focus-visible"):
        (body,) = [body for found_selector, body in RULE.findall(STYLE) if found_selector.strip() == selector]
        assert "var(--control)" in body or "var(--focus)" in body, selector
