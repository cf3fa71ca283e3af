from __future__ import annotations

import pickle
from collections.abc import Callable

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from bot.core.aliases import MAX_NAMES, Aliases
from tests.steps import assert_linear

DROPPED = Aliases([("kernel.poll.*", "poll.*"), ("net.tcp.test_open", "net.tcp.open"), ("net.*", "*")])
LONGER = Aliases([("kernel.poll.*", "kernel.poll.api.*")])
CHAIN = Aliases([("a", "b"), ("b", "c.x"), ("c.*", "d.*")])


@pytest.mark.parametrize(
    ("aliases", "name", "current"),
    [
        (DROPPED, "kernel.poll.wait", "poll.wait"),
        (DROPPED, "kernel.pollution", "kernel.pollution"),
        (DROPPED, "kernel.poll.", "poll."),
        (DROPPED, "net.tcp.test_open", "tcp.open"),
        (DROPPED, "net.udp", "udp"),
        (LONGER, "kernel.poll.wait", "kernel.poll.api.wait"),
        (LONGER, "kernel.poll.api.wait", "kernel.poll.api.wait"),
        (CHAIN, "a", "d.x"),
        (CHAIN, "c.y", "d.y"),
        (Aliases([("a", "b"), ("b", "a")]), "c", "c"),
        (Aliases(), "a", "a"),
    ],
)
def test_one_name_stands_for_all_names_of_a_test(aliases: Aliases, name: str, current: str) -> None:
    assert aliases.canonical(name) == current


def test_an_exact_name_wins_over_a_prefix_and_a_longer_prefix_over_a_shorter_one() -> None:
    aliases = Aliases([("a.*", "one.*"), ("a.b.*", "two.*"), ("a.b.c", "three")])
    assert [aliases.canonical(name) for name in ("a.x", "a.b.x", "a.b.c")] == ["one.x", "two.x", "three"]


def test_the_other_names_of_a_test_are_its_earlier_and_later_ones() -> None:
    assert sorted(CHAIN.others("b")) == ["a", "c.x", "d.x"]
    assert CHAIN.others("d.y") == ["c.y"]
    assert CHAIN.others("e") == []
    assert len(Aliases([(f"old{number}", "new") for number in range(2 * MAX_NAMES)]).others("new")) == MAX_NAMES


def test_only_one_name_of_each_test_is_paired() -> None:
    assert DROPPED.pairs(["kernel.poll.a", "kernel.b", "x"], ["poll.a", "b"]) == {"kernel.poll.a": "poll.a"}
    assert DROPPED.pairs(["poll.a"], ["kernel.poll.a"]) == {"poll.a": "kernel.poll.a"}
    two = Aliases([("a", "c"), ("b", "c")])
    assert two.pairs(["a", "b"], ["c"]) == {}
    assert two.pairs(["b"], ["c"]) == {"b": "c"}
    assert Aliases().pairs(["a"], ["a"]) == {}


@pytest.mark.parametrize(
    ("pairs", "loops"),
    [
        ([("a", "b"), ("b", "a")], {"a", "b"}),
        ([("a.*", "b.*"), ("b.*", "a.*"), ("c", "d")], {"a.*", "b.*"}),
        ([("a.*", "b.*"), ("b.x", "a.x")], {"a.*", "b.x"}),
        ([("a.*", "b.c.*"), ("b.*", "a.*")], {"a.*", "b.*"}),
        ([("a.*", "a.b.*")], set()),
        ([("a.*", "*"), ("b.*", "*")], set()),
        ([("a", "b"), ("b", "c")], set()),
    ],
)
def test_loops_of_names_are_found(pairs: list[tuple[str, str]], loops: set[str]) -> None:
    assert Aliases(pairs).loops() == loops


def test_aliases_can_be_sent_to_another_process() -> None:
    assert pickle.loads(pickle.dumps(DROPPED)).canonical("net.udp") == "udp"
    assert pickle.loads(pickle.dumps(DROPPED)) == DROPPED


names = st.text("ab.", min_size=1, max_size=6)
prefixes = names.map(lambda name: name + ".*")


@given(st.lists(st.tuples(names, names) | st.tuples(prefixes, prefixes), max_size=6), names)
def test_all_other_names_of_a_test_stand_for_it(pairs: list[tuple[str, str]], name: str) -> None:
    aliases = Aliases(pairs)
    assume(not aliases.loops())  # app.yaml refuses them
    assert name not in aliases.others(name)
    assert {aliases.canonical(other_name) for other_name in aliases.others(name)} <= {aliases.canonical(name)}


def of_many(size: int) -> Callable[[], object]:
    aliases = Aliases([(f"area{number}.*", "*") for number in range(20)])
    return lambda: aliases.pairs([f"area{n}.x{n}" for n in range(size)], [f"x{n}" for n in range(size)])


def test_twice_as_many_names_need_twice_the_work() -> None:
    assert_linear(of_many, 100, memory=True)
