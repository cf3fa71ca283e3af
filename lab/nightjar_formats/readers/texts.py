"""Texts for labs about a file that was refused or repaired.

`{what}` is the name of a format, and `{where}` a place in its file. A refusal says what is wrong, then what to do.
"""

from __future__ import annotations

from nightjar_formats.limits import (
    MAX_CASES,
    MAX_INFLATED_BYTES,
    MAX_JSON_DEPTH,
    MAX_MEMBERS,
    MAX_NESTED,
    MAX_OPEN_TESTS,
    MAX_RATIO,
    MAX_RETAINED_CHARACTERS,
    MAX_ROW_BYTES,
    MAX_STRING_BYTES,
)

# The format
UNKNOWN_FORMAT = "{name}: unknown format {format}; available: {known}"
UNKNOWN_CONTENT = (
    "The content is in none of the formats {known}. It begins {head}. If it is a log, send it as log.txt beside a "
    "report: the run's page shows it"
)
OTHER_TOOL = "this is {what}, which is not read: {remedy}"
OTHER_JSON = (
    "this is JSON of another tool, with the members {members}, which is not read: write JUnit, for which most tools "
    "have an option"
)
TOO_MANY_CASES = f"{{name}} has more than {MAX_CASES:,} test cases. Split the run into shards"

# Compression
SEND_IT = "Send it as it is, or compressed as .gz or .zst"
FILE_EMPTY = "{name} is empty: the program ended before it wrote the report. Run the tests again"
FILE_CUT_OFF = "{name} ends too early: its compressed data is cut off after {taken} bytes. Upload it again"
GARBAGE = "{name} has other data after the end of its compressed data, before byte {taken}. Compress it again"
NOT_INFLATED = (
    "{name} cannot be decompressed: {error}, before byte {taken}. Compress it again, with gzip, or zstd up to level 19"
)
BOMB = f"{{name}} is more than {MAX_RATIO} times as large uncompressed, and no real report is"
TOO_LONG = f"{{name}} is longer than {MAX_INFLATED_BYTES >> 20} MiB uncompressed. Split the run into shards"
TOO_MANY_MEMBERS = f"{{name}} has more than {MAX_MEMBERS:,} compressed parts. Compress it in one piece"
COMPRESSED_TWICE = f"{{name}} is compressed twice. {SEND_IT}, once"
INFLATED_EMPTY = "{name} is empty after decompression. Run the tests again"
ARCHIVE = f"{{name}} is, or contains, {{kind}}, which is not accepted. {SEND_IT}"
ZIP, TAR, BZIP2, XZ, SEVEN_ZIP = "a zip archive", "a tar archive", "bzip2 data", "xz data", "a 7z archive"

# Repairs
REPAIRED_CONTROL = (
    "characters that a report must not hold, such as control characters, were replaced ({count:,}, the first in "
    "line {line:,})"
)
REPAIRED_BYTES = "bytes that are not UTF-8 were read as {encoding} ({count:,}, the first in line {line:,}); use UTF-8"
REPAIRED_BYTES_OF_XML = (
    "bytes that are not UTF-8 were read as {encoding} ({count:,}, the first in line {line:,}); use UTF-8, "
    'or name the encoding in the first line, as in <?xml version="1.0" encoding="iso-8859-1"?>'
)
REPAIRED_WIDE = (
    "the file was converted from UTF-16 or UTF-32, which PowerShell's > writes; use UTF-8, as with "
    "Out-File -Encoding utf8"
)
REPAIRED_ENCODING = (
    "the encoding that the XML declaration names was ignored, because the file is not in it; leave it out"
)
REPAIRED_SPACE_BEFORE = "white space before <?xml was ignored"
REPAIRED_TEXT_BEFORE = "text before the report was ignored; the report begins in line {line:,}"
REPAIRED_TEXT_AFTER = "text after the end of the report was ignored, from line {line:,} on"
REPAIRED_NAMELESS = "test cases without a name were named {unnamed} ({count:,}, the first in line {line:,})"
REPAIRED_NAMELESS_ENTRIES = "test cases without a name were named {unnamed} ({count:,})"
REPAIRED_NOT_JSON = "lines that are not JSON were ignored ({count:,}, the first is line {line:,})"

# All formats
LEFT_OUT = "\n[… {removed:,} characters are left out here …]\n"
MORE_OUTCOMES = " (and {count} more)"
LONG_NAME = (
    "A test's name has {length:,} characters; at most {limit:,} are accepted (pytest: ids=). It begins with {start}"
)
LONG_NAME_AND_CLASS = (
    "a test's name and class have {count:,} characters; at most {limit:,} are accepted (pytest: ids=): {head}…"
)
UNFINISHED = "The process ended while this test ran"
MUCH_UNFINISHED = "{what}: the tests in progress have more than {most:,} characters"

# JSON
JSON_WHERE = "in the {size} KiB after byte {byte}"
JSON_NO_OBJECT = "{what}: expected an object {where}, but found {found}"
JSON_NO_ARRAY = "{what}: expected an array {where}, but found {found}"
JSON_NOT_AT_END = "{what}: expected the end of the file {where}, but found {found}"
JSON_FOUND = {
    "start_map": "an object",
    "start_array": "an array",
    "string": "a string",
    "number": "a number",
    "boolean": "true or false",
}
JSON_CUT_OFF = "{what}: the file ends too early"
JSON_CUT_OFF_AFTER = "{what}: the file ends too early, after {count} bytes"
JSON_LONG_ENTRY = (
    f"{{what}}: one entry has more than {{values:,}} values or {MAX_RETAINED_CHARACTERS:,} characters {{where}}: "
    "record fewer runs or samples of it, or less output"
)
JSON_LONG_STRING = f"{{what}}: a string is longer than {MAX_STRING_BYTES >> 20} MiB {{where}}"
JSON_DEEP = f"{{what}}: objects and arrays are nested deeper than {MAX_JSON_DEPTH} {{where}}"
JSON_INVALID = "{what}: this is not JSON {where}: {error}"
JSON_MORE = "a number or a word follows its end"
JSON_LONG_NUMBER = "{what}: a number has more than {most} digits"
NOT_UTF_8 = "bytes that are not UTF-8"
LINE = "{what}: line {line}"
LINE_CUT_OFF = "{where} is cut off"
LINE_NOT_JSON = "{where} is not JSON: {reason}"
LINE_SYNTAX = "{reason}, column {column}"
LINE_LARGE_NUMBER = "a number that is too large"
LINE_DEEP = "objects and arrays are nested too deep"

# JUnit
XML_EMPTY = "the file is empty: the test run wrote no report into it"
XML_IS_JSON = "this is JSON, not XML: name its format in the manifest, or leave the format out"
XML_CUT_OFF = "the file ends in the middle, in line {line} ({reason}): upload the whole file"
XML_SECOND = "a second document begins in line {line}: send one report per file"
XML_BROKEN = "line {line}, column {column}: {reason}; is there a raw control character, or a bare & or < in a text?"
XML_DOCTYPE = "line {line}: a DOCTYPE is not accepted: a JUnit report needs none"
XML_HTML = (
    "line {line}: this is an HTML page, not a JUnit report: check the program that wrote it; a server may have sent an "
    "error page instead of the file"
)
XML_ROOT = "the root element is <{tag}>, not <testsuites> or <testsuite>: this is not a JUnit report"
XML_NESTED = "line {line}: a <testcase> inside another one, or outside <testsuites> and <testsuite>"
XML_LONG_SUITES = "line {line}: the names of the suites have more than {limit:,} characters together"
XML_DEEP = "line {line}: more than {limit:,} nested elements"
XML_WIDE = "line {line}: more than {limit:,} attributes of one element"
XML_LONG_MARKUP = "line {line}: a tag, attribute or comment of more than {limit:,} bytes: put long texts between tags"
XML_ELEMENTS = "line {line}: more than {limit:,} elements: split the report into several files"
XML_NAMES = "line {line}: more than {limit:,} different names of elements and attributes"
XML_MEASUREMENTS = "line {line}: a test has more than {limit:,} measurements"
XML_ENCODING = "the XML declaration names an encoding that cannot be read: write the report in UTF-8"

# Other XML
WALK_REFUSAL = "{what}: line {line}: {refusal}"
WALK_CUT_OFF = "{what}: the file ends in line {line} before its XML does ({reason}): upload the whole file"
WALK_BROKEN = "{what}: line {line}, column {column}: {reason}"
WALK_DOCTYPE = "{what}: line {line}: a DOCTYPE is not accepted: a report needs none"
WALK_ROOT = "{what}: the root element is <{tag}>: this is another format"
WALK_DEEP = "{what}: line {line}: more than {limit:,} nested elements"
WALK_WIDE = "{what}: line {line}: more than {limit:,} attributes of one element"
WALK_LONG_MARKUP = "{what}: line {line}: a tag, attribute or comment of more than {limit:,} bytes"
WALK_ELEMENTS = "{what}: line {line}: more than {limit:,} elements: split the report into several files"
WALK_NAMES = "{what}: line {line}: more than {limit:,} different names of elements and attributes"
NUNIT_2 = (
    "{what}: <test-results> is the format of NUnit 2: write NUnit 3's, as in --result=TestResult.xml;format=nunit3"
)
NUNIT_RESULT = "{name} has the result {result}; expected Passed, Failed, Skipped, Inconclusive or Warning"
XUNIT_RESULT = "{name} has the result {result}; expected Pass, Fail, Skip or NotRun"
TRX_NO_OUTCOME = "the result has no outcome"
TRX_OUTCOME = "{name} has the outcome {outcome}, which Visual Studio does not use"

# XML of other tools
USE_ROBOT = (
    "<{tag}> is Robot Framework's own XML: write JUnit with --xunit junit.xml, or make it of this file with "
    "rebot --xunit junit.xml output.xml"
)
USE_CATCH2 = "<{tag}> is Catch2's own XML: write JUnit with --reporter junit --out junit.xml"
USE_DOCTEST = "<{tag}> is doctest's own XML: write JUnit with --reporters=junit --out=junit.xml"
USE_BOOST = "<{tag}> is Boost.Test's own XML: write JUnit with --log_format=JUNIT --log_sink=junit.xml"
USE_CTEST = "<{tag}> is CTest's XML for CDash: write JUnit with ctest --output-junit junit.xml (CMake 3.21 or newer)"
USE_CTS = (
    "<{tag}> is the XML of Android's compatibility suites: add the result reporter "
    "com.android.tradefed.result.XmlResultReporter to the test plan, which writes JUnit"
)
USE_CUNIT = (
    "<{tag}> is CUnit's own XML: call CU_automated_enable_junit_xml(CU_TRUE) before the tests run to write JUnit"
)
USE_CHECK = (
    "<{tag}> with this namespace is Check's own XML, and Check writes no JUnit: write TAP, with srunner_set_tap or "
    "CK_TAP_LOG_FILE_NAME=report.tap"
)
USE_CPPUNIT = (
    "this is CppUnit's own XML, and CppUnit writes no JUnit: use an outputter for JUnit, or run it under CTest"
)
USE_QT = "<{tag}> is Qt Test's own XML: write JUnit with -o junit.xml,junitxml (before Qt 6: -o junit.xml,xunitxml)"
USE_TESTNG = "<{tag}> is TestNG's own XML: upload the files that it writes to test-output/junitreports"
USE_KYUA = (
    "<{tag}> is ATF's own XML: run the tests with kyua, and write JUnit with kyua report-junit --output=junit.xml"
)
USE_BUILD_TOOL = "<{tag}> is what a development environment exports: upload the JUnit files that Maven or Gradle write"
USE_SONAR = "<{tag}> is SonarQube's format: use the JUnit reporter of the test runner"
USE_JUNIT_PLATFORM = (
    "<{tag}> is Open Test Reporting: upload the TEST-*.xml files that Maven, Gradle, or the console launcher with "
    "--reports-dir write"
)
USE_XCODE = "<{tag}> is Xcode's format: write JUnit with xcbeautify --report junit"
USE_ALLURE = "<{tag}> with this namespace is Allure's XML: use the JUnit reporter of the test runner"
COVERAGE = "<{tag}> is a report about code, such as its coverage, and has no tests: upload the JUnit report"
XML_NO_CASES = (
    "the report has no <testcase>, but <{tag}>, which is not JUnit: this is the format of another tool. Let the tool "
    "write JUnit, or another format that Nightjar reads"
)

# pytest
PYTEST_INTERNAL = "pytest ended with an internal error: tests that it would have run are missing"
REPORTLOG_NO_OBJECT = "{what}: line {line} must be one JSON object"
REPORTLOG_NO_TYPE = "{what}: line {line} has no $report_type: is this another format?"
REPORTLOG_OPEN = f"{{what}}: more than {MAX_OPEN_TESTS} tests are in progress in line {{line}}"
REPORTLOG_DIED = (
    "The report ends before the session does: the process died, and tests that it would have run are missing"
)
REPORT_NO_TESTS = (
    "{what}: there is no list `tests`, which is needed; if the report was made with --json-report-summary, leave that "
    "option out"
)
REPORT_NO_OUTCOME = "{what}: {nodeid} has neither phases nor a known outcome, but {outcome}"
REPORT_SUBTEST_FAILED = "A subtest failed; pytest-json-report does not say why (pytest-reportlog does)"
REPORT_HIDDEN = (
    "pytest failed, but none of these tests did: a subtest failed, in one of the tests with subtests ({count:,}), and "
    "pytest-json-report does not say which (pytest-reportlog does)"
)

# CTRF and ExecuTorch
CTRF_NO_TESTS = "{what}: there is no list `results.tests`"
CTRF_STATUS = "{what}: {name} has the status {status}; expected passed, failed, skipped, pending or other"
CSV_NO_HEADER = "{what}: the first line must name the columns, including {columns}"
CSV_CUT_OFF = "{what}: the row of line {line}{test} is cut off: the process died, or the file is incomplete"
CSV_LONG_ROW = f"{{what}}: the row of line {{line}} has more than {MAX_ROW_BYTES >> 20} MiB"
CSV_LONG_FIELD = "{what}: a field in the row of line {line} has more than {limit:,} characters"
CSV_SURPLUS = "{what}: the row of line {line} has {fields} fields, but the first line names {columns} columns"
CSV_INVALID = "{what}: line {line} is not CSV: {error}"
CSV_NOT_UTF_8 = "{what}: line {line} has bytes that are not UTF-8"
CSV_MANY_SUBTESTS = "{what}: {test} has more than {limit} rows"
CSV_RESULT = "{what}: the row of line {line} has the result {result}; expected Pass, Fail or Skip"

# Go and Rust
GO_NO_EVENT = "{what}: no line is an event of `go test -json`"
GO_NO_END = "The report ends before this package does: tests may be missing"
GO_FAILED = "The package failed, but none of its tests did"
GO_NOT_BUILT = "The package could not be built"
GO_SUBTEST_FAILED = "A subtest failed"
RUST_NO_EVENT = "{what}: no line is an event of libtest"
RUST_TOO_FEW = "The report ends after {ended:,} of {expected:,} tests: the process died"

# Benchmarks
NO_BENCHMARKS = "{what}: there is no member `{member}`"
COMMAND_FAILED = "the command failed in {count:,} of {runs:,} runs, at first with exit status {status}"
BENCHMARK_FAILED = "The benchmark failed or was skipped: the report has no result of it"
GO_BENCHMARK_FAILED = "The benchmark failed"
GO_NO_BENCHMARK = "{what}: no line is the result of a benchmark: run go test -bench"
RUST_NO_BENCHMARK = "{what}: no line is the result of a benchmark: run cargo bench"
CRITERION_NO_BENCHMARK = "{what}: no line is a benchmark-complete message"

# TAP
TAP_NO_TAP = "{what}: no line is a plan or a result of TAP"
TAP_NO_KTAP = "{what}: no line is a plan or a result of KTAP"
TAP_DEEP = f"{{what}}: more than {MAX_NESTED} nested tests"
TAP_TOO_FEW = "{planned} {were} planned and {count:,} ran: the process ended early"
TAP_EXPECTED = "expected {wanted}, got {found}"

DESCRIPTIONS: dict[str, tuple[str, str]] = {
    "pytest-reportlog": (
        "pytest with [pytest-reportlog](https://pypi.org/project/pytest-reportlog/)",
        "everything: node IDs, files and lines, reruns, xfail and xpass; written line by line, so it survives a crash",
    ),
    "junit": (
        "pytest `--junitxml` (use `-o junit_family=xunit1`), GoogleTest, CTest, Surefire, and most others",
        "pytest's xunit2 has no files and lines; JUnit shows an xpass as a pass; after a crash there is no file",
    ),
    "pytest-json-report": (
        "pytest with [pytest-json-report](https://pypi.org/project/pytest-json-report/), ExecuTorch's backend suite",
        "node IDs and lines; with ExecuTorch's subtests also the failed stage and measurements. No file after a crash",
    ),
    "executorch-csv": (
        "ExecuTorch's backend suite, its older report",
        "the failed stage and measurements; no files, no durations",
    ),
    "ctrf": (
        "reporters of the [Common Test Report Format](https://ctrf.io)",
        "depends on the reporter: at best files, lines, retries and flaky tests",
    ),
    "go-test-json": (
        "`go test -json`; on a device `./x.test -test.v | go tool test2json -p PACKAGE`",
        "subtests, durations, files and lines of failures; written line by line. Before Go 1.24, redirect stderr too: "
        "builds that fail are reported there",
    ),
    "libtest-json": (
        "Rust's `cargo test -- -Z unstable-options --format json --report-time`, cargo-nextest's `libtest-json`",
        "messages, files and lines of panics; written line by line. With `cargo test`, redirect stderr too: it names "
        "the binary of each test. cargo-nextest also writes JUnit",
    ),
    "xunit-net": (
        "xunit.net v2 and v3 (`-xml`, `--report-xunit`), and v1",
        "durations, places from stack traces, errors outside of tests; v3 also has files and lines",
    ),
    "nunit3": (
        "NUnit 3 and 4 (nunit3-console, `--logger nunit`), Pester, Unity",
        "durations, places from stack traces, failures of setup and teardown",
    ),
    "trx": (
        "Visual Studio and `dotnet test --logger trx`",
        "durations, places from stack traces, a test host that crashed",
    ),
    "tap": (
        "Perl's tests and `prove -v`, `node --test --test-reporter=tap`, bats, tape, GLib, Meson and many others",
        "depends on the tool: subtests, files and lines, durations; written line by line. Most tools give a test a "
        "name and no file, so names must be unique",
    ),
    "ktap": (
        "the Linux kernel's KUnit and kselftest, also as a console's log",
        "subtests, files and lines of failed expectations, what the kernel said meanwhile; written line by line",
    ),
    "pytest-benchmark-json": (
        "pytest with [pytest-benchmark](https://pypi.org/project/pytest-benchmark/): `--benchmark-json`",
        "[measurements](#send-measurements): `latency` with its rounds, and the numbers in `extra_info`; node IDs",
    ),
    "google-benchmark-json": (
        "[Google Benchmark](https://github.com/google/benchmark): `--benchmark_out=FILE --benchmark_out_format=json`",
        "measurements: `latency`, `cpu_time`, throughput and counters, with repetitions; errors",
    ),
    "hyperfine-json": (
        "[hyperfine](https://github.com/sharkdp/hyperfine): `--export-json`",
        "measurements: `latency` with its runs, `cpu_time`, `peak_memory`; failures with `--ignore-failure`",
    ),
    "go-bench": (
        "the text of `go test -bench`",
        "measurements: `latency`, `memory`, `allocations` and your own metrics, with the runs of `-count`",
    ),
    "asv-json": (
        "[asv](https://asv.readthedocs.io): a file below `.asv/results/MACHINE`",
        "measurements: `latency`, `peak_memory`, `size` or `value`, for each combination of parameters",
    ),
    "criterion-json": (
        "[Criterion.rs](https://bheisler.github.io/criterion.rs/book/): `cargo criterion --message-format=json`",
        "measurements: `latency` with its samples",
    ),
    "cargo-bench": (
        "the text of `cargo bench`, from Criterion.rs, `#[bench]`, or the option `--output-format bencher`",
        "measurements: `latency` in nanoseconds and `throughput`, in one unit for all runs",
    ),
    "twister-json": (
        "Zephyr's twister: `twister.json`",
        "test cases with the names of its XML, durations and logs; measurements: `used_ram`, `used_rom`, and the "
        "numbers that `record` finds in a suite's console",
    ),
}
"""What writes each format, and what it contains, for the guide of labs; the best first."""
