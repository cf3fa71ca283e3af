"""Changes for the tests of decisions about them."""

from __future__ import annotations

from handlers.changed_files.changes import ChangedFiles


def files(*names: str) -> ChangedFiles:
    return ChangedFiles(names, len(names))
