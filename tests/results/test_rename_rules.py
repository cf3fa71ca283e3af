"""Thousands of renamed tests are one line in the check run: the rule, not lists of removed and new tests."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from bot.results.compare.rename_rules import RenameKind, RenameRule, rules_of
from bot.results.report.check_run import results_report
from tests.results.renamed_corpus import boundary
from tests.results.reported import a_suite, compared, findings
from tests.steps import assert_linear


@pytest.mark.parametrize(
    ("old_name", "new_name", "rule"),
    [
        ("kernel.poll.api.wait", "api.wait", (RenameKind.PREFIX_DROPPED, "kernel.poll.", "")),
        ("api.wait", "kernel.poll.api.wait", (RenameKind.PREFIX_ADDED, "", "kernel.poll.")),
        ("kernel.poll.api.wait", "kernel.poll.wait", (RenameKind.PART_DROPPED, "api.", "")),
        ("kernel.poll.wait", "kernel.poll.api.wait", (RenameKind.PART_ADDED, "", "api.")),
        ("a/b.py::TestA::x[1/2]", "a/b.py::x[1/2]", (RenameKind.PART_DROPPED, "TestA::", "")),
        ("a/b.py::x[1/2]", "a/c.py::x[1/2]", (RenameKind.REPLACED, "a/b.py::", "a/c.py::")),
        ("kernel.poll.test_wait", "kernel.poll.wait", (RenameKind.WORDS_DROPPED, "test", "")),
        ("kernel.poll.wait", "kernel.poll.test_wait", (RenameKind.WORDS_ADDED, "", "test")),
        ("kernel.poll.wait", "poll.wait.kernel", (RenameKind.REORDERED, "", "")),
        ("a.x[llvm]", "a.x[cuda]", (RenameKind.REPLACED, "llvm", "cuda")),
        ("", "a", (RenameKind.PREFIX_ADDED, "", "a")),
    ],
)
def test_a_rule_names_what_changed(old_name: str, new_name: str, rule: tuple[RenameKind, str, str]) -> None:
    assert rules_of([(old_name, new_name)]) == [(RenameRule(*rule), 1)]


def text_of(*pairs: tuple[str, str]) -> str:
    return results_report(findings((a_suite(), compared(renamed=pairs)))).text


def test_one_rule_is_one_line() -> None:
    pairs = [(f"kernel.poll.api.{number}", f"api.{number}") for number in range(1200)]
    content = results_report(findings((a_suite(), compared(renamed=tuple(pairs)))))
    (line,) = [line for line in content.text.splitlines() if "renamed" in line]
    assert line == (
        "1,200 tests were renamed and keep their history: the prefix `kernel.poll.` was dropped. For example, "
        "`kernel.poll.api.0` is now `api.0`."
    )
    assert "1,200 renamed" in content.title
    assert "Removed" not in content.text


def test_several_rules_of_one_kind_are_one_line_with_the_largest() -> None:
    pairs = [(f"{area}{area}.api.{area}{number}", f"api.{area}{number}") for area in "abcde" for number in range(2)]
    assert "a prefix was dropped: `aa.` (2), `bb.` (2), `cc.` (2), and 2 more." in text_of(*pairs)


def test_rules_of_several_kinds_are_listed_together() -> None:
    dropped = [(f"kernel.api.{number}", f"api.{number}") for number in range(5)]
    reordered = [(f"a.b{number}.c", f"c.a.b{number}") for number in range(3)]
    text = text_of(*dropped, *reordered)
    assert "the prefix `kernel.` was dropped (5); words were reordered (3). For example" in text


def test_test_names_from_a_lab_are_shown_as_code() -> None:
    pairs = tuple((f"<b>@octocat.{number}", f"{number}") for number in range(10))
    assert "the prefix `<b>@octocat.` was dropped" in text_of(*pairs)


def test_thousands_of_renamed_tests_are_one_line_in_the_report() -> None:
    pairs = boundary(1, "prefix dropped").truth.items()
    text = text_of(*pairs)
    assert text.count("renamed") == 1
    assert f"{len(pairs):,} tests were renamed and keep their history: a prefix was dropped: `" in text


def many_parts(size: int) -> Callable[[], object]:
    return lambda: rules_of([("a." * size + "b", "c." * size + "b"), ("." * size, ":" * size)])


def test_names_of_twice_the_length_need_twice_the_work() -> None:
    assert_linear(many_parts, 200, memory=True)
