"""Get the events of a JSON text from ijson, which the server always has."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import ijson  # type: ignore[import-untyped]

from nightjar_formats.readers import texts


class IjsonEvents:
    """Parses a JSON text piece by piece; `events` collects the events until the caller removes them."""

    def __init__(self, *, multiple_values: bool = False) -> None:
        events = ijson.sendable_list()
        self.events: list[tuple[str, Any]] = events
        # Without use_float ijson 3.6 crashes the process on integers of 4,300 digits.
        self._parser = ijson.basic_parse_coro(events, multiple_values=multiple_values, use_float=True)

    def feed(self, piece: bytes) -> str | None:
        """Parse the next piece; return the fault in the text, None if there is none."""
        return _error_of(self._parser.send, piece)

    def end(self) -> str | None:
        """End the text; return the fault at its end, None if there is none."""
        return _error_of(self._parser.close)


def _error_of(parse: Callable[..., object], *arguments: bytes) -> str | None:
    """Run the parser, and return the text of its error, None for none."""
    try:
        parse(*arguments)
    except ijson.JSONError as error:
        message = error.args[0] if error.args else ""
        return (
            (message.decode("utf-8", "replace") if isinstance(message, bytes) else str(message))
            .partition("\n")[0]
            .strip()
        )
    except UnicodeDecodeError:
        return texts.NOT_UTF_8
    return None
