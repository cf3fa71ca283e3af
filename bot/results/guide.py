"""Write the generated tables of docs/labs.md, for `make docs` (scripts/docs.py)."""

from __future__ import annotations

from pathlib import Path

from nightjar_formats import limits
from nightjar_formats.readers import ALIASES
from nightjar_formats.readers.texts import DESCRIPTIONS

from bot.core.docs import replace_block, table

GUIDE = Path("docs/labs.md")

LIMITS_HEADER = ("what", "limit", "above it")
FORMATS_HEADER = ("`format`", "written by", "contains")

REFUSED, INCOMPLETE, CUT = "the run is refused", "the run is incomplete", "the rest is cut off"

_LIMITS: tuple[tuple[str, str, str], ...] = (
    ("`manifest.json`", "MAX_MANIFEST_BYTES", REFUSED),
    ("files of a run", "MAX_FILES", REFUSED),
    ("[logs and other files](#send-the-log-and-other-files) of a run", "MAX_ARTIFACTS", REFUSED),
    ("one of these, as stored in the bucket", "MAX_ARTIFACT_BYTES", REFUSED),
    ("all files of a run, as stored in the bucket", "MAX_RUN_BYTES", REFUSED),
    ("one file, as stored in the bucket", "MAX_FILE_BYTES", INCOMPLETE),
    ("one file, uncompressed", "MAX_INFLATED_BYTES", INCOMPLETE),
    ("uncompressed bytes per compressed byte", "MAX_RATIO", INCOMPLETE),
    ("compressed parts (frames or members) of one file", "MAX_MEMBERS", INCOMPLETE),
    ("test cases of one file, including attempts", "MAX_CASES", INCOMPLETE),
    ("tests of a run, all files together", "MAX_TESTS", INCOMPLETE),
    ("steps to match a run's tests with the repository's files", "MAX_PATH_STEPS", REFUSED),
    ("test names of a suite in all its runs", "MAX_SUITE_NAMES", INCOMPLETE),
    ("measurements of a suite in all its runs", "MAX_SUITE_MEASUREMENTS", INCOMPLETE),
    ("a test's ID, in characters", "MAX_NAME", "a hash replaces the middle"),
    ("a name in a file, in characters", "MAX_RAW_NAME", INCOMPLETE),
    ("nested XML elements", "MAX_DEPTH", INCOMPLETE),
    ("nested elements of xunit.net, NUnit and TRX, nested tests of TAP", "MAX_NESTED", INCOMPLETE),
    ("attributes of one XML element", "MAX_ATTRIBUTES", INCOMPLETE),
    ("elements of one XML file besides test cases", "MAX_ELEMENTS", INCOMPLETE),
    ("distinct names of elements and attributes in one file", "MAX_XML_NAMES", INCOMPLETE),
    ("one XML tag, attribute or comment", "MAX_TOKEN_BYTES", INCOMPLETE),
    ("nested JSON objects and lists", "MAX_JSON_DEPTH", INCOMPLETE),
    ("one JSON string", "MAX_STRING_BYTES", INCOMPLETE),
    ("unfinished tests of a pytest-reportlog", "MAX_OPEN_TESTS", INCOMPLETE),
    ("text about unfinished tests of one file, in characters", "MAX_UNFINISHED_CHARACTERS", INCOMPLETE),
    ("one row of CSV", "MAX_ROW_BYTES", INCOMPLETE),
    ("measurements of one test", "MAX_MEASUREMENTS", INCOMPLETE),
    ("samples of one measurement", "MAX_SAMPLES", INCOMPLETE),
    ("measurements and samples of a run", "MAX_RUN_MEASUREMENTS", INCOMPLETE),
    ("the name of a measurement, in characters", "MAX_MEASUREMENT_NAME", INCOMPLETE),
    ("the unit of a measurement, in characters", "MAX_UNIT", INCOMPLETE),
    ("failures, errors and logs of one test case", "MAX_PARTS", CUT),
    ("text about one test in a JSON report, in characters", "MAX_RETAINED_CHARACTERS", CUT),
    ("a message, in characters", "MAX_MESSAGE", CUT),
    ("a failure's text, first characters", "MAX_TEXT_HEAD", "the middle is left out"),
    ("a failure's text, last characters", "MAX_TEXT_TAIL", ""),
    ("a test's duration, in seconds", "MAX_SECONDS", "the duration is ignored"),
)


def documents(root: Path) -> dict[Path, str]:
    """Return the text of the generated file, by path."""
    guide = (root / GUIDE).read_text(encoding="utf-8")
    guide = replace_block(guide, "formats", formats_table())
    return {GUIDE: replace_block(guide, "limits", limits_table())}


def limits_table() -> str:
    """Return the table of limits for labs."""
    return table(LIMITS_HEADER, [(subject, _amount(name), beyond) for subject, name, beyond in _LIMITS])


def formats_table() -> str:
    """Return the table of formats, the best first."""
    also = {format_: f"; `{alias}` is another name" for alias, format_ in ALIASES.items()}
    rows = [
        (f"`{name}`", writer, f"{contents}{also.get(name, '')}") for name, (writer, contents) in DESCRIPTIONS.items()
    ]
    return table(FORMATS_HEADER, rows)


def _amount(name: str) -> str:
    value = getattr(limits, name)
    in_bytes = name.endswith("_BYTES")
    return f"{value >> 20:,} MiB" if in_bytes else f"{value:,.0f}"
