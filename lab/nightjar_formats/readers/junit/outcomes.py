"""Make a `Case` of a test case in any JUnit dialect, from its attributes and its parts.

This code runs for each of up to 300,000 cases, so the most common path makes as few calls as possible.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import NamedTuple

from nightjar_formats.limits import MAX_MESSAGE, MAX_RAW_NAME, MAX_SECONDS
from nightjar_formats.model import Case, Status, Trouble
from nightjar_formats.patterns import Pattern
from nightjar_formats.readers import texts, values
from nightjar_formats.readers.causes import cause_line, says_nothing
from nightjar_formats.readers.fields import cut, one_line, seconds
from nightjar_formats.readers.junit.document import LOGS, Part
from nightjar_formats.readers.repairs import UNNAMED
from nightjar_formats.refused import TooMuch
from nightjar_formats.terminal import quoted_text

SHOWN = 80
_EXPECTED = Pattern(
    r"\b(?:may|should|expected to|allowed to)[ _-]?fail\b|\bexpected[ _-]?fail|\bxfail", ignore_case=True
)
"""The message of a skip beside a failure that does not count, as Catch2 writes it for `[!mayfail]`."""
_TODO = "todo"
"""The type of such a skip in node's reports."""


class CaseOutcome(NamedTuple):
    """The outcome of a case, and the reason."""

    status: Status
    flaky: bool = False
    trouble: Trouble = Trouble.NONE
    message: str = ""
    text: str = ""
    path: str = ""
    line: int | None = None
    """The line of the failure, if the failure itself names it."""


PASSED = CaseOutcome(Status.PASSED)
STATUSES = {"failure": Status.FAILED, "error": Status.ERRORED, "skipped": Status.SKIPPED}
"""The status for each tag; an earlier entry outweighs a later one."""
# https://maven.apache.org/surefire/maven-surefire-plugin/examples/rerun-failing-tests.html
FLAKY = ("flakyFailure", "flakyError")
"""Tags of failed attempts at a test that passed in the end, as Surefire and other tools write them."""
RERUN = ("rerunFailure", "rerunError")
"""Tags of further attempts at a test that failed; its first attempt is a `failure` or an `error`."""

_NOTHING_MORE = (False, Trouble.NONE, "", "", None, 0, "", ())
"""The fields of a passed case after its duration."""
NOWHERE = "", None
"""The place of a test that has none."""

# Not `Case(...)`: the constructor of a NamedTuple is one call more for each of 300,000 cases.
_new = tuple.__new__


def build(
    attributes: dict[str, str],
    classname: str,
    outcome: CaseOutcome = PASSED,
    path: str = "",
    line: int | None = None,
    attempt: int = 0,  # by position, for speed
) -> Case:
    """Make a case. One without a name is UNNAMED. Raises `TooMuch` if the name is too long."""
    name = attributes.get("name") or UNNAMED
    if len(name) + len(classname) > MAX_RAW_NAME:
        long = f"{classname}.{name}"
        raise TooMuch(
            texts.LONG_NAME_AND_CLASS.format(count=len(long) - 1, limit=MAX_RAW_NAME, head=quoted_text(long[:SHOWN]))
        )
    status, flaky, trouble, message, text, failure_path, failure_line = outcome
    if failure_path or failure_line is not None:
        failure_path, line = "" if failure_path == path else failure_path, failure_line
    time: float | None = None
    if "time" in attributes:  # many skipped tests have none, and an exception would double the cost
        try:
            time = float(attributes["time"])
            if not 0 <= time <= MAX_SECONDS:
                time = None
        except ValueError:
            time = seconds(attributes["time"])
    ended = (time, flaky, trouble, message, text, None, attempt, failure_path, ())
    return _new(Case, (name, status, classname, path, "", line, *ended))


def passed_case(attributes: dict[str, str]) -> Case | None:
    """Make a passed case if it has only a name, a class and a duration, as most have; return None for any other."""
    if len(attributes) != 3:
        return None
    try:
        name, classname, time = attributes["name"], attributes["classname"], float(attributes["time"])
    except (KeyError, ValueError):
        return None
    if not (name and classname and 0 <= time <= MAX_SECONDS) or len(name) + len(classname) > MAX_RAW_NAME:
        return None
    return _new(Case, (name, Status.PASSED, classname, "", "", None, time, *_NOTHING_MORE))


def place(attributes: dict[str, str], first: int = 1) -> tuple[str, int | None]:
    """Read the place of a test from its attributes `file` and `line`; lines count from `first`."""
    if "file" not in attributes and "line" not in attributes:
        return NOWHERE
    return values.name(attributes.get("file")), values.line(attributes.get("line"), first)


def parts_with(parts: Sequence[Part], *tags: str) -> list[Part]:
    """Return the parts that have one of these tags, in their order."""
    return [part for part in parts if part.tag in tags]


def skipped_outcome(part: Part) -> CaseOutcome:
    """Return the outcome of a skipped test: a reason, without a text."""
    message = part.attributes.get("message", "")
    # unittest-xml-reporting has this type for tests that fail as expected.
    if part.attributes.get("type") == "XFAIL":
        return CaseOutcome(Status.XFAILED, message=message_of(part))
    if message and len(message) <= MAX_MESSAGE:
        return _cached_skip(message)
    return CaseOutcome(Status.SKIPPED, message=message_of(part))


@lru_cache(maxsize=256)
def _cached_skip(message: str) -> CaseOutcome:
    """Return one cached outcome for the thousands of tests with the same message."""
    return CaseOutcome(Status.SKIPPED, message=one_line(message))


def message_of(part: Part) -> str:
    """Return a part's message on one line, else the first line of its text, else its type."""
    get = part.attributes.get
    return one_line(get("message", "")) or one_line(part.text.strip().partition("\n")[0]) or one_line(get("type", ""))


def _cause(part: Part) -> str:
    """Return a part's message on one line, or the line of its text that says why it failed; "" if neither says so."""
    message = one_line(part.attributes.get("message", ""))
    return cause_line(part.text) if says_nothing(message) else message


def outcome(parts: Sequence[Part]) -> CaseOutcome:
    """Return the outcome of a test with at least one part: a failure outweighs an error, and an error a skip.

    But a skip that says that the test may fail outweighs its failures. Several failures become one. If none of them has
    a text, the test's output takes its place.
    """
    if len(parts) == 1 and (only_status := STATUSES.get(parts[0].tag)):
        return skipped_outcome(parts[0]) if only_status is Status.SKIPPED else failed_outcome(only_status, parts)
    for part in parts_with(parts, "skipped"):
        if _expects_failure(part):
            return skipped_outcome(part)._replace(status=Status.XFAILED)
    for tag, status in STATUSES.items():
        if failed_or_skipped := parts_with(parts, tag):
            return (
                skipped_outcome(failed_or_skipped[0])
                if status is Status.SKIPPED
                else failed_outcome(status, failed_or_skipped, parts)
            )
    if flaky := parts_with(parts, *FLAKY):
        return failed_outcome(Status.PASSED, flaky)._replace(flaky=True)
    rerun = parts_with(parts, *RERUN)
    return failed_outcome(Status.ERRORED if rerun[0].tag == "rerunError" else Status.FAILED, rerun)


def _expects_failure(part: Part) -> bool:
    get = part.attributes.get
    return get("type") == _TODO or (_EXPECTED.search(get("message", "") or part.text) is not None)


def failed_outcome(status: Status, parts: Sequence[Part], siblings: Sequence[Part] = ()) -> CaseOutcome:
    """Return the outcome of a test with one or more failed parts; the message is the first that says anything.

    `siblings` are all parts of the case; those with the test's output give the text if no failed part has one.
    """
    failure_texts = [part.text.strip("\n") for part in parts if part.text.strip()]
    logs = [] if failure_texts else [log.text for log in parts_with(siblings, *LOGS)]
    message = (
        next(filter(None, map(_cause, parts)), "")
        or cause_line("\n".join(logs), is_log=True)
        or next(filter(None, map(message_of, parts)), "")
    )
    if len(parts) > 1:
        suffix = texts.MORE_OUTCOMES.format(count=len(parts) - 1)
        message = message[: MAX_MESSAGE - len(suffix)] + suffix
    failure_texts = failure_texts or logs
    if parts[0].tag not in STATUSES:  # the <stackTrace> of an attempt is surrounded by white space
        failure_texts = [text.strip() for text in failure_texts]
    text = cut("\n\n".join(failure_texts))
    path, line = next((location for part in parts if any(location := place(part.attributes))), NOWHERE)
    return CaseOutcome(status, False, Trouble.NONE, message, text if text.isascii() else values.text(text), path, line)
