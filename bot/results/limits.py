"""How much of anything a lab may send, and the words in which more is refused."""

from __future__ import annotations

MAX_MANIFEST_BYTES = 1 << 20
MAX_FILES = 256
"""Files of one run."""
MAX_FILE_BYTES = 64 << 20
"""Bytes of one file as it lies in the bucket."""
MAX_RUN_BYTES = 512 << 20
MAX_INFLATED_BYTES = 512 << 20
"""Bytes of one file after inflating."""
MAX_RATIO = 200
"""Inflated bytes for each compressed one, looked at once 1 MiB has come out; real reports have 20."""
RATIO_FREE_BYTES = 1 << 20
MAX_DEPTH = 16
"""Elements or containers inside of each other; JUnit's suites need eight."""
MAX_ATTRIBUTES = 64
"""Of one XML element."""
MAX_TOKEN_BYTES = 1 << 20
"""Bytes of one tag, comment or attribute, and of one line of a file of JSON lines."""
MAX_CASES = 500_000
"""Cases of one file, attempts counted."""
MAX_NAME = 1000
"""Characters of a test's ID; longer ones are refused, for two of them could become one."""
MAX_MESSAGE = 1000
"""Characters of a message; the rest is cut off."""
MAX_TEXT_HEAD, MAX_TEXT_TAIL = 6_000, 10_000
"""Characters kept of a failure's text, from its beginning and its end."""
MAX_SECONDS = 7 * 86400.0
"""A duration beyond this is nonsense, as a negative one is."""


class Refused(Exception):
    """A file or a manifest that cannot be taken as it is. The text is for the lab: what is wrong, and what to do."""


class NotXml(Refused):
    """The file is no well-formed XML, or ends too early."""


class TooMuch(Refused):
    """The file goes beyond one of the limits."""
