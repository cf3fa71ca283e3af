"""The XML of xunit.net v1, v2 and v3 (schemas 1 to 3): one element per test.

https://xunit.net/docs/format-xml-v2. A test's display name begins with its class, unless the test sets another name.
Errors outside tests, such as a fixture that cannot be disposed of, are cases too.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import BinaryIO

from nightjar_formats.model import Case, Status, Trouble
from nightjar_formats.readers import fields, texts, values
from nightjar_formats.readers.dotnet.shared import DotnetFailure, class_and_name
from nightjar_formats.readers.repairs import UNNAMED, Repair, Repairs
from nightjar_formats.readers.xml.walk import walk
from nightjar_formats.refused import Refused
from nightjar_formats.terminal import quoted_text

FORMAT = "xunit-net"
ROOTS = {"assemblies": "", "assembly": ""}
TEXTS = frozenset({"message", "stack-trace", "reason", "output", "warning"})
NOT_RUN = "not run"
SHOWN = 80

STATUSES = {"Pass": Status.PASSED, "Fail": Status.FAILED, "Skip": Status.SKIPPED, "NotRun": Status.SKIPPED}
_FATAL = "fatal"


def read(stream: BinaryIO, repairs: Repairs) -> Iterator[Case]:
    """Read the cases of a report, one for each test, and one for each error outside tests.

    Raises TooMuch, Refused, or NotXml, which may come after cases, if the report ends too early.
    """
    return walk(stream, repairs, FORMAT, ROOTS, TEXTS, _XunitListener(repairs))


class _XunitListener:
    """The open test, or the open error outside tests."""

    def __init__(self, repairs: Repairs) -> None:
        self._repairs = repairs
        self._attributes: dict[str, str] | None = None
        self._failure = DotnetFailure()
        self._reason = self._output = ""

    def start(self, tag: str, attributes: dict[str, str]) -> None:
        if tag in ("test", "error"):
            self._attributes = attributes
            self._failure = DotnetFailure()
            self._reason = self._output = ""
        elif tag == "failure":
            self._failure.type = attributes.get("exception-type", "")

    def end(self, tag: str, text: str) -> Iterable[Case]:
        attributes = self._attributes
        if attributes is None:
            return ()
        if tag == "test":
            self._attributes = None
            return (self._test(attributes),)
        if tag == "error":
            self._attributes = None
            return (self._error(attributes),)
        if tag == "message":
            self._failure.message = self._failure.message or text
            # xunit.net v1 writes the reason of a skip as a message.
            self._reason = self._reason or text
        elif tag == "stack-trace":
            self._failure.stack_trace = text
        elif tag == "reason":
            self._reason = text or self._reason
        elif tag == "output":
            self._output = text
        return ()

    def rest(self) -> Iterable[Case]:
        return ()

    def _test(self, attributes: dict[str, str]) -> Case:
        get = attributes.get
        name = values.name(get("name") or get("method"))
        if not name:
            name = UNNAMED
            self._repairs.add(Repair.NAMELESS_ENTRIES)
        status = STATUSES.get(get("result", ""))
        if status is None:
            raise Refused(texts.XUNIT_RESULT.format(name=name[:SHOWN], result=quoted_text(get("result", "")[:SHOWN])))
        classname, name = class_and_name(values.name(get("type")), name)
        path, line = values.name(get("source-file")), values.line(get("source-line"))
        message = text = ""
        if status is Status.FAILED:
            message, text = self._failure.explain(self._output)
            if not path:
                path, line = self._failure.place()
        elif status is Status.SKIPPED:
            message = values.message(self._reason) or (NOT_RUN if get("result") == "NotRun" else "")
        return Case(
            name=name,
            status=status,
            path=path,
            nodeid=values.name(f"{classname}::{name}" if classname else name),
            line=line,
            seconds=fields.seconds(get("time")),
            message=message,
            text=text,
        )

    def _error(self, attributes: dict[str, str]) -> Case:
        kind = attributes.get("type", "") or _FATAL
        name = values.name(f"{attributes.get('name', '') or 'error'} ({kind})")
        message, text = self._failure.explain(self._output)
        # All other types end in `-cleanup`: https://xunit.net/docs/format-xml-v2
        trouble = Trouble.INTERNAL if kind == _FATAL else Trouble.TEARDOWN
        return Case(name, Status.ERRORED, nodeid=name, trouble=trouble, message=message, text=text)
