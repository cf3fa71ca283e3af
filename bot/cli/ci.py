"""`nightjar ci`: commands for the steps of a CI."""

from __future__ import annotations

import click
from nightjar_lab.cli.lazy import LazyGroup

LAZY = {
    "local": ("bot.cli.ci_local:local", "Run a step of the project in this checkout, or list the steps."),
    "decide": ("bot.cli.ci_decide:decide", "Print what CI should do for a pull request or a commit."),
    "docker-images": ("bot.cli.ci_images:docker_images", "Print which Docker images CI should use."),
}


@click.group(cls=LazyGroup, lazy=LAZY)
def ci() -> None:
    """Decide for CI: what to run, and which images to use."""
