"""CTRF, the Common Test Report Format (https://ctrf.io): one JSON object, with an entry in `results.tests` per test.

The statuses of CTRF are passed, failed, skipped, pending and other. A test that is pending (it did not run) or other
(the tool has an outcome of its own) counts as skipped, and the message says so. If `rawStatus` has a known word, that
word counts instead.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, BinaryIO

from nightjar_formats.model import Case, Status, Trouble
from nightjar_formats.readers import texts, values
from nightjar_formats.readers.causes import cause
from nightjar_formats.readers.decoding.utf_8 import repaired
from nightjar_formats.readers.json.stream import ITEMS, SCALAR, JsonReader, Shape
from nightjar_formats.readers.pytest.phases import GOOD, split, without_group
from nightjar_formats.readers.repairs import UNNAMED, Repair, Repairs
from nightjar_formats.refused import Refused
from nightjar_formats.terminal import quoted_text

FORMAT = "ctrf"
SHOWN = 80
MILLISECOND = 0.001

TEST: Shape = {
    "name": SCALAR,
    "status": SCALAR,
    "rawStatus": SCALAR,
    "duration": SCALAR,
    "suite": {ITEMS: SCALAR},
    "filePath": SCALAR,
    "line": SCALAR,
    "flaky": SCALAR,
    "retries": SCALAR,
    "retryAttempts": {ITEMS: {"status": SCALAR}},
    "message": SCALAR,
    "trace": SCALAR,
}

# https://github.com/ctrf-io/ctrf/blob/main/schema/ctrf.schema.json
STATUS = {
    "passed": Status.PASSED,
    "failed": Status.FAILED,
    "skipped": Status.SKIPPED,
    "pending": Status.SKIPPED,
    "other": Status.SKIPPED,
}
RAW = {
    "xfailed": (Status.XFAILED, Trouble.NONE),
    "xpassed": (Status.XPASSED, Trouble.NONE),
    "error": (Status.ERRORED, Trouble.NONE),
    "setup_failed": (Status.ERRORED, Trouble.SETUP),
    "teardown_failed": (Status.ERRORED, Trouble.TEARDOWN),
    "timedout": (Status.FAILED, Trouble.TIMEOUT),
}
"""Values of `rawStatus`, in lower case, with which pytest-json-ctrf and playwright-ctrf-json-reporter say more."""


def read(stream: BinaryIO, repairs: Repairs | None = None) -> Iterator[Case]:
    """Read the cases of a report, one for each entry; an entry contains all attempts at its test.

    Raises Refused if it is not CTRF, TooMuch beyond a limit.
    """
    repairs = repairs or Repairs()
    json = JsonReader(repaired(stream, repairs), FORMAT)
    has_tests = False
    for key in json.members():
        if key != "results":
            json.skip()
            continue
        for inner in json.members():
            if inner != "tests":
                json.skip()
                continue
            has_tests = True
            for test in json.items(TEST):
                yield _case(values.mapping(test), repairs)
    json.end()
    if not has_tests:
        raise Refused(texts.CTRF_NO_TESTS.format(what=FORMAT))


def _case(test: Mapping[str, Any], repairs: Repairs) -> Case:
    name = values.name(test.get("name"))
    if not name:
        name = UNNAMED
        repairs.add(Repair.NAMELESS_ENTRIES)
    status, trouble = _status(test, name)
    bad = status in (Status.FAILED, Status.ERRORED)
    path, classname, nodeid = _identity(name, test)
    text = values.text(test.get("trace")) if bad else ""
    return Case(
        name=split(nodeid)[1] if nodeid else name,
        status=status,
        classname=classname,
        path=path,
        nodeid=nodeid,
        line=values.line(test.get("line")),
        seconds=values.seconds(test.get("duration"), MILLISECOND),
        flaky=status in GOOD and _failed_before(test),
        trouble=trouble,
        message=cause(_message(test, status), text, is_log=True) if bad else _message(test, status),
        text=text,
    )


def _status(test: Mapping[str, Any], name: str) -> tuple[Status, Trouble]:
    word, raw = test.get("status"), test.get("rawStatus")
    status = STATUS.get(word) if isinstance(word, str) else None
    if status is None:
        raise Refused(texts.CTRF_STATUS.format(what=FORMAT, name=name[:SHOWN], status=quoted_text(str(word)[:SHOWN])))
    return RAW.get(raw.lower() if isinstance(raw, str) else "", (status, Trouble.NONE))


def _message(test: Mapping[str, Any], status: Status) -> str:
    stated, word = values.message(test.get("message")), test.get("status")
    if status is not Status.SKIPPED or word == "skipped":
        return stated
    raw = values.message(test.get("rawStatus"))
    return values.message(": ".join(part for part in (f"{word} ({raw})" if raw else word, stated) if part))


def _failed_before(test: Mapping[str, Any]) -> bool:
    """Say whether an earlier attempt at a test failed that passed in the end."""
    attempts = values.sequence(test.get("retryAttempts"))
    if attempts:
        return any(values.mapping(attempt).get("status") == "failed" for attempt in attempts)
    return test.get("flaky") is True or (values.number(test.get("retries")) or 0) > 0


def _identity(name: str, test: Mapping[str, Any]) -> tuple[str, str, str]:
    """Return a test's path, and either its classname or, if it has a file, its node ID.

    pytest-json-ctrf writes a whole node ID as the name. Other tools write a name and the suites around it, which go
    between file and name, as classes do.
    """
    path = values.name(test.get("filePath"))
    suite = test.get("suite")
    # The schema requires a list, but some tools write one text.
    suites = [values.name(part) for part in ([suite] if isinstance(suite, str) else values.sequence(suite))]
    if path and name.startswith(f"{path}::"):
        return path, "", without_group(name)
    inner = [part for part in suites if part and part != path]
    if path:
        return path, "", values.name("::".join((path, *inner, name)))
    return "", values.name(".".join(inner)), ""
