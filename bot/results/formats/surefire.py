"""Maven Surefire's XML, also of Failsafe: a test that was run again is one case, its attempts are parts of it."""

from __future__ import annotations

from collections.abc import Sequence

from bot.results.formats.outcomes import PASSED, Outcome, bad, build, of, outcome
from bot.results.formats.xml import Part, Suite
from bot.results.model import BAD, Case, Status, Trouble

SCHEMA = "xsi:noNamespaceSchemaLocation"
FLAKY = ("flakyFailure", "flakyError")
RERUN = ("rerunFailure", "rerunError")
CLASS = "(class)"
"""Stands for a test's name where a whole class failed before its first test, and Surefire writes name=""."""


def knows(_attributes: dict[str, str], parts: Sequence[Part], suite: Suite) -> bool:
    """Tell a case by the schema that its suite names, or by parts that no other tool writes."""
    return "surefire" in suite.attributes.get(SCHEMA, "") or bool(of(parts, *FLAKY, *RERUN))


def case(attributes: dict[str, str], parts: Sequence[Part], _suite: Suite) -> Case:
    """Read a case: `flaky…` is of a test that passed in the end, `rerun…` of one that failed each time."""
    ended = _ended(parts) if parts else PASSED
    classname = attributes.get("classname", "")
    if not attributes.get("name"):
        attributes = attributes | {"name": CLASS}
        if ended.status in BAD:
            ended = ended._replace(trouble=Trouble.SETUP)
    if "," in attributes.get("time", ""):
        # Old versions write thousands with a comma: 1,234.567.
        attributes = attributes | {"time": attributes["time"].replace(",", "")}
    return build(attributes, classname, ended)


def _ended(parts: Sequence[Part]) -> Outcome:
    found = outcome(parts)
    if found.status is not Status.PASSED:
        return found
    if flaky := _attempts(parts, *FLAKY):
        return bad(Status.PASSED, flaky)._replace(flaky=True)
    if rerun := _attempts(parts, *RERUN):
        return bad(Status.ERRORED if rerun[0].tag == "rerunError" else Status.FAILED, rerun)
    return found


def _attempts(parts: Sequence[Part], *tags: str) -> list[Part]:
    """Pick the attempts of these tags; their text stands in a `<stackTrace>`, with white space around it."""
    return [part._replace(text=part.text.strip()) for part in of(parts, *tags)]
