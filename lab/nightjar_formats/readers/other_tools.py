"""Recognize reports in formats that Nightjar does not read, and name the option that makes the tool write another one.

A tool is recognized by the members of its JSON, or by a line that only this tool prints. To add a tool, add a row with
its members or lines, and the option.
"""

from __future__ import annotations

from typing import NamedTuple

from nightjar_formats.patterns import Pattern
from nightjar_formats.readers import texts
from nightjar_formats.readers.json.stream import first_keys

SHOWN_MEMBERS = 6
"""The most members of an unknown JSON that a refusal names."""
LONGEST_MEMBER = 40


class OtherJson(NamedTuple):
    """The JSON of a tool. The object `inside` (the outermost if "") must have all these `members`."""

    what: str
    remedy: str
    members: frozenset[str]
    inside: str = ""


class OtherText(NamedTuple):
    """The text of a tool, which has a line that `line` matches."""

    what: str
    remedy: str
    line: Pattern


def _json(name: str, remedy: str, members: str, inside: str = "") -> OtherJson:
    return OtherJson(name, remedy, frozenset(members.split()), inside)


def _text(name: str, remedy: str, *lines: str) -> OtherText:
    return OtherText(name, remedy, Pattern(f"^(?:{'|'.join(lines)})", by_line=True))


_JEST = "write JUnit with jest-junit, as in jest --reporters=jest-junit, or CTRF with jest-ctrf-json-reporter"
_VITEST = "write JUnit, as in vitest run --reporter=junit --outputFile=report.xml"
_MOCHA = "write JUnit, as in mocha --reporter xunit --reporter-options output=report.xml"
_PLAYWRIGHT = "write JUnit, as in PLAYWRIGHT_JUNIT_OUTPUT_FILE=report.xml playwright test --reporter=junit"
_CUCUMBER = "write JUnit, as in cucumber --format junit:report.xml (behave: --junit)"
_RSPEC = "write JUnit with rspec_junit_formatter, as in rspec --format RspecJunitFormatter --out report.xml"
_GTEST = "write JUnit, as in --gtest_output=xml:report.xml"
_CATCH = "write JUnit, as in --reporter JUnit::out=report.xml"
_PYTEST = (
    "write JUnit, as in pytest --junitxml=report.xml, or install pytest-reportlog: pytest --report-log=report.jsonl"
)
_ALLURE = "write JUnit with the option of your test runner, which Allure reads too"
_ROBOT = "write JUnit, as in robot --xunit report.xml (rebot --xunit for an existing output file)"
_RUST = "write JSON, as in cargo test -- -Z unstable-options --format json --report-time, or JUnit with cargo-nextest"
_GO = "write JSON, as in go test -json"
_NO_TESTS = "it holds no results of tests: send the report of the tests"
_PHPUNIT = "write JUnit, as in phpunit --log-junit report.xml"
_BAZEL = "send the test.xml files below bazel-testlogs"

_JSON = (
    _json("the JSON of vitest or jest", f"{_JEST} (vitest run --reporter=junit)", "numTotalTests testResults"),
    _json("the JSON of vitest or jest", f"{_JEST} (vitest run --reporter=junit)", "numFailedTests numTotalTests"),
    _json("the JSON of mochawesome", _MOCHA, "testsRegistered", "stats"),
    _json("the JSON of mocha", _MOCHA, "suites tests passes", "stats"),
    _json("the JSON of Playwright", _PLAYWRIGHT, "fullyParallel", "config"),
    _json("the JSON of Playwright", _PLAYWRIGHT, "forbidOnly", "config"),
    _json("the JSON of Playwright", _PLAYWRIGHT, "config suites"),
    _json("the JSON of Playwright", _PLAYWRIGHT, "suites expected unexpected", "stats"),
    _json("the JSON of Cucumber or behave", _CUCUMBER, "elements keyword"),
    _json("the JSON of Cucumber or behave", _CUCUMBER, "uri keyword"),
    _json("the JSON of behave", "write JUnit, as in behave --junit", "elements status location"),
    _json("the messages of Cucumber", _CUCUMBER, "protocolVersion implementation", "meta"),
    _json("a result of Allure", _ALLURE, "uuid historyId"),
    _json("a result of Allure", _ALLURE, "uuid stage"),
    _json("a result of Allure", _ALLURE, "uuid children"),
    _json("the JSON of RSpec", _RSPEC, "examples summary_line"),
    _json("the JSON of RSpec", _RSPEC, "version examples"),
    _json("the JSON of GoogleTest", _GTEST, "testsuites disabled"),
    _json("the JSON of Catch2", _CATCH, "test-run"),
    _json("the JSON of Catch2", _CATCH, "rng-seed catch2-version", "metadata"),
    _json("the JSON of Robot Framework", _ROBOT, "generator suite"),
    _json("the JSON of Robot Framework", _ROBOT, "rpa suite"),
    _json("the JSON of CTest", "write JUnit, as in ctest --output-junit report.xml", "kind backtraceGraph"),
    _json(
        "the JSON of kunit.py", "send the output of kunit.py run --raw_output, which is KTAP", "sub_groups test_cases"
    ),
    _json("the JSON of newman", "write JUnit, as in newman run --reporters junit", "collection run"),
    _json("the JSON of TestCafe", "write JUnit, as in testcafe --reporter xunit:report.xml", "userAgents fixtures"),
    _json("the JSON of Bazel", _BAZEL, "id buildStarted"),
    _json("the JSON of Bazel", _BAZEL, "id started"),
    _json(
        "the JSON of Dart",
        "convert it with the package junitreport: tojunit --output report.xml",
        "protocolVersion runnerVersion",
    ),
    _json("the JSON of pytest-json", _PYTEST, "tests summary environment", "report"),
    _json("the events of cargo's build", _RUST, "reason package_id"),
    _json(
        "the list of tests of cargo-nextest", 'write JUnit: [profile.ci.junit] path = "report.xml"', "rust-build-meta"
    ),
    _json("the JSON of Xcode", "convert it to JUnit, as with xcbeautify --report junit", "_type actions"),
    _json("the JSON of lit", "write JUnit, as in lit --xunit-xml-output report.xml", "__version__ elapsed tests"),
    _json("the JSON of PHPUnit", _PHPUNIT, "event suite test"),
    _json(
        "the JSON of golangci-lint", "write JUnit, as in golangci-lint run --output.junit-xml.path report.xml", "Issues"
    ),
    _json("the JSON of ESLint", "write JUnit, as in eslint --format junit", "filePath messages errorCount"),
    _json("SARIF", _NO_TESTS, "runs version"),
    _json("the JSON of coverage.py", _NO_TESTS, "meta files totals"),
)

_TEXTS = (
    _text("the text of pytest", _PYTEST, r"=+ test session starts =+", r"=+ (?:\d+ \w+,? ?)+ in [\d.:]+s"),
    _text(
        "the text of unittest",
        "run the tests with pytest --junitxml=report.xml, or with unittest-xml-reporting: python -m xmlrunner",
        r"\w+ \([\w.]+\)(?: \.\.\. .*)?$",
        r"Ran \d+ tests? in [\d.]+s",
    ),
    _text(
        "the text of CTest",
        "write JUnit, as in ctest --output-junit report.xml",
        r"Test project \S",
        r" *\d+/\d+ Test +#\d+: ",
        r" +Start +\d+: \S",
    ),
    _text(
        "the text of go test",
        _GO,
        r"=== RUN +\S",
        r" *--- (?:PASS|FAIL|SKIP): ",
        r"ok  +\t?\S+\t[\d.(]",
        r"ok +\t\S+\t",
        r"FAIL\t\S+\t",
        r"\?   +\t\S+\t\[no test files\]",
    ),
    _text(
        "the text of cargo test", _RUST, r"running \d+ tests?$", r"test result: (?:ok|FAILED)\.", r"test \S+ \.\.\. \w+"
    ),
    _text("the text of cargo-nextest", _RUST, r" *Nextest run ID", r" +(?:PASS|FAIL) \[ *[\d.]+s\] "),
    _text(
        "the text of cmocka",
        "write TAP or XML, as in CMOCKA_MESSAGE_OUTPUT=tap",
        r"\[=+\] (?:\w+: )?Running \d+ test\(s\)",
    ),
    _text("the text of GoogleTest", _GTEST, r"\[=+\] Running \d+ tests? from", r"\[ RUN      \] "),
    _text("the text of doctest", "write JUnit, as in --reporters=junit --out=report.xml", r"\[doctest\] "),
    _text(
        "the text of Catch2",
        _CATCH,
        r"Randomness seeded to: \d+",
        r"All tests passed \(\d+ assertion",
        r"test cases: +\d+",
    ),
    _text(
        "the text of Boost.Test",
        "write JUnit, as in --log_format=JUNIT --log_sink=report.xml",
        r"Running \d+ test cases?\.\.\.",
        r"\*\*\* (?:No errors|\d+ failures?) (?:is|are )?detected",
    ),
    _text("the text of Check", "write TAP, as in CK_TAP_LOG_FILE_NAME=report.tap", r"\d+%: Checks: \d+, Failures: "),
    _text(
        "the text of CppUTest",
        "write JUnit, as in -ojunit",
        r"(?:OK|Errors) \(\d+ (?:tests|failures), \d+ (?:ran|tests)",
    ),
    _text(
        "the text of Unity",
        "convert it with Unity's auto/stylize_as_junit.py",
        r"\S+\.c:\d+:\w+:(?:PASS|FAIL|IGNORE)",
        r"\d+ Tests \d+ Failures \d+ Ignored",
    ),
    _text("the text of prove without results", "write them, as in prove -v", r"(?:\[[\d:]+\] )?\S+ \.{2,} ?(?:ok|$)"),
    _text(
        "the log of Automake",
        "send the .log files of the TAP tests",
        r"(?:PASS|FAIL|XFAIL|XPASS|SKIP|ERROR): \S+(?:\.\w+ \d| \d+ - \S)",
        r"# TOTAL: +\d+",
    ),
    _text(
        "the text of Meson",
        "send meson-logs/testlog.junit.xml",
        r" *\d+/\d+ \S.* +(?:OK|FAIL|SKIP|TIMEOUT|ERROR) +[\d.]+ ?s",
        r"=+ \d+/\d+ =+$",
        r"Log of Meson test suite run",
    ),
    _text(
        "the text of lit",
        "write JUnit, as in lit --xunit-xml-output report.xml",
        r"(?:PASS|FAIL|XFAIL|UNSUPPORTED): \S.* :: \S",
        r"-- Testing: \d+ ",
    ),
    _text("the text of Bazel", _BAZEL, r"//\S+ +(?:PASSED|FAILED|TIMEOUT|NO STATUS)\b", r"INFO: Build completed"),
    _text(
        "the text of Maven",
        "send target/surefire-reports/*.xml",
        r"(?:\[\w+\] )?Tests run: \d+, Failures: \d+",
        r"\[INFO\] Scanning for projects",
    ),
    _text("the text of Gradle", "send build/test-results/*/*.xml", r"> Task :", r"BUILD (?:SUCCESSFUL|FAILED) in "),
    _text(
        "the text of dotnet test",
        "write TRX, as in dotnet test --logger trx",
        r"(?:Passed|Failed)! +- Failed: +\d+",
        r"A total of \d+ test files? matched",
        r"Test run for \S",
    ),
    _text("the text of vitest", _VITEST, r" *RUN +v\d", r" *Test Files +\d+ "),
    _text("the text of jest", _JEST, r"(?:PASS|FAIL) +\S+\.(?:[cm]?[jt]sx?)\b", r"Test Suites: +\d+ "),
    _text("the text of Playwright", _PLAYWRIGHT, r"Running \d+ tests? using \d+ workers?"),
    _text(
        "the text of node --test",
        "write TAP, as in node --test --test-reporter=tap --test-reporter-destination=report.tap",
        r"\x{2139} (?:tests|suites|pass) \d+",
        r" *[✔✖] .* \([\d.]+ms\)",
    ),
    _text("the text of mocha", _MOCHA, r" +\d+ passing(?: \(|$)", r" +\d+ failing$"),
    _text("the text of deno test", "write JUnit, as in deno test --junit-path=report.xml", r"running \d+ tests? from "),
    _text(
        "the text of bun test",
        "write JUnit, as in bun test --reporter=junit --reporter-outfile=report.xml",
        r"bun test v\d",
    ),
    _text("the text of PHPUnit", _PHPUNIT, r"PHPUnit \d+\.\d+", r"OK \(\d+ tests?, \d+ assertions?\)"),
    _text("the text of RSpec", _RSPEC, r"\d+ examples?, \d+ failures?"),
    _text(
        "the text of Minitest",
        "write JUnit with minitest-reporters: Minitest::Reporters::JUnitReporter",
        r"# Running:$",
        r"\d+ runs, \d+ assertions, ",
    ),
    _text("the text of Robot Framework", _ROBOT, r"\S.* +\| (?:PASS|FAIL|SKIP) \|$"),
    _text(
        "the text of swift test",
        "write JUnit, as in swift test --xunit-output report.xml",
        r"Test Suite '.*' started at",
        r"Test Case '.*' (?:started|passed)",
    ),
    _text(
        "the text of twister",
        "send twister.json or twister_report.xml from its output folder",
        r"(?:INFO|DEBUG) +- (?:Using|Total complete)",
    ),
    _text(
        "subunit",
        "convert it, as in subunit-1to2 | subunit2junitxml -o report.xml",
        r"(?:success|failure|error|skip): \S+(?: \[)?$",
    ),
    _text("coverage data", _NO_TESTS, r"(?:TN:.*|SF:\S+)$", r"DA:\d+,\d+"),
)
_PAGES = (
    _text("the page of pytest-html", _PYTEST, r".*pytest-html"),
    _text("the page of Robot Framework", _ROBOT, r".*Robot Framework"),
    _text("the page of mochawesome", _MOCHA, r".*[Mm]ochawesome"),
    _text("the page of Playwright", _PLAYWRIGHT, r".*Playwright"),
    _text("the page of Allure", _ALLURE, r".*[Aa]llure"),
    _text("the page of Gradle", "send build/test-results/*/*.xml", r".*[Gg]radle"),
    _text("the page of Maven", "send target/surefire-reports/*.xml", r".*[Ss]urefire"),
)
"""Pages of HTML that show results; those of other servers are refused as XML."""
_HTML = (b"<!doctype html", b"<html")
_SUBUNIT_2 = b"\xb3"
"""The signature of a packet of subunit version 2 (https://github.com/testing-cabal/subunit)."""


def refusal_of(head: bytes) -> str:
    """Return why a file that begins with `head` is refused, with the remedy if its tool is known; "" if it is not."""
    if head.startswith(_SUBUNIT_2):
        return _refusal("subunit", "convert it, as in subunit2junitxml -o report.xml")
    members = _of_json(head) if head.startswith((b"{", b"[")) else ""
    return members or _of_lines(_TEXTS, head)


def refusal_of_page(head: bytes) -> str:
    """Return why a page of HTML that begins with `head` is refused; "" for a page of no known tool, and for no page."""
    return _of_lines(_PAGES, head) if head[:LONGEST_MEMBER].lower().startswith(_HTML) else ""


def _of_json(head: bytes) -> str:
    keys = first_keys(head)
    for row in _JSON:
        if row.members <= keys.get(row.inside, set()):
            return _refusal(row.what, row.remedy)
    members = [name[:LONGEST_MEMBER] for name in sorted(keys[""])[:SHOWN_MEMBERS]]
    return texts.OTHER_JSON.format(members=", ".join(map(repr, members))) if members else ""


def _of_lines(rows: tuple[OtherText, ...], head: bytes) -> str:
    text = head.decode("utf-8", "replace").replace("\r", "")
    row = next((row for row in rows if row.line.search(text) is not None), None)
    return _refusal(row.what, row.remedy) if row is not None else ""


def _refusal(name: str, remedy: str) -> str:
    return texts.OTHER_TOOL.format(what=name, remedy=remedy)
