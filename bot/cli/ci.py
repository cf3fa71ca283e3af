"""`nightjar ci`: what a step of a CI asks."""

from __future__ import annotations

import click

from bot.cli.lazy import LazyGroup

LAZY = {
    "decide": ("bot.cli.ci_decide:decide", "Say what CI should do for a pull request."),
    "docker-images": ("bot.cli.ci_images:docker_images", "Say which Docker images CI takes."),
}


@click.group(cls=LazyGroup, lazy=LAZY)
def ci() -> None:
    """Tell a CI what to do."""
