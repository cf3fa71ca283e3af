"""A runner that changes its naming rule renames thousands of tests in small classes, whose history continues."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from nightjar_formats.model import Status

from benchmarks import device_corpus
from bot.results.compare import name_parts, restructured
from bot.results.compare.renames import search_renames
from bot.results.compare.restructured import SMALL_CLASS
from bot.results.compare.searching import renames
from bot.results.compare.steps import StepBudget
from tests.results.renamed_corpus import RULES, Boundary, boundary, suite_in_every_name
from tests.steps import assert_linear

PASSED, FAILED, SKIPPED = Status.PASSED, Status.FAILED, Status.SKIPPED
FOUR = ["wait", "send", "cancel", "timeout"]
assert len(FOUR) == SMALL_CLASS


def searched(tests: Boundary) -> dict[str, str]:
    removed = {test: status for test, status in tests.old.items() if test not in tests.new}
    new = {test: status for test, status in tests.new.items() if test not in tests.old}
    return dict(renames(removed, new))


@pytest.mark.parametrize("rule", sorted(RULES))
def test_a_new_rule_for_all_names_keeps_their_history(rule: str) -> None:
    tests = boundary(1, rule)
    renamed = searched(tests)
    right = sum(tests.truth.get(old) == new for old, new in renamed.items())
    assert right >= 0.99 * len(renamed)
    assert right >= 0.95 * len(tests.truth)


@pytest.mark.parametrize("seed", range(3))
def test_a_suite_that_is_written_into_every_name_keeps_the_history_of_all_scenarios(seed: int) -> None:
    tests = suite_in_every_name(seed)
    renamed = searched(tests)
    right = sum(tests.truth.get(old) == new for old, new in renamed.items())
    assert right == len(renamed)
    assert right >= 0.97 * len(tests.truth)


@pytest.mark.parametrize("number", range(len(device_corpus.RULES) - 1))
def test_a_renamed_corpus_of_a_device_lab_keeps_the_history_of_every_test(number: int) -> None:
    old, new = device_corpus.RULES[number : number + 2]
    pairs = {old(parts): new(parts) for parts in device_corpus.every_test()[:4_890]}
    assert renames(pairs.keys(), pairs.values()) == pairs


# A word does not count as removed from all names while other names that appeared in the same run still contain it.
@pytest.mark.parametrize("rule", sorted(RULES.keys() - {"a word left out", "prefix dropped, words left out"}))
def test_a_new_rule_for_the_names_of_a_few_areas_keeps_their_history_too(rule: str) -> None:
    tests = boundary(2, rule, share=0.2)
    renamed = searched(tests)
    right = sum(tests.truth.get(old) == new for old, new in renamed.items())
    assert right >= 0.99 * len(renamed)
    assert right >= 0.9 * len(tests.truth)


def test_other_tests_with_similar_names_are_not_paired() -> None:
    paired = total = 0
    for seed in range(5):
        removed, new = (boundary(seed + 1000 * side, "prefix dropped", topics=20).old for side in (0, 1))
        paired += len(renames(removed.keys() - new.keys(), new.keys() - removed.keys()))
        total += len(removed)
    assert total > 1_500
    assert paired <= 0.002 * total


SMALL: list[tuple[str, str]] = [
    ("kernel.poll.api.{}", "api.{}"),
    ("api.{}", "kernel.poll.api.{}"),
    ("kernel.poll.{}", "kernel.poll.api.{}"),
    ("kernel.poll.api.{}", "kernel.poll.{}"),
    ("kernel.poll.api.{}", "api.kernel.poll.{}"),
    ("kernel.poll.api.test_{}", "api.test_{}.kernel.poll"),
    ("tests/test_a.py::TestA::test_{}", "tests/test_a.py::TestB::test_{}"),
]


@pytest.mark.parametrize(("old", "new"), SMALL)
def test_four_tests_of_one_class_are_enough(old: str, new: str) -> None:
    unrelated = {f"net.tcp.lost.reset_{number}": PASSED for number in range(30)}
    removed, added = {old.format(name): PASSED for name in FOUR}, {new.format(name): PASSED for name in FOUR}
    pairs = {old.format(name): new.format(name) for name in FOUR}
    assert renames({**removed, **unrelated}, added) == pairs
    assert renames({**removed, **unrelated}, {**added, "net.udp.open": PASSED}) == pairs


def test_words_added_to_the_names_of_one_class_are_found_next_to_removed_tests_of_others() -> None:
    names = [f"poll_{cipher}_{action}" for cipher in ("aes", "gcm", "ccm") for action in FOUR]
    removed, new = [f"poll_test::{name}" for name in names], [f"kernel.poll.poll_test::case_{name}" for name in names]
    unrelated = [f"net.tcp::lost_reset_{number}" for number in range(30)]
    assert renames([*removed, *unrelated], new) == dict(zip(removed, new, strict=True))
    same_class = [f"poll_test::poll_lost_{number}" for number in range(5)]
    assert renames([*removed, *unrelated, *same_class], new) == {}


def test_four_tests_of_one_class_may_be_in_four_files() -> None:
    files = [f"tests/test_{name}.py::Test{{}}::test_{name}" for name in FOUR]
    removed, new = [file.format("Tile") for file in files], [file.format("Tiling") for file in files]
    assert renames(removed, new) == dict(zip(removed, new, strict=True))
    unrelated = [file.format("Tile") + "_twice" for file in files]
    assert renames([*removed, *unrelated], new) == {}


def test_one_test_of_eight_may_begin_to_fail() -> None:
    removed = {f"kernel.poll.test_{number}_x": PASSED for number in range(8)}
    new = {test.removeprefix("kernel."): status for test, status in removed.items()}
    assert len(renames(removed, {**new, "poll.test_3_x": FAILED})) == 8
    assert renames(removed, {**new, "poll.test_3_x": FAILED, "poll.test_4_x": FAILED}) == {}


@pytest.mark.parametrize(("old", "new"), SMALL)
def test_three_tests_of_one_class_are_not_enough(old: str, new: str) -> None:
    assert renames([old.format(name) for name in FOUR[:3]], [new.format(name) for name in FOUR[:3]]) == {}


@pytest.mark.parametrize("other_status", [FAILED, SKIPPED])
@pytest.mark.parametrize(("old", "new"), SMALL)
def test_four_tests_with_another_status_are_not_the_same_tests(old: str, new: str, other_status: Status) -> None:
    removed, added = {old.format(name): PASSED for name in FOUR}, {new.format(name): PASSED for name in FOUR}
    assert renames(removed, {**added, new.format("wait"): other_status}) == {}
    assert renames({**removed, old.format("wait"): other_status}, added) == {}


def test_a_failure_is_not_hidden_by_an_unconfirmed_pair() -> None:
    tests = boundary(3, "prefix dropped")
    removed = {**tests.old, "kernel.lone.init_other": FAILED}
    renamed = renames(removed, {**tests.new, "fs.single.init_other": FAILED})
    assert len(renamed) > 300
    assert "kernel.lone.init_other" not in renamed


def test_parameters_in_another_order_are_other_values() -> None:
    names = [f"test_cast_{number}" for number in range(12)]
    assert renames([f"a.{name}[int-float]" for name in names], [f"a.{name}[float-int]" for name in names]) == {}


def test_the_work_of_a_search_for_such_names_is_limited() -> None:
    tests = boundary(1, "prefix dropped")
    assert search_renames(tests.old, tests.new, most_steps=10_000) is None
    assert search_renames(tests.old, tests.new, most_steps=2_000_000)


def small_classes(size: int) -> Callable[[], object]:
    removed = [f"area{index}.topic.suite.test_{number}_{index}" for index in range(size) for number in range(4)]
    new = [f"suite.area{index}.topic.test_{number}_{index}" for index in range(size) for number in range(4)]
    return lambda: renames(removed, new)


def no_pairs(size: int) -> Callable[[], object]:
    removed = [f"a.b.c.d.old{index}" for index in range(4 * size)]
    new = [f"a.b.c.d.new{index}" for index in range(4 * size)]
    return lambda: renames(removed, new)


def many_parts(size: int) -> Callable[[], object]:
    removed = [f"b.{'a.' * size}x{index}" for index in range(9)]
    new = [f"{'a.' * size}x{index}" for index in range(9)]
    return lambda: renames(removed, new)


def many_signs(size: int) -> Callable[[], object]:
    removed = [f"b{'.' * size}{index}" for index in range(9)]
    new = [f"c{'.' * size}{index}" for index in range(9)]
    return lambda: renames(removed, new)


@pytest.mark.parametrize(("make", "size"), [(small_classes, 15), (no_pairs, 15), (many_parts, 28), (many_signs, 200)])
def test_twice_as_many_names_need_twice_the_work(make: Callable[[int], Callable[[], object]], size: int) -> None:
    assert_linear(make, size, memory=True)


def test_a_name_with_a_line_break_is_split_like_any_other() -> None:
    names = ["a.b\nc.d", "a/b.c"]
    parts = name_parts.split_names(names, {}, StepBudget(1000))
    assert list(parts) == names
    assert all(parts[name] == name_parts.split_names([name], {}, StepBudget(1000))[name] for name in names)
    assert parts["a/b.c"].parts == ("a", "b", "c")


def test_all_brackets_belong_to_the_last_part_of_a_name() -> None:
    names = ["a.b[x[1].y]", "a.c"]
    nested, plain = name_parts.split_names(names, {}, StepBudget(1000)).values()
    assert (nested.parts, nested.brackets) == (("a", "b[x[1].y]"), "[x[1].y]")
    assert (plain.parts, plain.brackets) == (("a", "c"), "")


def test_names_with_too_many_words_or_too_many_names_are_not_searched() -> None:
    many = range(restructured.MAX_RESTRUCTURED + 1)
    assert renames([f"a{number}.b" for number in many], [f"b.a{number}" for number in many]) == {}
    words = ".".join("a" for _ in range(name_parts.MAX_WORDS))
    assert list(name_parts.split_names([words, f"{words}.a"], {}, StepBudget(1000))) == [words]
    assert renames([f"{words}.x.{name}" for name in FOUR], [f"{words}.{name}" for name in FOUR]) == {}
