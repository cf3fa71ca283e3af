"""What docs/labs.md says of limits and formats; `make docs` writes it (scripts/docs.py)."""

from __future__ import annotations

from pathlib import Path

from bot.core.docs import replace_block, table
from bot.results.formats import FORMATS
from bot.results.ingest import limits

GUIDE = Path("docs/labs.md")

LIMITS_HEADER = ("of", "at most", "beyond it")
FORMATS_HEADER = ("`format`", "what writes it", "what it tells")

REFUSED, INCOMPLETE, CUT = "the run is refused", "the run is incomplete", "the rest is cut off"

_LIMITS: tuple[tuple[str, str, str], ...] = (
    ("`manifest.json`", "MAX_MANIFEST_BYTES", REFUSED),
    ("files of a run", "MAX_FILES", REFUSED),
    ("all files of a run together, as they lie in the bucket", "MAX_RUN_BYTES", REFUSED),
    ("one file, as it lies in the bucket", "MAX_FILE_BYTES", INCOMPLETE),
    ("one file, once it is inflated", "MAX_INFLATED_BYTES", INCOMPLETE),
    ("inflated bytes for each compressed one", "MAX_RATIO", INCOMPLETE),
    ("compressed parts (frames or members) of one file", "MAX_MEMBERS", INCOMPLETE),
    ("test cases of one file, attempts counted", "MAX_CASES", INCOMPLETE),
    ("tests of a run, all files together", "MAX_TESTS", INCOMPLETE),
    ("steps to find the names of a run's tests among the repository's files", "MAX_PATH_STEPS", REFUSED),
    ("names that a suite's tests have had in all runs", "MAX_SUITE_NAMES", INCOMPLETE),
    ("a test's ID, in characters", "MAX_NAME", "the middle gives way to its hash"),
    ("a name as it stands in a file, in characters", "MAX_RAW_NAME", INCOMPLETE),
    ("elements of XML inside of each other", "MAX_DEPTH", INCOMPLETE),
    ("attributes of one XML element", "MAX_ATTRIBUTES", INCOMPLETE),
    ("elements of one XML file that are no test cases", "MAX_ELEMENTS", INCOMPLETE),
    ("different names of elements and attributes in one file", "MAX_XML_NAMES", INCOMPLETE),
    ("one tag, attribute or comment of XML", "MAX_TOKEN_BYTES", INCOMPLETE),
    ("objects and lists of JSON inside of each other", "MAX_JSON_DEPTH", INCOMPLETE),
    ("one JSON string", "MAX_STRING_BYTES", INCOMPLETE),
    ("tests of a pytest-reportlog that have begun and not ended", "MAX_OPEN_TESTS", INCOMPLETE),
    ("one row of CSV", "MAX_ROW_BYTES", INCOMPLETE),
    ("failures, errors and logs that are looked at of one test case", "MAX_PARTS", CUT),
    ("what a JSON report says of one test, in characters", "MAX_KEPT_CHARACTERS", CUT),
    ("a message, in characters", "MAX_MESSAGE", CUT),
    ("a failure's text, in characters from its beginning", "MAX_TEXT_HEAD", "the middle is left out"),
    ("and from its end", "MAX_TEXT_TAIL", ""),
    ("a test's duration, in seconds", "MAX_SECONDS", "it is taken for none"),
)
_FORMATS = {
    "pytest-reportlog": (
        "pytest with [pytest-reportlog](https://pypi.org/project/pytest-reportlog/)",
        "everything: node IDs, files and lines, reruns, xfail and xpass; written line by line, so that what was tested "
        "before a crash is there",
    ),
    "junit": (
        "pytest `--junitxml` (take `-o junit_family=xunit1`), GoogleTest, CTest, Surefire, and most others",
        "pytest's xunit2 has no files and lines; no pytest JUnit tells an xpass from a pass, and after a crash of the "
        "process there is no file at all",
    ),
    "pytest-json-report": (
        "pytest with [pytest-json-report](https://pypi.org/project/pytest-json-report/), ExecuTorch's backend suite",
        "node IDs and lines; with ExecuTorch's subtests also the stage that failed and what was measured. There is no "
        "file after a crash",
    ),
    "executorch-csv": (
        "ExecuTorch's backend suite, its older report",
        "the stage that failed and what was measured; neither files nor durations",
    ),
    "ctrf": (
        "reporters of the [Common Test Report Format](https://ctrf.io)",
        "what its reporter fills in: at best files, lines, retries and flaky tests",
    ),
}


def documents(root: Path) -> dict[Path, str]:
    """Return what the generated file should hold, by its path below the root of the checkout."""
    guide = (root / GUIDE).read_text(encoding="utf-8")
    guide = replace_block(guide, "formats", formats_table())
    return {GUIDE: replace_block(guide, "limits", limits_table())}


def limits_table() -> str:
    """Return the table of how much of anything a lab may send."""
    return table(LIMITS_HEADER, [(what, _amount(name), beyond) for what, name, beyond in _LIMITS])


def formats_table() -> str:
    """Return the table of formats, the one to prefer first."""
    assert FORMATS.keys() == _FORMATS.keys()
    return table(FORMATS_HEADER, [(f"`{name}`", *words) for name, words in _FORMATS.items()])


def _amount(name: str) -> str:
    value = getattr(limits, name)
    in_bytes = name.endswith("_BYTES")
    return f"{value >> 20:,} MiB" if in_bytes else f"{value:,.0f}"
