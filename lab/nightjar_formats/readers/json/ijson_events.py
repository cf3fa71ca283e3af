"""Get the events of a JSON text from ijson: from yajl where ijson has it, else from its parser in Python."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import ijson  # type: ignore[import-untyped]

from nightjar_formats.patterns import without_half_pairs
from nightjar_formats.readers import texts

PYTHON = "python"
"""The name of ijson's parser in Python, which runs on machines for which nobody has compiled yajl."""
_TEXTS = ("string", "map_key")


class IjsonEvents:
    """Parses a JSON text piece by piece; `events` collects the events until the caller removes them."""

    def __init__(self, *, multiple_values: bool = False, backend: Any = ijson) -> None:
        events = ijson.sendable_list()
        self.events: list[tuple[str, Any]] = events
        self._is_python = backend.backend == PYTHON
        # Without use_float ijson 3.6 crashes the process on integers of 4,300 digits.
        self._parser = backend.basic_parse_coro(events, multiple_values=multiple_values, use_float=True)

    def __del__(self) -> None:
        """End the text: the parser in Python would otherwise print that it is incomplete."""
        if self._is_python:
            self.end()

    def feed(self, piece: bytes) -> str | None:
        """Parse the next piece; return the fault in the text, None if there is none."""
        error = _error_of(self._parser.send, piece)
        if self._is_python:
            # yajl replaces each half of a surrogate pair itself.
            self.events[:] = [
                (event, without_half_pairs(value, "?") if event in _TEXTS else value) for event, value in self.events
            ]
        return error

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
    except json.JSONDecodeError as error:  # of a string, from the parser in Python
        return error.msg
    return None
