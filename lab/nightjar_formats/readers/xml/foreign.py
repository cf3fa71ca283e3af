"""Recognize the XML of tools whose own format is not read, and say how the tool writes one that is. No I/O."""

from __future__ import annotations

from collections.abc import Mapping

from nightjar_formats.readers import texts

MAX_TAG_SHOWN = 40

ROOTS: Mapping[str, str] = {
    "robot": texts.USE_ROBOT,
    "Catch": texts.USE_CATCH2,
    "Catch2TestRun": texts.USE_CATCH2,
    "doctest": texts.USE_DOCTEST,
    "TestResult": texts.USE_BOOST,
    "TestLog": texts.USE_BOOST,
    "Site": texts.USE_CTEST,
    "Result": texts.USE_CTS,
    "CUNIT_TEST_RUN_REPORT": texts.USE_CUNIT,
    "CUNIT_TEST_LIST_REPORT": texts.USE_CUNIT,
    "TestCase": texts.USE_QT,
    "testng-results": texts.USE_TESTNG,
    "tests-results": texts.USE_KYUA,
    "testrun": texts.USE_BUILD_TOOL,
    "testExecutions": texts.USE_SONAR,
    "events": texts.USE_JUNIT_PLATFORM,
    "plist": texts.USE_XCODE,
    "coverage": texts.COVERAGE,
    "report": texts.COVERAGE,
}
"""What to do instead, for each root element of a tool's own XML."""
NAMESPACES: Mapping[str, str] = {
    "http://check.sourceforge.net/ns": texts.USE_CHECK,
    "urn:model.allure.qatools.yandex.ru": texts.USE_ALLURE,
}
"""The same for namespaces of root elements whose names other formats use, too."""
JUNIT = frozenset({"testsuites", "testsuite", "testcase"})
_LIKE_TESTS = ("test", "case", "suite", "result", "spec")


def foreign_refusal(tag: str, attributes: Mapping[str, str]) -> str:
    """Return why a document with this root element is refused, and what to do; "" if its format may be one we read."""
    for name, value in attributes.items():
        if name.startswith("xmlns") and value in NAMESPACES:
            return NAMESPACES[value].format(tag=tag)
    name = tag.rpartition(":")[2]
    return ROOTS[name].format(tag=name) if name in ROOTS else ""


def is_like_test(tag: str) -> bool:
    """Say whether an element that JUnit does not have may be another tool's test, suite or result."""
    return tag not in JUNIT and any(word in tag.lower() for word in _LIKE_TESTS)
