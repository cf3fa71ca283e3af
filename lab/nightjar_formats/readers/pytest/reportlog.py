"""pytest-reportlog: one JSON object per line, for each phase of each attempt at a test.

nightjar_lab.pytest writes this format too, with lines of its own: NightjarStart, NightjarWorkerDied and
NightjarCapabilities, which is for the manifest and ignored here.

If SessionFinish, the last line, is missing, the process died; the lines before count. The tests that were running are
errored with Trouble.CRASH; if there are none, `pytest::internal` is. The last line may be torn by that. Any earlier
line that is not JSON is ignored, because a test's own output may get into the file.

Facts that the code relies on, from pytest-reportlog 1.0, pytest 9.2, pytest-rerunfailures 16.7 and pytest-xdist 3.8:
an attempt ends with its teardown; all lines of an attempt that is to be rerun come before those of the next; a line
whose `when` is `???` is for an attempt whose worker died; lines of other tests may come in between; with reruns, the
lines of subtests come before that of setup.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, BinaryIO

from nightjar_formats.limits import MAX_OPEN_TESTS
from nightjar_formats.measurements import Measurement, of_properties
from nightjar_formats.model import BAD, Case, Trouble
from nightjar_formats.readers import texts, values
from nightjar_formats.readers.decoding.utf_8 import repaired
from nightjar_formats.readers.json.lines import json_lines
from nightjar_formats.readers.json.stream import ITEMS, SCALAR, EndsEarly, Shape
from nightjar_formats.readers.pytest.phases import (
    CRASHED,
    DIED_WITHIN,
    INTERNAL_ERROR,
    SKIPPED,
    Phase,
    Verdict,
    case_of,
    collection_case,
    last_line,
    pytest_case,
    verdict_of,
    without_group,
)
from nightjar_formats.readers.repairs import UNNAMED, Repair, Repairs
from nightjar_formats.refused import Refused, TooMuch

FORMAT = "pytest-reportlog"

_PLACE: Shape = {"path": SCALAR, "lineno": SCALAR, "message": SCALAR}
_TRACEBACK: Shape = {"reprentries": {ITEMS: {"data": {"lines": {ITEMS: SCALAR}, "reprfileloc": _PLACE}}}}
LINE: Shape = {
    "$report_type": SCALAR,
    "_report_type": SCALAR,
    "exitstatus": SCALAR,
    "nodeid": SCALAR,
    "location": {ITEMS: SCALAR},
    "when": SCALAR,
    "outcome": SCALAR,
    "duration": SCALAR,
    "wasxfail": SCALAR,
    "user_properties": {ITEMS: {ITEMS: SCALAR}},
    "longrepr": {ITEMS: SCALAR, "reprcrash": _PLACE, "reprtraceback": _TRACEBACK},
    "_subtest.context": {"msg": SCALAR, "kwargs": SCALAR},
}


def read(stream: BinaryIO, repairs: Repairs | None = None) -> Iterator[Case]:
    """Read the cases of a report, one for each test with all its attempts, in the order in which the tests ended.

    Raises Refused if it is not a pytest-reportlog, TooMuch beyond a limit.
    """
    repairs = repairs or Repairs()
    tests = _Tests(repairs)
    number = 0
    finished = None
    deaths, death_message = 0, ""
    try:
        for number, line in json_lines(repaired(stream, repairs), FORMAT, LINE, repairs):
            kind = _kind(line, number)
            if kind == "CollectReport":
                yield from _collected(line)
            elif kind == "TestReport":
                yield from tests.report(line, number)
            elif kind == "NightjarStart":
                tests.start(line, number)
            elif kind == "NightjarWorkerDied":
                deaths, death_message = deaths + 1, values.message(line.get("message"))
            elif kind == "SubTestReport":
                tests.subtest(line, number)
            elif kind in ("SessionStart", "SessionFinish"):
                # A file may contain several sessions, and each must end.
                finished = line if kind == "SessionFinish" else None
    except EndsEarly:
        if not number:
            raise
        finished = None
    if finished is not None:
        tests.drop_unreported()
    yield from tests.rest()
    yield from _ending(finished, died_in_a_test=bool(tests.open))
    if deaths > tests.crashed:
        # A worker died between two tests or after the last one, so that no test's case shows it.
        yield pytest_case(Trouble.CRASH, death_message)


def _kind(line: Any, number: int) -> str:
    if not isinstance(line, dict):
        raise Refused(texts.REPORTLOG_NO_OBJECT.format(what=FORMAT, line=number))
    kind = line.get("$report_type") or line.get("_report_type")
    if not isinstance(kind, str):
        raise Refused(texts.REPORTLOG_NO_TYPE.format(what=FORMAT, line=number))
    return "SubTestReport" if kind.lower() == "subtestreport" else kind


def _collected(line: Mapping[str, Any]) -> Iterator[Case]:
    longrepr = line.get("longrepr")
    skip_reason = _skip_reason(longrepr)
    text = SKIPPED + skip_reason if skip_reason else _text(longrepr)
    case = collection_case(values.name(line.get("nodeid")), str(line.get("outcome")), text)
    if case and case.nodeid:
        yield case


def _ending(finished: Mapping[str, Any] | None, *, died_in_a_test: bool) -> Iterator[Case]:
    """Yield a case for pytest itself if it failed and no test's case shows that."""
    if finished is None and not died_in_a_test:
        yield pytest_case(Trouble.CRASH, texts.REPORTLOG_DIED)
    elif finished and values.number(finished.get("exitstatus")) == INTERNAL_ERROR:
        yield pytest_case(Trouble.INTERNAL, texts.PYTEST_INTERNAL)


class _Attempts:
    """A test that is running: its last attempt, and whether an earlier one failed."""

    __slots__ = ("failed_subtest", "line", "measurements", "phases", "reran")

    def __init__(self) -> None:
        self.phases: dict[str, Phase] = {}
        self.line: int | None = None
        self.failed_subtest: Phase | None = None
        self.measurements: tuple[Measurement, ...] = ()
        self.reran = False

    @property
    def ends_in_rerun(self) -> bool:
        return any(phase.outcome == "rerun" for phase in self.phases.values())


class _Tests:
    """The tests that are running."""

    def __init__(self, repairs: Repairs) -> None:
        self._repairs = repairs
        self.open: dict[str, _Attempts] = {}
        self.crashed = 0

    def start(self, line: Mapping[str, Any], number: int) -> None:
        """Note that a test has begun; only nightjar_lab.pytest writes such a line, before the setup."""
        self._test(line, number)

    def drop_unreported(self) -> None:
        """Forget tests that began and reported nothing, because pytest ended regularly before them, as with `-x`."""
        self.open = {nodeid: test for nodeid, test in self.open.items() if test.phases or test.reran}

    def report(self, line: Mapping[str, Any], number: int) -> Iterator[Case]:
        """Add one phase of a test, and yield its case if the phase was the last."""
        nodeid, test = self._test(line, number)
        phase_name, phase = str(line.get("when")), _phase(line)
        if phase_name in ("setup", CRASHED):
            # Before version 16, pytest-rerunfailures reports no teardown of an attempt that is to be rerun.
            test.reran = test.reran or test.ends_in_rerun
            test.phases.clear()
        self.crashed += phase_name == CRASHED
        test.phases[phase_name] = phase
        location = values.sequence(line.get("location"))
        test.line = values.line(location[1], first=0) if len(location) > 1 else None
        if properties := values.sequence(line.get("user_properties")):
            pairs = [(pair[0], pair[1]) for pair in properties if isinstance(pair, list) and len(pair) == 2]
            test.measurements = of_properties(nodeid, pairs)
        if phase_name == "call" and test.failed_subtest and phase.outcome != "rerun":
            # With pytest-subtests, from before pytest had subtests itself, the test passes although a subtest failed.
            test.phases[phase_name] = test.failed_subtest._replace(seconds=phase.seconds)
        if phase_name in ("teardown", CRASHED):
            if test.ends_in_rerun:
                test.reran, test.failed_subtest = True, None
            else:
                del self.open[nodeid]
                yield _case(nodeid, test, verdict_of(test.phases))

    def subtest(self, line: Mapping[str, Any], number: int) -> None:
        """Add a subtest. The first one that failed explains the failure of its test."""
        _, test = self._test(line, number)
        if line.get("outcome") == "failed" and not test.failed_subtest:
            phase = _phase(line)
            label = values.message(values.mapping(line.get("_subtest.context")).get("msg"))
            test.failed_subtest = phase._replace(message=f"[{label}] {phase.message}" if label else phase.message)

    def rest(self) -> Iterator[Case]:
        """Yield the tests that were running or waiting for a rerun when the report ended."""
        for nodeid, test in self.open.items():
            verdict = verdict_of(test.phases)
            yield _case(nodeid, test, verdict if verdict.status in BAD else DIED_WITHIN)

    def _test(self, line: Mapping[str, Any], number: int) -> tuple[str, _Attempts]:
        nodeid = without_group(values.name(line.get("nodeid")))
        if not nodeid:
            nodeid = UNNAMED
            self._repairs.add(Repair.NAMELESS, number)
        test = self.open.setdefault(nodeid, _Attempts())
        if len(self.open) > MAX_OPEN_TESTS:
            raise TooMuch(texts.REPORTLOG_OPEN.format(what=FORMAT, line=number))
        return nodeid, test


def _case(nodeid: str, test: _Attempts, verdict: Verdict) -> Case:
    return case_of(nodeid, test.line, test.phases, verdict, flaky=test.reran, measurements=test.measurements)


def _phase(line: Mapping[str, Any]) -> Phase:
    longrepr, xfail, outcome = line.get("longrepr"), line.get("wasxfail"), str(line.get("outcome"))
    if outcome == "passed":
        message, text = xfail, ""
    elif outcome == "skipped":
        message, text = xfail or _skip_reason(longrepr), ""
    else:
        text = _text(longrepr)
        message = values.mapping(values.mapping(longrepr).get("reprcrash")).get("message") or last_line(text)
    return Phase(outcome, values.seconds(line.get("duration")), values.message(message), text, isinstance(xfail, str))


def _skip_reason(longrepr: Any) -> str:
    """Return the reason of a skip from its place and reason; "" if `longrepr` is something else."""
    if isinstance(longrepr, list) and len(longrepr) == 3 and isinstance(longrepr[2], str):
        return longrepr[2].removeprefix(SKIPPED)
    return ""


def _text(longrepr: Any) -> str:
    """Return the text of a failure, as pytest would print it, from its parts."""
    if isinstance(longrepr, str):
        return values.text(longrepr)
    if isinstance(longrepr, list):
        return values.text("\n".join(part for part in longrepr if isinstance(part, str)))
    printed: list[str] = []
    traceback = values.mapping(values.mapping(longrepr).get("reprtraceback"))
    for entry in values.sequence(traceback.get("reprentries")):
        data = values.mapping(values.mapping(entry).get("data"))
        printed += [line for line in values.sequence(data.get("lines")) if isinstance(line, str)]
        place = values.mapping(data.get("reprfileloc"))
        if place.get("path"):
            printed.append(f"\n{place.get('path')}:{place.get('lineno')}: {place.get('message')}\n")
    crash = values.mapping(values.mapping(longrepr).get("reprcrash"))
    return values.text("\n".join(printed) or crash.get("message"))
