"""Name what JUnit's suites and classes stand for, without what differs between runs: times, hosts, absolute paths.

A test's ID begins with its class, or with the names of its suites where the class names nothing. No I/O.
"""

from __future__ import annotations

from functools import lru_cache

from nightjar_formats.patterns import Pattern

PLACEHOLDERS = frozenset(
    {"test", "suite", "default", "none", "null", "undefined", "unknown", "n/a", "-", "unittest.suite._ErrorHolder"}
)
"""Classes that some tools write for all tests, such as node, and unittest for what failed outside of tests."""

_BEFORE, _AFTER = r"(?:^|[\s_.,:;@|/#([{-]+)", r"(?:[)\]}]+|\b|_|$)"
_TIME = Pattern(
    _BEFORE + r"(?:at |on )?(?:"
    r"20\d\d-[01]\d-[0-3]\d(?:[T _-]+[0-2]\d[:.-]?[0-5]\d(?:[:.-]?[0-5]\d)?(?:[.,]\d+)?(?: ?Z| ?[+-]\d\d:?\d\d)?)?"
    r"|20\d\d[01]\d[0-3]\d(?:[T_-]?[0-2]\d[0-5]\d(?:[0-5]\d(?:[.,]?\d{3,6})?)?)?Z?"
    r"|[0-2]\d:[0-5]\d:[0-5]\d(?:[.,]\d+)?"
    r"|(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun),? (?:\d{1,2} )?[A-Z][a-z]{2} [\d: ]*\d(?: (?:[A-Z]{2,5}(?:[+-]\d{4})?|20\d\d))*"
    r"|1[5-9]\d{8}(?:\d{3}|\d{6})?"  # seconds, milliseconds or microseconds since 1970
    r")" + _AFTER
)
_EDGES = " \t_.,:;@|/#([{-"
# A path from the root of a machine: with a drive or a scheme, in a well-known folder, or of a file with an extension.
_ABSOLUTE = Pattern(
    r"(?:file://|[A-Za-z]:[\\/]|\\\\[^\\]|/(?:builds?|data|github|home|mnt|opt|private|root|srv|tmp|usr|Users|var"
    r"|workspaces?)/|/[^:]*/[^/:]*\.[A-Za-z]\w{0,9}$)"
)


def is_absolute(name: str) -> bool:
    """Say whether a name is a path on the lab's machine, and not the path of a request, such as `/users/42`."""
    return (name[:1] in "/\\f" or name[1:2] == ":") and _ABSOLUTE.match(name) is not None


@lru_cache(maxsize=1024)
def stable_name(name: str, host: str = "") -> str:
    """Return a suite's name without a time stamp, and without the name of the machine that wrote the report.

    >>> stable_name("unittest.suite._ErrorHolder-20261120051000")
    'unittest.suite._ErrorHolder'
    """
    stable = name
    if host and host in name:
        stable = Pattern(_BEFORE + _escaped(host) + _AFTER).sub("", stable)
    if any(map(str.isdecimal, name)):
        stable = _TIME.sub("", stable)
    return name if stable == name else stable.strip(_EDGES)


def suite_path(outer: str, attributes: dict[str, str]) -> str:
    """Return the path of a suite: its name after the path of the suites around it.

    A folder of the lab's machine is no part of it, and a file's absolute path is all of it.
    """
    name = stable_name(attributes.get("name", ""), attributes.get("hostname", ""))
    if is_absolute(name) or not outer or is_absolute(outer):
        return name
    return f"{outer}.{name}" if name else outer


def class_of(attributes: dict[str, str], suites: str, file: str) -> str:
    """Return a test's class: that of the case, else the path of its suites, else "" if it has a file.

    For a test that wrote no report, Bazel writes a suite and a case of the same name, which needs no class.
    """
    classname = attributes.get("classname") or attributes.get("class", "")
    if classname and classname not in PLACEHOLDERS:
        return classname
    if suites and suites not in PLACEHOLDERS:
        return "" if suites == attributes.get("name") else suites
    return "" if file else classname


def _escaped(text: str) -> str:
    return "".join(char if char.isalnum() else rf"\x{{{ord(char):x}}}" for char in text)
