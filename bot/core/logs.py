"""Logging: one JSON object a line on standard error, or colored lines for people if that is a terminal.

Inside a job every line carries the delivery's id, which `bot.engine.worker.tasks` binds. Lines that libraries log
through the standard library pass the same processors and look the same.
"""

from __future__ import annotations

import json
import logging
import os
import sys
import threading
from collections.abc import Iterable
from functools import partial
from types import TracebackType
from typing import TextIO

import structlog
from nightjar_formats.terminal import escape_controls
from structlog.typing import EventDict, Processor, WrappedLogger

from bot.core.recent_log import RECENT_LOG
from bot.core.redaction import Redactor

LONGEST_TEXT = 2_000
LONGEST_TRACEBACK = 20_000
"""Characters of a value, and of a traceback; the middle of longer ones is left out."""

_FIRST = ("time", "level", "event", "delivery")
"""Fields to write first, because people read them first."""
_encoded = json.JSONEncoder().encode
_QUIET = {
    # At INFO they log each job and each request; our engine and client already log what matters.
    "procrastinate": logging.WARNING,
    "aiohttp.access": logging.CRITICAL,
    "alembic": logging.WARNING,
    "botocore": logging.WARNING,
    "boto3": logging.WARNING,
    "urllib3": logging.WARNING,
    "asyncio": logging.WARNING,
    "psycopg": logging.WARNING,
}


def configure(secrets: Iterable[str] = (), *, stream: TextIO | None = None, pretty: bool | None = None) -> None:
    """Send everything that is logged in this process to `stream` (standard error), without any of `secrets`.

    `pretty` chooses colored lines for people instead of JSON; None asks whether the stream is a terminal.
    """
    output = sys.stderr if stream is None else stream
    for_people = output.isatty() if pretty is None else pretty
    shared: list[Processor] = [
        structlog.contextvars.merge_contextvars,
        structlog.stdlib.add_log_level,
        structlog.stdlib.add_logger_name,
        structlog.processors.TimeStamper(fmt="iso", utc=True, key="time"),
    ]
    steps = _last_steps(Redactor(secrets), for_people)
    handler = logging.StreamHandler(output)
    structlog.configure(
        processors=[*shared, *steps],
        wrapper_class=structlog.make_filtering_bound_logger(logging.INFO),
        logger_factory=partial(_LineLogger, handler),
        cache_logger_on_first_use=False,
    )
    remove_meta = structlog.stdlib.ProcessorFormatter.remove_processors_meta
    handler.setFormatter(
        structlog.stdlib.ProcessorFormatter(foreign_pre_chain=shared, processors=[remove_meta, *steps])
    )
    root = logging.getLogger()
    # Replace all other handlers, because their output would not be redacted.
    root.handlers[:] = [handler]
    root.setLevel(logging.INFO)
    for name, level in _QUIET.items():
        logging.getLogger(name).setLevel(level)
    _catch_the_rest()


class _LineLogger:
    """Writes the finished lines of our own code to the stream of the handler, which has those of libraries.

    A record of the standard library would cost half of the time of a line, such as for a search for its caller.
    """

    def __init__(self, handler: logging.StreamHandler[TextIO], name: str = "bot") -> None:
        self.name = name
        self._handler = handler

    def info(self, line: str) -> None:
        """Write a line, unless `logging.disable` has turned all lines off.

        As in the standard library, a stream that fails loses the line, and nothing is raised.
        """
        if logging.root.manager.disable >= logging.CRITICAL:
            return
        self._handler.acquire()
        try:
            self._handler.stream.write(f"{line}\n")
            self._handler.flush()
        except Exception:
            self._handler.handleError(logging.makeLogRecord({}))
        finally:
            self._handler.release()

    warning = error = critical = info


def _last_steps(redactor: Redactor, for_people: bool) -> list[Processor]:
    def redact(_: WrappedLogger, __: str, event: EventDict) -> EventDict:
        ordered = {key: event.pop(key) for key in _FIRST if key in event} | dict(event)
        redacted = {redactor.text(key): _shortened(key, redactor.value(value)) for key, value in ordered.items()}
        RECENT_LOG.add(redacted)
        return redacted

    steps: list[Processor] = [
        structlog.processors.StackInfoRenderer(),
        structlog.processors.format_exc_info,
        redact,
    ]
    if for_people:
        return [*steps, _escape_controls, _console()]
    return [*steps, lambda _, __, event: _encoded(event)]


def _console() -> structlog.dev.ConsoleRenderer:
    # https://no-color.org
    colors = not os.environ.get("NO_COLOR")
    return structlog.dev.ConsoleRenderer(colors=colors, sort_keys=False, timestamp_key="time")


def _shortened(key: str, value: object) -> object:
    longest = LONGEST_TRACEBACK if key in {"exception", "stack"} else LONGEST_TEXT
    if isinstance(value, str) and len(value) > longest:
        # The end of a traceback says what happened, so cut out the middle.
        half = longest // 2
        return f"{value[:half]} … {len(value) - longest} characters left out … {value[-half:]}"
    return value


def _escape_controls(_: WrappedLogger, __: str, event: EventDict) -> EventDict:
    """Show control characters instead of obeying them, as JSON does: text from outside must not forge lines."""
    for key, value in event.items():
        if key not in {"exception", "stack"} and isinstance(value, str):
            event[key] = escape_controls(value)
    return event


def _catch_the_rest() -> None:
    """Send what Python itself would print to standard error through the log, and so through the redaction."""
    logging.captureWarnings(True)
    # A log call with a wrong format would print its arguments, whatever they are.
    logging.raiseExceptions = False
    log: structlog.stdlib.BoundLogger = structlog.get_logger("bot")

    def uncaught(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
        log.critical("uncaught exception", exc_info=(kind, error, trace))

    def uncaught_in_thread(args: threading.ExceptHookArgs) -> None:
        if args.exc_value is not None:
            uncaught(args.exc_type, args.exc_value, args.exc_traceback)

    def unraisable(args: sys.UnraisableHookArgs) -> None:
        if args.exc_value is not None:
            uncaught(args.exc_type, args.exc_value, args.exc_traceback)

    sys.excepthook = uncaught
    threading.excepthook = uncaught_in_thread
    sys.unraisablehook = unraisable
