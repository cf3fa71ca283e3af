"""Get the events of a JSON text from ijson, which the server always has."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import ijson  # type: ignore[import-untyped]

from nightjar_formats.readers import texts


class IjsonEvents:
    """Parses a JSON text piece by piece; `found` collects the events until the caller removes them."""

    def __init__(self, *, multiple_values: bool = False) -> None:
        found = ijson.sendable_list()
        self.found: list[tuple[str, Any]] = found
        # Without use_float ijson 3.6 crashes the process on integers of 4,300 digits.
        self._parser = ijson.basic_parse_coro(found, multiple_values=multiple_values, use_float=True)

    def feed(self, piece: bytes) -> str | None:
        """Parse the next piece; return the fault in the text, None if there is none."""
        return _error_of(self._parser.send, piece)

    def end(self) -> str | None:
        """End the text; return the fault at its end, None if there is none."""
        return _error_of(self._parser.close)


def _error_of(parse: Callable[..., object], *given: bytes) -> str | None:
    """Run the parser, and return the text of its error, None for none."""
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
