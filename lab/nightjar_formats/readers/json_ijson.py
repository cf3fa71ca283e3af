"""The events of a JSON text from ijson, which the server always has."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import ijson  # type: ignore[import-untyped]

from nightjar_formats.readers import texts


class IjsonEvents:
    """Is given a JSON text piece by piece; `found` are the events that were found since they were taken from it."""

    def __init__(self, *, multiple_values: bool = False) -> None:
        found = ijson.sendable_list()
        self.found: list[tuple[str, Any]] = found
        # Without use_float ijson 3.6 crashes the process on integers of 4,300 digits.
        self._parser = ijson.basic_parse_coro(found, multiple_values=multiple_values, use_float=True)

    def feed(self, piece: bytes) -> str | None:
        """Read on; return what is wrong with the text, if anything is."""
        return _error_of(self._parser.send, piece)

    def end(self) -> str | None:
        """Read what is left; return what is wrong, or missing, at the end."""
        return _error_of(self._parser.close)


def _error_of(parse: Callable[..., object], *given: bytes) -> str | None:
    """Let the parser go on, and return what it finds wrong."""
    try:
        parse(*given)
    except ijson.JSONError as error:
        stated = error.args[0] if error.args else ""
        return (
            (stated.decode("utf-8", "replace") if isinstance(stated, bytes) else str(stated)).partition("\n")[0].strip()
        )
    except UnicodeDecodeError:
        return texts.NOT_UTF_8
    return None
