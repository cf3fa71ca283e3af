"""Combine setup, call and teardown of a pytest test into one case."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from nightjar_formats.measurements import Measurement
from nightjar_formats.model import Case, Status, Trouble
from nightjar_formats.patterns import Pattern
from nightjar_formats.readers import texts
from nightjar_formats.readers.values import message

CRASHED = "???"
"""The phase of the report that pytest-xdist makes for a test whose worker died."""
SKIPPED = "Skipped: "
INTERNAL_ERROR = 3
"""pytest's exit status for an internal error (https://docs.pytest.org/en/stable/reference/exit-codes.html)."""
_TIMEOUT = Pattern(r"(Failed: )?Timeout [>(]")
"""The beginning of pytest-timeout's messages."""

GOOD = frozenset({Status.PASSED, Status.XFAILED, Status.XPASSED})
_BAD = frozenset({"failed", "rerun"})
# Place and reason of a skip, if the report has the repr of a tuple.
_SKIP_AS_TEXT = Pattern(
    r"""\(.*, \d+, (?:'(?:Skipped: )?(?P<single>.*)'|"(?:Skipped: )?(?P<double>.*)")\)\s*$""", dot_is_any=True
)


class Phase(NamedTuple):
    """One phase of one attempt, as reported. `xfail`: the report says that the test was expected to fail."""

    outcome: str
    seconds: float | None = None
    message: str = ""
    text: str = ""
    xfail: bool = False


class Verdict(NamedTuple):
    """The outcome of a test, and the phase that decided it."""

    status: Status
    trouble: Trouble = Trouble.NONE
    phase: Phase = Phase("")


DIED_WITHIN = Verdict(Status.ERRORED, Trouble.CRASH, Phase("", message=texts.UNFINISHED))


def case_of(
    nodeid: str,
    line: int | None,
    phases: Mapping[str, Phase],
    verdict: Verdict,
    *,
    flaky: bool = False,
    measurements: tuple[Measurement, ...] = (),
) -> Case:
    """Return a test's case. Its duration is the sum of the durations of its phases."""
    durations = [phase.seconds for phase in phases.values() if phase.seconds is not None]
    path, name = split(nodeid)
    return Case(
        name=name,
        status=verdict.status,
        path=path,
        nodeid=nodeid,
        line=line,
        seconds=sum(durations) if durations else None,
        flaky=flaky and verdict.status in GOOD,
        trouble=verdict.trouble,
        message=verdict.phase.message,
        text=verdict.phase.text,
        measurements=measurements,
    )


def verdict_of(phases: Mapping[str, Phase]) -> Verdict:
    """Return the outcome of a test from the phases of its last attempt.

    A failure of the test itself outweighs one of its setup or teardown. The test failed if its last attempt was to be
    rerun, and its process died if the report has neither the call nor the teardown.
    """
    crash, call = phases.get(CRASHED), phases.get("call")
    if crash and (crash.outcome == "failed" or len(phases) == 1):
        return Verdict(Status.ERRORED, Trouble.CRASH, crash)
    if call and call.outcome in _BAD:
        return Verdict(Status.FAILED, _timeout_or(call, Trouble.NONE), call)
    for phase_name, trouble in (("setup", Trouble.SETUP), ("teardown", Trouble.TEARDOWN)):
        phase = phases.get(phase_name)
        if phase and phase.outcome in _BAD:
            return Verdict(Status.ERRORED, _timeout_or(phase, trouble), phase)
    for phase in phases.values():
        if phase.outcome == "skipped":
            return Verdict(Status.XFAILED if phase.xfail else Status.SKIPPED, Trouble.NONE, phase)
    if call and call.outcome == "passed":
        return Verdict(Status.XPASSED if call.xfail else Status.PASSED, Trouble.NONE, call)
    return DIED_WITHIN


def _timeout_or(phase: Phase, trouble: Trouble) -> Trouble:
    return Trouble.TIMEOUT if _TIMEOUT.match(phase.message) else trouble


def without_group(nodeid: str) -> str:
    """Return a node ID without the group that pytest-xdist appends with `--dist loadgroup`.

    >>> without_group("tests/test_a.py::test_b[c@d]@gpu0")
    'tests/test_a.py::test_b[c@d]'

    `name_without_group` removes it.
    """
    if "@" not in nodeid:
        return nodeid
    file, separator, name = nodeid.partition("::")
    if not separator or not file.endswith(".py"):
        return nodeid
    return f"{file}::{name_without_group(name)}"


def name_without_group(name: str) -> str:
    """Return the name of a test without the group that pytest-xdist appends with `--dist loadgroup`.

    >>> name_without_group("test_b[c@d]@gpu0")
    'test_b[c@d]'

    Neither a function's name nor what follows its parameters contains an `@` otherwise
    (`pytest_collection_modifyitems` in https://github.com/pytest-dev/pytest-xdist/blob/master/src/xdist/remote.py).
    """
    function, bracket, group = name.rpartition("]")
    end, _, _ = group.partition("@")
    return f"{function}{bracket}{end}"


def split(nodeid: str) -> tuple[str, str]:
    """Return a node ID's path and the test's own name; parameters may contain `::` and brackets.

    >>> split("tests/test_a.py::TestB::test_c[d::e]")
    ('tests/test_a.py', 'test_c[d::e]')
    """
    path, _, rest = nodeid.partition("::")
    bracket = rest.find("[")
    start = rest.rfind("::", 0, bracket if bracket >= 0 else len(rest))
    return path, rest[start + 2 :] if start >= 0 else rest or nodeid


def collection_case(nodeid: str, outcome: str, longrepr: str) -> Case | None:
    """Return the case for a file whose collection failed or was skipped; None if it was collected."""
    if outcome not in ("failed", "skipped"):
        return None
    path = nodeid.partition("::")[0]
    if outcome == "skipped":
        skip_reason = message(reason_of_skip(longrepr))
        return Case(path, Status.SKIPPED, path=path, nodeid=path, trouble=Trouble.COLLECTION, message=skip_reason)
    skip_reason = last_line(longrepr)
    return Case(
        path,
        Status.ERRORED,
        path=path,
        nodeid=path,
        trouble=Trouble.COLLECTION,
        message=message(skip_reason),
        text=longrepr,
    )


def pytest_case(trouble: Trouble, message: str) -> Case:
    """Return the case for a failure of pytest itself."""
    return Case("internal", Status.ERRORED, nodeid="pytest::internal", trouble=trouble, message=message)


def reason_of_skip(longrepr: str) -> str:
    """Return the reason of a skip from a text with a place and a reason; "" for any other text."""
    match = _SKIP_AS_TEXT.search(longrepr)
    if match:
        return match["double"] if match["single"] is None else match["single"]
    return longrepr.removeprefix(SKIPPED) if longrepr.startswith(SKIPPED) else ""


def last_line(text: str) -> str:
    """Return the last line of a traceback that says what was raised."""
    lines = [line for line in text.splitlines() if line.strip()]
    exception_lines = [line for line in lines if line.startswith("E ")]
    return (exception_lines or lines or [""])[-1].removeprefix("E ").strip()
