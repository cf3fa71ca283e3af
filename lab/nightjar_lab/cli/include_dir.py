"""`nightjar-lab include-dir`: print the folder of the C++ header and the CMake file."""

from __future__ import annotations

from pathlib import Path

import click


@click.command("include-dir")
def include_dir() -> None:
    """Print the folder for -I: nightjar/slow.h and measure.h for GoogleTest, nightjar/nightjar.cmake for CTest."""
    click.echo(Path(__file__).parents[1] / "include")
