"""How much of anything a lab may send, and the words in which more is refused."""

from __future__ import annotations

from nightjar_formats.refused import Refused

MAX_MANIFEST_BYTES = 1 << 20
MAX_FILES = 256
"""Files of one run."""
MAX_FILE_BYTES = 64 << 20
"""Bytes of one file as it lies in the bucket."""
MAX_RUN_BYTES = 512 << 20
MAX_INFLATED_BYTES = 512 << 20
"""Bytes of one file after inflating."""
MAX_MEMBERS = 20_000
"""Members of a gzip file, frames of a zstd file; tools that make one for each 64 KiB need half of that."""
MAX_RATIO = 200
"""Inflated bytes for each compressed one, looked at once 1 MiB has come out; real reports have 20."""
RATIO_FREE_BYTES = 1 << 20
MAX_DEPTH = 16
"""Elements or containers inside of each other; JUnit's suites need eight."""
MAX_NESTED = 64
"""Elements inside of each other in the formats of .NET; NUnit nests a suite for each part of a namespace."""
MAX_ATTRIBUTES = 64
"""Of one XML element."""
MAX_ELEMENTS = 5_000_000
"""Of one XML file, test cases not counted: ten for each case that a file may have."""
MAX_XML_NAMES = 1000
"""Different names of elements and attributes in one file; JUnit's dialects have some fifty together."""
MAX_PARTS = 64
"""Failures, errors and logs of one test case that are read, at most."""
MAX_TOKEN_BYTES = 1 << 20
"""Bytes of one tag, comment or attribute."""
MAX_JSON_DEPTH = 100
"""Objects and arrays inside of each other; what reporters write by themselves needs eleven, the rest is metadata."""
MAX_STRING_BYTES = 8 << 20
"""Bytes of one JSON string; a test's whole captured output is one."""
MAX_RETAINED_CHARACTERS = 4 << 20
"""Characters read of what a JSON report says about one test, before they become a message and a text."""
MAX_OPEN_TESTS = 1000
"""Tests of a pytest-reportlog that have begun and not ended: one for each worker, and those that wait for a rerun."""
MAX_UNFINISHED_CHARACTERS = 64 << 20
"""Characters held of all tests of one file that have not ended, or whose names follow later; each counts 100 more."""
MAX_ROW_BYTES = 1 << 20
"""Bytes of one row of CSV."""
MAX_CASES = 500_000
"""Cases of one file, attempts counted."""
MAX_TESTS = 1_000_000
"""Tests of one run, all files together."""
MAX_SUITE_NAMES = 3_000_000
"""Names that a suite's tests have had in all runs of all labs; more arise from names that differ in every run."""
MAX_PATH_STEPS = 20_000_000
"""Steps in which the tests of one file are found among the repository's files; 10,000 classes take some 100,000."""
MAX_NAME = 1000
"""Characters of a test's ID; of longer ones the middle gives way to its hash."""
MAX_RAW_NAME = 15_000
"""Characters of a name in a file, up to 60 kB; long parameter lists may take some thousands.
Fewer than are read of a JSON string, which is cut before anybody knows that it is a name."""
MAX_MESSAGE = 1000
"""Characters of a message; the rest is cut off."""
MAX_TEXT_HEAD, MAX_TEXT_TAIL = 6_000, 10_000
"""Characters stored of a failure's text, from its beginning and its end."""
MAX_SECONDS = 7 * 86400.0
"""A duration beyond this is nonsense, as a negative one is."""


class NotXml(Refused):
    """The file is no well-formed XML, or ends too early."""
