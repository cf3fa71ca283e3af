"""pytest-json-report: one JSON object for the whole session, with ExecuTorch's rows in the tests' metadata.

The file has one entry per test, in which each attempt overwrites the phases of the one before. The outcome `rerun`
means that an attempt failed and was repeated; the phases say how the last attempt ended. The outcome `subtests passed`
says nothing, because it hides earlier subtests that failed. Only pytest's exit status shows those: if it reports
failures and no other test explains them, such a test counts as failed.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, BinaryIO

from nightjar_formats.measurements import of_properties
from nightjar_formats.model import BAD, Case, Status, Trouble
from nightjar_formats.readers import executorch, texts, values
from nightjar_formats.readers.decoding.utf_8 import repaired
from nightjar_formats.readers.json.stream import ANY, ITEMS, SCALAR, JsonReader, Shape
from nightjar_formats.readers.pytest.phases import (
    CRASHED,
    INTERNAL_ERROR,
    Phase,
    Verdict,
    case_of,
    collection_case,
    last_line,
    pytest_case,
    reason_of_skip,
    verdict_of,
    without_group,
)
from nightjar_formats.readers.repairs import UNNAMED, Repair, Repairs
from nightjar_formats.refused import Refused
from nightjar_formats.terminal import quoted_text

FORMAT = "pytest-json-report"
SHOWN = 200

_PHASE: Shape = {"outcome": SCALAR, "duration": SCALAR, "longrepr": SCALAR, "crash": {"message": SCALAR}}
PHASES = ("setup", "call", "teardown", CRASHED)
_ROW: Shape = dict.fromkeys(executorch.ROW_COLUMNS, SCALAR)
TEST: Shape = {
    "nodeid": SCALAR,
    "lineno": SCALAR,
    "outcome": SCALAR,
    "metadata": {"subtests": {ITEMS: _ROW}},
    "user_properties": {ITEMS: {ANY: SCALAR}},
    **dict.fromkeys(PHASES, _PHASE),
}
COLLECTOR: Shape = {"nodeid": SCALAR, "outcome": SCALAR, "longrepr": SCALAR}

SUBTESTS_PASSED = "subtests passed"
TESTS_FAILED = 1
"""pytest's exit status if tests failed."""
OUTCOMES = {
    "passed": Verdict(Status.PASSED),
    "failed": Verdict(Status.FAILED),
    "subtests failed": Verdict(Status.FAILED),
    "error": Verdict(Status.ERRORED),
    "skipped": Verdict(Status.SKIPPED),
    "xfailed": Verdict(Status.XFAILED),
    "xpassed": Verdict(Status.XPASSED),
}
"""The verdict for each outcome. Phases do not say `xfailed` and `xpassed`."""


def read(stream: BinaryIO, repairs: Repairs | None = None) -> Iterator[Case]:
    """Read the cases of a report: one for each test, and one for each file that could not be collected.

    Raises Refused if it is not a pytest-json-report, TooMuch beyond a limit.
    """
    repairs = repairs or Repairs()
    json = JsonReader(repaired(stream, repairs), FORMAT)
    has_tests, exitcode, with_subtests, has_failed = False, None, 0, False
    for key in json.members():
        if key == "tests":
            has_tests = True
            for test in json.items(TEST):
                case = _case(test, repairs)
                has_failed = has_failed or case.status in BAD
                with_subtests += values.mapping(test).get("outcome") == SUBTESTS_PASSED
                yield case
        elif key == "collectors":
            for collector in json.items(COLLECTOR):
                for case in _collected(collector):
                    has_failed = has_failed or case.status in BAD
                    yield case
        elif key == "exitcode":
            exitcode = values.number(json.value(SCALAR))
        else:
            json.skip()
    json.end()
    if not has_tests:
        raise Refused(texts.REPORT_NO_TESTS.format(what=FORMAT))
    if exitcode == INTERNAL_ERROR:
        yield pytest_case(Trouble.INTERNAL, texts.PYTEST_INTERNAL)
    elif exitcode == TESTS_FAILED and with_subtests and not has_failed:
        yield Case(
            "subtests",
            Status.FAILED,
            nodeid="pytest::subtests",
            message=texts.REPORT_HIDDEN.format(count=with_subtests),
        )


def _collected(collector: Any) -> Iterator[Case]:
    entry = values.mapping(collector)
    case = collection_case(
        values.name(entry.get("nodeid")), str(entry.get("outcome")), values.text(entry.get("longrepr"))
    )
    if case and case.nodeid:
        yield case


def _case(test: Any, repairs: Repairs) -> Case:
    entry = values.mapping(test)
    nodeid = without_group(values.name(entry.get("nodeid")))
    if not nodeid:
        nodeid = UNNAMED
        repairs.add(Repair.NAMELESS_ENTRIES)
    phases = {phase_name: _phase(entry[phase_name]) for phase_name in PHASES if isinstance(entry.get(phase_name), dict)}
    reran = entry.get("outcome") == "rerun" or any(phase.outcome == "rerun" for phase in phases.values())
    line = values.line(entry.get("lineno"), first=0)
    properties = map(values.mapping, values.sequence(entry.get("user_properties")))
    measurements = of_properties(nodeid, [pair for members in properties for pair in members.items()])
    verdict = _verdict(nodeid, entry.get("outcome"), phases)
    case = case_of(nodeid, line, phases, verdict, flaky=reran, measurements=measurements)
    rows = values.sequence(values.mapping(entry.get("metadata")).get("subtests"))
    return _with_rows(case, [row for row in rows if isinstance(row, dict)])


def _verdict(nodeid: str, outcome: Any, phases: Mapping[str, Phase]) -> Verdict:
    """Decide how a test ended: from its phases, and from its outcome if that says more."""
    explicit = OUTCOMES.get(outcome) if isinstance(outcome, str) else None
    if not phases:
        if explicit is None:
            raise Refused(
                texts.REPORT_NO_OUTCOME.format(
                    what=FORMAT, nodeid=nodeid[:SHOWN], outcome=quoted_text(str(outcome)[:SHOWN])
                )
            )
        return explicit
    verdict = verdict_of(phases)
    if verdict.status in BAD or explicit is None:
        return verdict
    if explicit.status is Status.FAILED and not verdict.phase.message:
        return Verdict(Status.FAILED, phase=verdict.phase._replace(message=texts.REPORT_SUBTEST_FAILED))
    if explicit.status in BAD or explicit.status in (Status.XFAILED, Status.XPASSED):
        return verdict._replace(status=explicit.status)
    return verdict


def _phase(phase: Mapping[str, Any]) -> Phase:
    outcome, text = str(phase.get("outcome")), values.text(phase.get("longrepr"))
    if outcome == "passed":
        message, text = "", ""
    elif outcome == "skipped":
        # For an expected failure, the text is what the test raised, not why the failure was expected.
        message, text = reason_of_skip(text), ""
    else:
        message = values.mapping(phase.get("crash")).get("message") or last_line(text)
    return Phase(outcome, values.seconds(phase.get("duration")), values.message(message), text)


def _with_rows(case: Case, rows: list[Mapping[str, Any]]) -> Case:
    """Add the content of ExecuTorch's rows: the measurements, and the stage and error of a failure."""
    if not rows:
        return case
    measurements = case.measurements + executorch.measurements_of(rows)
    case = case._replace(measures=executorch.measured(rows), measurements=measurements)
    status, row = executorch.worst_status(rows)
    if case.status not in BAD or status not in BAD:
        return case
    message, text = executorch.message_and_text(row)
    return case._replace(
        trouble=case.trouble if case.trouble is not Trouble.NONE else executorch.trouble_of(row),
        message=message or case.message,
        text=case.text or text,
    )
