"""pytest's JUnit, families xunit1 and xunit2 (`_pytest/junitxml.py`)."""

from __future__ import annotations

from collections.abc import Sequence

from nightjar_formats.model import Case, Status, Trouble
from nightjar_formats.patterns import Pattern
from nightjar_formats.readers.causes import cause
from nightjar_formats.readers.fields import one_line
from nightjar_formats.readers.junit.document import Part, SuiteElement
from nightjar_formats.readers.junit.outcomes import (
    PASSED,
    CaseOutcome,
    build,
    message_of,
    outcome,
    parts_with,
    place,
    skipped_outcome,
)
from nightjar_formats.readers.pytest.phases import name_without_group

ROOT, SUITE = "pytest tests", "pytest"
SUITE_ATTRIBUTES = ("name", "errors", "failures", "skipped", "tests", "time", "timestamp", "hostname")
"""The order in which pytest writes them. With `junit_suite_name`, nothing else shows that a suite is pytest's."""
SKIPS = frozenset({"pytest.skip", "pytest.xfail"})
OLD_XPASS = "xfail-marked test passes unexpectedly"
ESCAPE = "#x1B"
"""How pytest writes a control character that XML cannot hold."""
INTERNAL = ("pytest", "internal")
"""The class and name of the case for a failure of pytest itself."""
NOT_COLLECTED = frozenset({"collection failure", "collection skipped"})
UNITY = "is_unity_case"
"""The attribute of pytest-embedded; "1" at a case of Unity on a device, which it puts into pytest's suite."""

_CRASH = Pattern(r"worker '[^']*' crashed while running ")
_TIMEOUT = Pattern(r"(?:Failed: )?Timeout \(?>\s*[\d.]+ *s")
_TIMEOUTS = ("Timeout ", "Failed: Timeout ")
_COLOR = Pattern(r"#x1B\[[0-9;?]*[ -/]*[@-~]")
_PHASES = {
    'failed on setup with "': Trouble.SETUP,
    'failed on teardown with "': Trouble.TEARDOWN,
}
_BEGINS_PHASE = tuple(_PHASES)


def recognizes(suite: SuiteElement) -> bool:
    """Recognize a suite of pytest, whatever its cases are and in whatever order they come."""
    return (
        suite.root.get("name") == ROOT
        or suite.attributes.get("name") == SUITE
        or tuple(suite.attributes) == SUITE_ATTRIBUTES
    )


def is_own(parts: Sequence[Part]) -> bool:
    """Say whether a case has an outcome in pytest's form, in any suite."""
    if len(parts) == 1:  # nearly all cases; the generator below would cost more than everything else here
        return _is_own(parts[0])
    return any(map(_is_own, parts))


def _is_own(part: Part) -> bool:
    message = part.attributes.get("message", "")
    return part.attributes.get("type") in SKIPS or message in NOT_COLLECTED or message.startswith(_BEGINS_PHASE)


def case(attributes: dict[str, str], parts: Sequence[Part], suite: SuiteElement) -> Case | None:
    """Read a case. A test that was rerun has several cases with the same name in its suite, one for each attempt.

    Return None for a case with only a duration, which xdist may write for a test whose worker died: another case
    reports that test.
    """
    classname = attributes.get("classname", "")
    if classname and "@" in attributes.get("name", ""):
        attributes = attributes | {"name": name_without_group(attributes["name"])}
    if not parts and "name" not in attributes and not classname:
        return None
    ended = outcome_of(attributes, classname, parts) if parts else PASSED
    is_unity = attributes.get(UNITY) == "1"
    attempt = suite.number if classname and not is_unity else 0
    if "file" in attributes:
        # pytest counts lines from 0, and writes file and line only in the family xunit1. Unity counts from 1.
        return build(attributes, classname, ended, *place(attributes, first=1 if is_unity else 0), attempt)
    return build(attributes, classname, ended, "", None, attempt)


def outcome_of(attributes: dict[str, str], classname: str, parts: Sequence[Part]) -> CaseOutcome:
    """Distinguish a failure of the test from one of the runner, collection, setup or teardown, and from a crash."""
    if len(parts) == 1 and parts[0].attributes.get("type") == "pytest.skip":
        return skipped_outcome(parts[0])
    parts = [_without_colors(part) for part in parts]
    ended = outcome(parts)
    if ended.status is Status.SKIPPED:
        return _skipped(ended, parts_with(parts, "skipped")[0], classname)
    if ended.status is Status.FAILED:
        return ended._replace(trouble=Trouble.TIMEOUT) if _is_timeout(ended.message) else ended
    if ended.status is not Status.ERRORED:
        return ended
    error = parts_with(parts, "error")[0]
    if (classname, attributes.get("name")) == INTERNAL:
        return ended._replace(trouble=Trouble.INTERNAL, message=_last_line(error))
    message = error.attributes.get("message", "")
    if message == "collection failure" and not classname:
        return ended._replace(trouble=Trouble.COLLECTION, message=_last_line(error))
    for prefix, trouble in _PHASES.items():
        if ended.message.startswith(prefix):
            reason = ended.message.removeprefix(prefix).removesuffix('"')
            return ended._replace(trouble=_trouble(reason, trouble), message=cause(reason, ended.text))
    return ended


def _last_line(error: Part) -> str:
    """Return the last line of the traceback, for a message that does not say what went wrong."""
    return one_line(error.text.strip().rpartition("\n")[2].removeprefix("E ")) or message_of(error)


def _without_colors(part: Part) -> Part:
    tag, attributes, text = part
    if ESCAPE in attributes.get("message", ""):
        attributes = attributes | {"message": _COLOR.sub("", attributes["message"])}
    return Part(tag, attributes, _COLOR.sub("", text) if ESCAPE in text else text)


def _trouble(reason: str, phase: Trouble) -> Trouble:
    if _CRASH.match(reason):
        return Trouble.CRASH
    return Trouble.TIMEOUT if _is_timeout(reason) else phase


def _is_timeout(message: str) -> bool:
    return message.startswith(_TIMEOUTS) and _TIMEOUT.match(message) is not None


def _skipped(ended: CaseOutcome, part: Part, classname: str) -> CaseOutcome:
    if part.attributes.get("type") == "pytest.xfail":
        return ended._replace(status=Status.XFAILED)
    if ended.message == OLD_XPASS:
        return ended._replace(status=Status.XPASSED)
    if ended.message == "collection skipped" and not classname:
        # The text is the repr of a tuple of file, line and reason: ('…', 3, 'Skipped: no GPU').
        reason = part.text.partition("Skipped: ")[2].rstrip(")")[:-1]
        return ended._replace(trouble=Trouble.COLLECTION, message=one_line(reason) or ended.message)
    return ended
