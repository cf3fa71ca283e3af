"""Write the command that runs failed tests again, and the address of a new issue about a flaky one. No I/O."""

from __future__ import annotations

import os
import shlex
from collections.abc import Mapping, Sequence
from typing import NamedTuple
from urllib.parse import quote, urlencode

from nightjar_formats.items import counted
from nightjar_lab.pytest import run_texts as texts
from nightjar_lab.pytest.printable import printable

MOST_TESTS = 10
MOST_ISSUES = 3
LONGEST_ADDRESS = 6_000
"""Characters of an address; GitHub refuses addresses of about 8,000 or more."""
BUDGETS = (1_000, 300, 80)
"""The most characters of each text from outside, tried in turn until the address is short enough."""
LABEL = "test: flaky"
VARIABLES = (
    "NIGHTJAR_TEST_TARGETS",
    "TVM_TEST_TARGETS",
    "SKIP_SLOW_TESTS",
    "NIGHTJAR_LEVEL",
    "PYTEST_ADDOPTS",
    "PYTEST_PLUGINS",
    "PYTEST_DISABLE_PLUGIN_AUTOLOAD",
    "PYTHONHASHSEED",
    "PYTHONPATH",
)
"""Variables that decide which tests there are and how they run. A project adds its own: `nightjar_reproduce_env`."""

ALONE = frozenset(
    (
        *("-x", "--exitfirst", "--lf", "--last-failed", "--ff", "--failed-first", "--nf", "--new-first"),
        *("--sw", "--stepwise", "--sw-skip", "--stepwise-skip", "--sw-reset", "--stepwise-reset"),
        *("--slow-report", "--pyargs", "--cov", "-d", "-f", "--looponfail", "--keep-duplicates", "--cache-clear"),
    )
)
"""Options without a value that decide which tests run or what is written; the command names the tests itself."""
WITH_VALUE = frozenset(
    (
        *("--maxfail", "--lfnf", "--last-failed-no-failures", "--basetemp", "--reruns", "--reruns-delay"),
        *("--shard", "--durations-from", "--nightjar-report", "--nightjar-reproduce"),
        *("-n", "--numprocesses", "--maxprocesses", "--dist", "--tx", "--px", "--max-worker-restart"),
        *("--junitxml", "--junit-xml", "--report-log", "--json-report-file", "--html", "--alluredir"),
        *("--cov-report", "--cov-config"),
    )
)
"""Options with a value that decide which tests run or what is written."""
COMBINED = frozenset("xvqsl")
"""Letters of options that may stand together, as in -xvs."""


class FailedTest(NamedTuple):
    """A test that failed: its node ID from the folder of the command, and the last line of what it says."""

    nodeid: str
    message: str = ""


class ReproducedRun(NamedTuple):
    """How pytest was run. `program` is its beginning, `options` are those of `shared_options`."""

    folder: str
    program: Sequence[str]
    options: Sequence[str]
    environment: Mapping[str, str]


def shared_options(arguments: Sequence[str], selected: Sequence[str]) -> list[str]:
    """Return the options of a command line that the failed tests need as well; `selected` are its paths and IDs."""
    selection = list(selected)
    shared: list[str] = []
    remaining = iter(arguments)
    for argument in remaining:
        name, equals, _ = argument.partition("=")
        if argument in selection:
            selection.remove(argument)
        elif argument in ALONE or (equals and name in WITH_VALUE | ALONE):
            continue
        elif argument in WITH_VALUE:
            next(remaining, None)
        elif argument.startswith("-n") and argument[2:].isalnum():
            continue
        elif argument[:1] == "-" and set(argument[1:]) <= COMBINED:
            shared += ["-" + argument[1:].replace("x", "")] if argument[1:].strip("x") else []
        else:
            shared.append(argument)
    return shared


def reproduce_command(run: ReproducedRun, tests: Sequence[str]) -> str:
    """Return a command for bash: the folder if it is not "", the variables, pytest, its options and the tests."""
    variables = [f"{name}={shell_word(value)}" for name, value in run.environment.items()]
    test_arguments = dict.fromkeys(map(named_on_command_line, tests))
    words = [*map(shell_word, run.program), *map(shell_word, run.options), *map(shell_word, test_arguments)]
    return " ".join([*([f"cd {shell_word(run.folder)} &&"] if run.folder else []), *variables, *words])


def named_on_command_line(nodeid: str) -> str:
    """Return the argument that selects a test: its ID, or the part of the ID that a command line can hold.

    pytest reads parameters from the first bracket on, so it cannot select inside a folder with a bracket in its name:
    https://docs.pytest.org/en/stable/how-to/usage.html#specifying-which-tests-to-run
    """
    path, colons, rest = nodeid.partition("::")
    if "[" in path or not _is_argument(path):
        safe = os.path.dirname(path.partition("[")[0])  # noqa: PTH120  # of a part of a name
        return safe if safe and _is_argument(safe) else "."
    while colons and not _is_argument(rest):
        rest, bracket, _ = rest.partition("[")
        if not bracket:
            rest = rest.rpartition("::")[0]
            colons = "::" if rest else ""
    name = path + colons + rest
    return f"./{name}" if name.startswith(("-", "@")) else name


def _is_argument(text: str) -> bool:
    """Say whether a text can be an argument of a process: no NUL, and no surrogates that stand for no byte."""
    try:
        return "\0" not in text and os.fsdecode(os.fsencode(text)) == text
    except UnicodeError:
        return False


def shell_word(text: str) -> str:
    """Return text as one word of bash, on one line, without control characters.

    `##` is split, because some CI services act on a line with `##[`.
    """
    if printable(text, len(text)) == text and "'" not in text:
        return shlex.quote(text).replace("##", "#''#")
    escaped = "".join(_escaped(character) for character in text)
    return f"$'{escaped}'".replace("##", "#\\x23")


def _escaped(character: str) -> str:
    if character in "\\'":
        return "\\" + character
    if printable(character) == character:
        return character
    return "".join(f"\\x{byte:02x}" for byte in os.fsencode(character))


def issue_address(page: str, test: str, message: str, command: str, facts: Mapping[str, str]) -> str:
    """Return the address of GitHub's form for a new issue, filled in; `page` is the repository's on GitHub.

    https://docs.github.com/en/issues/tracking-your-work-with-issues/using-issues/creating-an-issue#creating-an-issue-from-a-url-query
    """
    for most in BUDGETS:
        name = printable(test, most)
        parts = [texts.ISSUE_TEST.format(test=_code(name))]
        parts += [
            texts.ISSUE_FACT.format(name=fact, value=_code(printable(value, most))) for fact, value in facts.items()
        ]
        body = "\n".join(parts)
        if message:
            body += f"\n\n{_block(printable(message, most))}"
        if len(command) <= most * 2:
            body += f"\n\n{texts.ISSUE_REPRODUCE}\n\n{_block(command)}"
        query = {"labels": LABEL, "title": texts.ISSUE_TITLE.format(test=printable(test, min(most, 200))), "body": body}
        address = f"{page}/issues/new?{urlencode(query, quote_via=quote)}"
        if len(address) <= LONGEST_ADDRESS:
            return address
    return f"{page}/issues/new?{urlencode({'labels': LABEL}, quote_via=quote)}"


def _code(text: str) -> str:
    """Return text as code in Markdown: between more backticks than it has in a row, so it has no effect."""
    marks = "`"
    while marks in text:
        marks += "`"
    space = " " if text.startswith("`") or text.endswith("`") else ""
    return f"{marks}{space}{text}{space}{marks}"


def _block(text: str) -> str:
    marks = "```"
    while marks in text:
        marks += "`"
    return f"{marks}\n{text}\n{marks}"


def failed_in_order(failed: Mapping[str, str]) -> tuple[list[FailedTest], str]:
    """Return the first failed tests and, if there are more, a sentence that says how many."""
    tests = [FailedTest(nodeid, message) for nodeid, message in failed.items()]
    remainder = len(tests) - MOST_TESTS
    return tests[:MOST_TESTS], texts.REPRODUCE_MORE.format(
        more=counted(remainder, "more test")
    ) if remainder > 0 else ""
