"""What is required of a commit, as a table."""

import pytest

from bot.required import Signal, State, blockers

GREEN, RED, PENDING, MISSING = State.GREEN, State.RED, State.PENDING, State.MISSING


@pytest.mark.parametrize(
    ("require", "signals", "expected"),
    [
        ([], [("cpu", RED)], []),
        (["cpu"], [("cpu", GREEN), ("gpu", RED)], []),
        (["cpu"], [], [("cpu", MISSING)]),
        (["*/branch"], [("cpu/branch", GREEN), ("gpu/branch", PENDING)], [("gpu/branch", PENDING)]),
        (["*/branch", "lint"], [("cpu/branch", GREEN)], [("lint", MISSING)]),
        (["c*", "cpu"], [("cpu", RED)], [("cpu", RED)]),
        (["lint"], [("lint", GREEN), ("lint", RED)], [("lint", RED)]),
        (["CPU"], [("cpu", GREEN)], [("CPU", MISSING)]),
        (["*"], [("a", PENDING), ("b", RED), ("c", GREEN)], [("b", RED), ("a", PENDING)]),
    ],
)
def test_each_pattern_matches_one_and_all_that_match_are_green(
    require: list[str], signals: list[tuple[str, State]], expected: list[tuple[str, State]]
) -> None:
    found = blockers(require, [Signal(name, state) for name, state in signals])
    assert [(signal.name, signal.state) for signal in found] == expected


def test_two_that_stand_alike_are_one_whatever_is_shown_beside_them() -> None:
    """As a commit status and a check run of one name do."""
    twice = [Signal("lint", RED, "failure", "unused import", "https://ci.example.org/1"), Signal("lint", RED, "error")]
    assert blockers(["lint"], twice) == [Signal("lint", RED)]


def test_what_the_bot_itself_reported_counts_for_nothing() -> None:
    mine = Signal("ci/skip", GREEN, ours=True)
    assert blockers(["*"], [mine]) == [Signal("*", MISSING)]
    assert blockers(["ci/skip"], [mine]) == [Signal("ci/skip", MISSING)]
    assert blockers(["*"], [mine, Signal("cpu", GREEN), Signal("nightjar/lint", RED, ours=True)]) == []
