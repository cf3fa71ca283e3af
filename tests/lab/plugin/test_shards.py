"""How tests are assigned to shards: each to exactly one, the same on every machine; a rename moves no others."""

from __future__ import annotations

import os
import subprocess
import sys
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from nightjar_lab.pytest.shards import ShardSpec, assign_shards, match_known, parse_shard

ROOT = Path(__file__).parents[3]
LETTERS = st.text("ab[]:./\x00\udc80é", max_size=4)
IDS = st.one_of(
    st.builds("{}.py::{}".format, st.sampled_from(["a", "b/a", "b/c"]), st.sampled_from(["f", "g", "C::f", "f[1]"])),
    st.builds("a/t.py::test[{}]".format, LETTERS),
    LETTERS,
)
SECONDS = st.floats(0, 1e4)


@given(st.lists(IDS, max_size=30), st.dictionaries(IDS, SECONDS, max_size=20), st.integers(1, 6), st.randoms())
def test_each_test_is_in_exactly_one_shard_whatever_the_order(
    tests: list[str], seconds: Mapping[str, float], total: int, random: object
) -> None:
    plan = assign_shards(tests, seconds, total)
    assert all(1 <= shard <= total for shard in plan.shards)
    assert len(plan.shards) == len(tests)
    shuffled = list(tests)
    random.shuffle(shuffled)  # type: ignore[attr-defined]
    plan_of_shuffled = assign_shards(shuffled, dict(sorted(seconds.items())), total)
    # Tests with the same ID are interchangeable.
    assert Counter(zip(shuffled, plan_of_shuffled.shards, strict=True)) == Counter(zip(tests, plan.shards, strict=True))
    assert plan_of_shuffled.fingerprint == plan.fingerprint


@given(st.lists(SECONDS, min_size=1, max_size=40), st.integers(1, 5))
def test_known_durations_balance_the_shards(durations: list[float], total: int) -> None:
    """The longest shard is not much longer than in the best possible assignment (Graham, 1969)."""
    seconds = {f"t.py::test_{number}": duration for number, duration in enumerate(durations)}
    plan = assign_shards(list(seconds), seconds, total)
    in_order = sorted(durations, reverse=True)
    at_best = max(sum(durations) / total, in_order[0], 2 * in_order[total] if len(in_order) > total else 0)
    assert max(plan.seconds) <= 4 / 3 * at_best + 1e-3 or len(durations) > total
    assert max(plan.seconds) <= sum(durations) / total + in_order[0] + 1e-3
    assert sum(plan.seconds) == pytest.approx(sum(durations), abs=1e-3)


TESTS = [
    *(f"tests/te/test_{file}.py::test_op[{param}]" for file in "abc" for param in ("llvm", "cuda", "a::b/c.py[x]")),
    *(f"tests/relay/test_d.py::TestPass::test_{name}" for name in ("fold", "fuse", "infer", "new")),
    "tests/relay/test_e.py::test_alone",
]
KNOWN = {test: 1.5**place for place, test in enumerate(TESTS) if not test.endswith("new")}


def renamed(test: str) -> str:
    return test.replace("::test_alone", "::test_lonely")


def parametrized(test: str) -> str:
    return test.replace("::test_op", "::test_operator")


def moved(test: str) -> str:
    return test.replace("tests/relay/test_d.py", "tests/relax/passes/test_passes.py")


def other_root(test: str) -> str:
    return "/".join(["python", test])


def root_within(test: str) -> str:
    return test.removeprefix("tests/")


@pytest.mark.parametrize("change", [renamed, parametrized, moved, other_root, root_within])
def test_a_rename_moves_no_test_to_another_shard(change: object) -> None:
    assert callable(change)
    new = [change(test) for test in TESTS]
    assert new != TESTS
    assert assign_shards(new, KNOWN, 3).shards == assign_shards(TESTS, KNOWN, 3).shards


def test_tests_of_one_name_whose_durations_are_unknown_take_turns() -> None:
    tests = [f"te/test_{number}.py::test_add" for number in range(5)]
    (first, *_) = shards = assign_shards(tests, {}, 3).shards
    assert shards == [(first - 1 + number) % 3 + 1 for number in range(5)]


def test_without_durations_a_moved_file_moves_nothing_and_a_new_test_moves_no_other() -> None:
    shards = assign_shards(TESTS, {}, 4).shards
    # Tests with the same name in several files are assigned in turn.
    assert [assign_shards([moved(test) for test in TESTS], {}, 4).shards, len(set(shards))] == [shards, 4]
    assert assign_shards([*TESTS, "tests/test_z.py::test_newest"], {}, 4).shards[:-1] == shards


def junit(test: str) -> str:
    head, bracket, rest = test.partition("[")
    return head.replace(".py", "").replace("/", ".").replace("::", ".") + bracket + rest


def test_durations_from_junit_xml_are_matched_to_tests() -> None:
    durations = {junit(test): seconds for test, seconds in KNOWN.items()}
    assert match_known(TESTS, durations) == {test: junit(test) for test in KNOWN}
    assert assign_shards(TESTS, durations, 3).seconds == assign_shards(TESTS, KNOWN, 3).seconds


def test_an_ambiguous_duration_is_not_used() -> None:
    durations = {"old/a/test_x.py::test": 1.0, "old/b/test_x.py::test": 9.0}
    assert match_known(["new/test_x.py::test"], durations) == {}
    assert match_known(["new/c/test_x.py::test", "new/d/test_x.py::test"], {"old/test_x.py::test": 1.0}) == {}
    assert match_known(["t.py::one", "t.py::two"], {"t.py::was": 1.0}) == {}


def test_a_test_without_a_duration_counts_as_the_median() -> None:
    plan = assign_shards(
        ["t.py::a", "t.py::b", "t.py::c", "t.py::other"], {"t.py::a": 1.0, "t.py::b": 5.0, "t.py::c": 6.0}, 2
    )
    assert sum(plan.seconds) == pytest.approx(1 + 5 + 6 + 5)
    assert plan.known == 3


def assignment(seed: str, tests: Sequence[str]) -> str:
    code = (
        "import sys; from nightjar_lab.pytest.shards import assign_shards;"
        "tests = sys.argv[1:]; print(assign_shards(tests, {test: len(test) % 3 for test in tests[::2]}, 3))"
    )
    environment = {"PYTHONPATH": str(ROOT / "lab"), "PYTHONHASHSEED": seed, "PATH": os.environ["PATH"]}
    done = subprocess.run(
        [sys.executable, "-c", code, *tests], env=environment, check=True, capture_output=True, text=True
    )
    return done.stdout


def test_the_hash_seed_does_not_matter() -> None:
    assert assignment("1", TESTS) == assignment("2", TESTS)


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("2/4", ShardSpec(2, 4)),
        ("1/1", ShardSpec(1, 1)),
        *((bad, None) for bad in ("0/4", "5/4", "x", "", "/", "1", "1/", "/4", "-1/4", "1/4/2", "1.0/4", "٢/٤")),
    ],
)
def test_a_shard_is_read(value: str, expected: ShardSpec | None) -> None:
    assert parse_shard(value) == expected
