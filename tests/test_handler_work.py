"""The work of handlers on text from outside, in a thread of the server, is linear in the length of the text."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import pytest
from nightjar_formats.model import Detail, SeenTest, Status

from bot.config.faults import ConfigError
from bot.config.repository_file import MOST_BYTES
from bot.config.source import MAX_DEPTH
from bot.config.texts import FILE_TOO_LARGE, TOO_DEEP
from bot.results.report.check_run import results_report
from bot.results.store.failures.failures import Failure, SuiteFailures
from handlers.ci_reports.outcomes import BaseSuite, HeadAndBase, SuiteOutcomes
from handlers.lint import feature as lint
from handlers.regressions.decide import EvaluatedTarget, find_changes, pack_failures, unpack_failures
from handlers.regressions.target_text import issue_body, regression_news
from handlers.runtime.section import describe_runtimes
from handlers.skipped_tests.decide import Required
from handlers.skipped_tests.section import describe_skips
from handlers.teams.topics import OpenedThread, topic_subscribers
from tests.results.reported import ABOUT, BASE, SHA, a_suite, compared, findings
from tests.settings import own_file
from tests.steps import assert_linear

# `.github/nightjar.yaml`: anybody with the write role can change it.

YAML: Mapping[str, Callable[[int], str]] = {
    "mappings in mappings": lambda size: "lint: " + "{a: " * size,
    "items in items": lambda size: "- " * size,
    "keys that are mappings": lambda size: "? " * size,
    "deeper lines": lambda size: "".join(" " * depth + "a:\n" for depth in range(size // 10)),
    "aliases of aliases": lambda size: (
        "a0: &a0 [x]\n" + "".join(f"a{n}: &a{n} [*a{n - 1}, *a{n - 1}]\n" for n in range(1, size))
    ),
    "a long list": lambda size: f"lint: {{tags: [{'a, ' * size}]}}",
    "keys without values": lambda size: f"{{{'a,' * size}",
    "unknown keys": lambda size: "".join(f"k{number}: 1\n" for number in range(size)),
    "one key again and again": lambda size: "lint: 1\n" * size,
    "merged keys": lambda size: "<<: a\n" * size,
    "comments": lambda size: "#\n" * size,
    "a text of many lines": lambda size: "lint: a" + "\n  a" * size,
    "a folded text": lambda size: "lint: >\n" + "  a\n" * size,
    "quotes": lambda size: f"lint: '{chr(39) * 2 * size}'",
    "one long word": lambda size: "lint: " + "a" * size,
    "many documents": lambda size: "---\n" * size,
    "a long anchor": lambda size: "&" + "a" * size,
    "a long tag": lambda size: f"!{'a' * size} b",
    "a long directive": lambda size: "%" + "a" * size,
    "spaces": lambda size: " " * size + "x",
}


def faults(text: str) -> list[str]:
    try:
        own_file(text)
    except ConfigError as error:
        return [fault.message for fault in error.faults]
    return []


@pytest.mark.parametrize("shape", YAML)
def test_reading_a_repositorys_file_is_linear(shape: str) -> None:
    assert_linear(lambda size: lambda: faults(YAML[shape](size)), 60)


@pytest.mark.parametrize("opening", ["[", "{", "[{a: "])
def test_a_repositorys_file_with_the_deepest_possible_nesting_is_refused(opening: str) -> None:
    """The YAML reader looks 1,024 characters ahead for the end of a key, so it is linear only beyond that."""
    assert faults(opening * (MOST_BYTES // len(opening) - 10)) == [TOO_DEEP.format(most=MAX_DEPTH)]


def test_a_repositorys_file_that_is_too_large_is_refused_before_it_is_parsed() -> None:
    assert faults(" " * MOST_BYTES) == []
    assert faults(" " * (MOST_BYTES + 1)) == [FILE_TOO_LARGE.format(most=MOST_BYTES // 1024)]


# Tests in artifacts: a pull request's code chooses their number and names.

SHAPES: Mapping[str, Callable[[int], str]] = {
    "many of one file": lambda number: f"tests/test_a.py::test_{number}",
    "each in its own file": lambda number: f"tests/{number}/test_a.py::test_x",
    "classes in classes": lambda number: f"a.py::{'A::' * 20}test_{number}",
    "dotted": lambda number: f"{'a.' * 20}b{number}::test_x",
}


def beside(head: SuiteOutcomes, base: SuiteOutcomes) -> HeadAndBase:
    return HeadAndBase(SHA, 0.0, {"ops": head}, {"ops": BaseSuite(BASE.sha, BASE.url, base)})


def suite(names: list[str], status: Status) -> SuiteOutcomes:
    return SuiteOutcomes(dict.fromkeys(names, SeenTest(status)), dict.fromkeys(names, 20.0))


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("status", [Status.PASSED, Status.SKIPPED])
def test_the_list_of_skipped_tests_takes_linear_time(shape: str, status: Status) -> None:
    def make(size: int) -> Callable[[], object]:
        names = [SHAPES[shape](number) for number in range(2 * size)]
        head_and_base = beside(suite(names[:size], status), suite(names[size // 2 :], Status.PASSED))
        required = Required({"ops": tuple(names), "other": tuple(names)})
        return lambda: describe_skips(head_and_base, required, "required.json", "main")

    assert_linear(make, 30)


@pytest.mark.parametrize("shape", SHAPES)
def test_the_list_of_slow_tests_takes_linear_time(shape: str) -> None:
    def make(size: int) -> Callable[[], object]:
        names = [SHAPES[shape](number) for number in range(2 * size)]
        head_and_base = beside(suite(names[:size], Status.PASSED), suite(names[size:], Status.SKIPPED))
        return lambda: describe_runtimes(head_and_base, 30, 10.0)

    assert_linear(make, 60)


# Results of labs

KINDS = ("still_failing", "fixed", "newly_skipped", "flaky", "removed", "precluded", "new")


def test_the_report_of_a_check_run_is_linear() -> None:
    def make(size: int) -> Callable[[], object]:
        detail = Detail(message="`<!-- " * 20, text="a\n" * 20)
        failures = {f"tests/test_tile.py::test_{number}": detail for number in range(size)}
        kinds: dict[str, Any] = dict.fromkeys(KINDS, size)
        suite_findings = findings((a_suite(failures), compared(*failures, **kinds)))
        return lambda: results_report(suite_findings)

    assert_linear(make, 60)


@pytest.mark.parametrize("is_collected", [True, False])
def test_judging_a_nightly_run_is_linear(is_collected: bool) -> None:
    """As many failures as tests, all of them absent: their file could not be collected, or they were removed."""

    def make(size: int) -> Callable[[], object]:
        failures = [Failure("operators", f"tests/test_{number}.py", "a" * 40) for number in range(size)]
        names = {f"{failure.test}::test" if is_collected else f"other/{failure.test}::test" for failure in failures}
        state = a_suite(dict.fromkeys(names, Detail(message="boom")))
        suite = SuiteFailures("operators", SHA, absent=tuple(failures), began=tuple(failures))
        target = EvaluatedTarget(ABOUT, SHA, 0.0)

        def work() -> object:
            changes, failing = find_changes([suite], (), lambda _: state)
            return (
                regression_news(target, changes, failing),
                issue_body(target, failing),
                unpack_failures(pack_failures({"": failing})),
            )

        return work

    assert_linear(make, 30)


# Titles and descriptions of pull requests

PIECES = ("@a ", "@a/b ", "cc @a, ", "[a]", "<!--", "`", "> - ", "- @a\n")


@pytest.mark.parametrize("piece", PIECES)
def test_linting_a_title_and_a_description_is_linear(piece: str) -> None:
    def make(size: int) -> Callable[[], object]:
        return lambda: lint.decide_lint(piece * size, piece * size, lint.LintRules({"a"}, "octocat", {"ci"}))

    assert_linear(make, 12)


@pytest.mark.parametrize("piece", PIECES)
def test_finding_the_subscribers_of_a_topic_is_linear(piece: str) -> None:
    def make(size: int) -> Callable[[], object]:
        opened = OpenedThread(7, "octocat", piece * size, piece * size, ("a",) * size)
        topics = {"a": tuple(f"person{number}" for number in range(size))}
        return lambda: topic_subscribers(opened, topics, "octocat", {"ci"})

    assert_linear(make, 60)
