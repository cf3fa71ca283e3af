"""What each feature has for tests that go through all features: modules in `tests/handlers/<feature>/`."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parent / "handlers"


def constants(module: str, name: str) -> list[Any]:
    """Return the constant `name` of each module `tests/handlers/<feature>/<module>.py`, in the order of the folders."""
    folders = sorted(file.parent.name for file in FOLDER.glob(f"*/{module}.py"))
    return [getattr(import_module(f"tests.handlers.{folder}.{module}"), name) for folder in folders]
