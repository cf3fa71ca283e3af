"""The XML of Maven Surefire and Failsafe: a test that was rerun is one case, with its attempts as parts."""

from __future__ import annotations

from collections.abc import Sequence

from nightjar_formats.model import BAD, Case, Trouble
from nightjar_formats.readers.outcomes import FLAKY, PASSED, RERUN, build, of, outcome
from nightjar_formats.readers.xml import Part, SuiteElement

SCHEMA = "xsi:noNamespaceSchemaLocation"
CLASS = "(class)"
"""The name for a class that failed before its first test; Surefire writes name="" for it."""


def knows(_attributes: dict[str, str], parts: Sequence[Part], suite: SuiteElement) -> bool:
    """Recognize a case of Surefire by the schema that its suite names, or by parts that Surefire introduced."""
    return "surefire" in suite.attributes.get(SCHEMA, "") or bool(of(parts, *FLAKY, *RERUN))


def case(attributes: dict[str, str], parts: Sequence[Part], _suite: SuiteElement) -> Case:
    """Read a case: parts `flaky…` are from a test that passed in the end, `rerun…` from one that always failed."""
    ended = outcome(parts) if parts else PASSED
    classname = attributes.get("classname", "")
    if classname and not attributes.get("name"):
        attributes = attributes | {"name": CLASS}
        if ended.status in BAD:
            ended = ended._replace(trouble=Trouble.SETUP)
    if "," in attributes.get("time", ""):
        # Old versions write a comma after the thousands: 1,234.567.
        attributes = attributes | {"time": attributes["time"].replace(",", "")}
    return build(attributes, classname, ended)
