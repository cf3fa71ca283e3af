"""The limits of what a lab may send. Whoever checks one raises `TooMuch`, with a text for the lab."""

from __future__ import annotations

from nightjar_formats.refused import Refused

MAX_MANIFEST_BYTES = 1 << 20
MAX_FILES = 256
"""The most files of one run."""
MAX_FILE_BYTES = 64 << 20
"""The most bytes of one file as it is stored in the bucket."""
MAX_RUN_BYTES = 512 << 20
MAX_ARTIFACTS = 64
"""The most artifacts of one run: its log and other files that people read."""
MAX_ARTIFACT_BYTES = 32 << 20
"""The most bytes of one artifact as it is stored in the bucket."""
MAX_INFLATED_BYTES = 512 << 20
"""The most bytes of one file after inflating."""
MAX_MEMBERS = 20_000
"""The most members of a gzip file or frames of a zstd file; tools that write one for each 64 KiB need half as many."""
MAX_RATIO = 200
"""The most inflated bytes for each compressed byte, checked after the first MiB; real reports have about 20."""
RATIO_FREE_BYTES = 1 << 20
MAX_DEPTH = 16
"""The deepest nesting of elements or containers; JUnit's suites need eight."""
MAX_NESTED = 64
"""The deepest nesting of elements in the formats of .NET; NUnit nests a suite for each part of a namespace."""
MAX_ATTRIBUTES = 64
"""The most attributes of one XML element."""
MAX_ELEMENTS = 5_000_000
"""The most elements of one XML file besides test cases: ten for each case that a file may have."""
MAX_XML_NAMES = 1000
"""The most different names of elements and attributes in one file; all dialects of JUnit together have about fifty."""
MAX_PARTS = 64
"""The most failures, errors and logs of one test case that are read."""
MAX_TOKEN_BYTES = 1 << 20
"""The most bytes of one tag, comment or attribute."""
MAX_JSON_DEPTH = 100
"""The deepest nesting of objects and arrays; reporters themselves need eleven, and metadata may need more."""
MAX_STRING_BYTES = 8 << 20
"""The most bytes of one JSON string; a test's whole captured output is one string."""
MAX_RETAINED_CHARACTERS = 4 << 20
"""The most characters that are read about one test of a JSON report, before they become a message and a text."""
MAX_OPEN_TESTS = 1000
"""The most unfinished tests of a pytest-reportlog: one for each worker, and those that wait for a rerun."""
MAX_UNFINISHED_CHARACTERS = 64 << 20
"""The most characters in memory for unfinished or still nameless tests of one file; each test counts 100 more."""
MAX_ROW_BYTES = 1 << 20
"""The most bytes of one row of CSV."""
MAX_CASES = 500_000
"""The most cases of one file, with each attempt counted."""
MAX_TESTS = 1_000_000
"""The most tests of one run, in all files together."""
MAX_SUITE_NAMES = 3_000_000
"""The most names that a suite's tests have had in all runs; only names that differ in every run lead to more."""
MAX_SUITE_MEASUREMENTS = 3_000_000
"""The most measurements that a suite's tests have had in all runs, each test's counted."""
MAX_PATH_STEPS = 20_000_000
"""The most steps to match the tests of one file with the repository's files; 10,000 classes take about 100,000."""
MAX_MEASUREMENTS = 64
"""The most measurements of one test; ExecuTorch's CSV has about twenty columns of numbers."""
MAX_MEASUREMENT_NAME = 100
"""The most characters of a measurement's name, such as `latency`."""
MAX_UNIT = 20
"""The most characters of a unit, such as `ms`."""
MAX_SAMPLES = 500
"""The most samples of one measurement; as text, they stay below the length at which JSON strings are cut."""
MAX_RUN_MEASUREMENTS = 500_000
"""The most measurements of one run, with each sample counted as well; in memory, they take about 100 MB."""
MAX_NAME = 1000
"""The most characters of a test's ID; in a longer one, a hash replaces the middle."""
MAX_RAW_NAME = 15_000
"""The most characters of a name in a file, up to 60 kB; long lists of parameters may take some thousands.

It is less than the limit of a JSON string, which is cut before the reader knows that it is a name.
"""
MAX_MESSAGE = 1000
"""The most characters of a message; the rest is cut off."""
MAX_TEXT_HEAD, MAX_TEXT_TAIL = 6_000, 10_000
"""The most characters that are stored of a failure's text, from its beginning and from its end."""
MAX_SECONDS = 7 * 86400.0
"""Seconds, a week; a longer duration is ignored as nonsense, as a negative one is."""


class NotXml(Refused):
    """The file is not well-formed XML, or ends too early."""
