"""Read which tests a job names, and how often each runs, from the variables that the agent sets."""

from __future__ import annotations

import os
import re  # noqa: TID251
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

TESTS, REPEAT = "NIGHTJAR_TESTS", "NIGHTJAR_REPEAT"
MOST_REPEATS = 1000
_SPECIAL = re.compile(r"[^A-Za-z0-9_]")  # noqa: TID251
"""One class of characters, which cannot backtrack."""


def named_tests(environment: Mapping[str, str] | None = None) -> tuple[str, ...]:
    """Return the IDs in the file that `NIGHTJAR_TESTS` names, one a line; none if all tests are to run.

    Raises OSError and UnicodeError if the file cannot be read.
    """
    path = (os.environ if environment is None else environment).get(TESTS, "")
    if not path:
        return ()
    # Not `splitlines`: it splits at U+2028 and others, which an ID may contain.
    return tuple(dict.fromkeys(filter(None, Path(path).read_text(encoding="utf-8").split("\n"))))


def repeats(environment: Mapping[str, str] | None = None) -> int:
    """Return how often each test is to run: `NIGHTJAR_REPEAT`, once if it is no number from 1 to `MOST_REPEATS`."""
    text = (os.environ if environment is None else environment).get(REPEAT, "")
    number = int(text) if text.isascii() and text.isdigit() and len(text) < 9 else 1
    return min(MOST_REPEATS, max(1, number))


def is_same_test(test: str, nodeid: str) -> bool:
    """Say whether an ID of the bot is a node ID of pytest: one begins at the repository, the other at the root folder.

    `tests/python/test_ops.py::test_add` is `test_ops.py::test_add` of a pytest whose root folder is `tests/python`.
    """
    return test == nodeid or test.endswith(f"/{nodeid}") or nodeid.endswith(f"/{test}")


def _gtest(tests: Sequence[str]) -> list[str]:
    # Our IDs are SUITE::TEST, after the file if the report names one.
    return ["--gtest_filter=" + ":".join(".".join(test.split("::")[-2:]) for test in tests)]


def _ctest(tests: Sequence[str]) -> list[str]:
    return ["-R", f"^({'|'.join(_escaped(test) for test in tests)})$"]


def _go(tests: Sequence[str]) -> list[str]:
    # A subtest runs with its test: `-run` splits at slashes, and one pattern of a level goes for all tests.
    names = dict.fromkeys(test.rpartition("::")[2].partition("/")[0] for test in tests)
    return ["-run", f"^({'|'.join(map(_escaped, names))})$"]


def _pytest(tests: Sequence[str]) -> list[str]:
    return list(tests)


def _escaped(text: str) -> str:
    """Escape a name for a regular expression of CMake or Go; both know a backslash before punctuation."""
    return _SPECIAL.sub(
        lambda match: "\\" + match[0] if match[0].isascii() and not match[0].isspace() else match[0], text
    )


FILTERS: Mapping[str, Callable[[Sequence[str]], list[str]]] = {
    "gtest": _gtest,
    "ctest": _ctest,
    "go": _go,
    "pytest": _pytest,
}
"""The arguments with which a tool runs only some tests, by the name of the tool; each gets IDs of tests."""
