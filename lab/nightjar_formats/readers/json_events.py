"""Choose the parser of JSON: ijson if it is installed, as on every server, else our own in plain Python."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from nightjar_formats.readers.json_ijson import IjsonEvents as JsonEvents
else:
    try:
        from nightjar_formats.readers.json_ijson import IjsonEvents as JsonEvents
    except ImportError:
        from nightjar_formats.readers.json_plain import PlainEvents as JsonEvents

__all__ = ["JsonEvents"]
