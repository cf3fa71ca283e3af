"""Color of what commands print on a terminal. Pipes, files and JSON have none."""

from __future__ import annotations

import os

import click

GOOD, ATTENTION, BAD = "green", "yellow", "red"


def colored(text: str, color: str) -> str:
    """Return a text in a color, or as it is if NO_COLOR is set (https://no-color.org) or the terminal has no colors.

    Print it with `click.echo`, which removes colors where no terminal shows them.
    """
    if os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb":
        return text
    return click.style(text, fg=color)
