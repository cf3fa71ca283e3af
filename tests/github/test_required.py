"""What is required of a commit, as a table."""

import pytest

from bot.github.commits.required import SETTLED_SECONDS, BaseCommit, Expected, Signal, State, blockers, stands_for

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
def test_each_pattern_needs_a_match_and_all_matches_must_be_green(
    require: list[str], signals: list[tuple[str, State]], expected: list[tuple[str, State]]
) -> None:
    blocking = blockers(require, [Signal(name, state) for name, state in signals])
    assert [(signal.name, signal.state) for signal in blocking] == expected


def test_two_signals_with_the_same_state_are_one_whatever_is_shown_with_them() -> None:
    """As a commit status and a check run with the same name."""
    twice = [Signal("lint", RED, "failure", "unused import", "https://ci.example.org/1"), Signal("lint", RED, "error")]
    assert blockers(["lint"], twice) == [Signal("lint", RED)]


def test_the_bots_own_reports_do_not_count() -> None:
    own_signal = Signal("ci/skip", GREEN, ours=True)
    assert blockers(["*"], [own_signal]) == [Signal("*", MISSING)]
    assert blockers(["ci/skip"], [own_signal]) == [Signal("ci/skip", MISSING)]
    assert blockers(["*"], [own_signal, Signal("cpu", GREEN), Signal("nightjar/lint", RED, ours=True)]) == []


NOW = 1_800_000_000.0
OLD, FRESH = NOW - SETTLED_SECONDS, NOW - SETTLED_SECONDS + 1
BOTH, LINT = {"lint": GREEN, "build": GREEN}, {"lint": GREEN}
Places = list[tuple[float | None, dict[str, State]]]


@pytest.mark.parametrize(
    ("places", "expected"),
    [
        pytest.param([], {}, id="an empty branch"),
        pytest.param([(OLD, {})], {}, id="nothing reported"),
        pytest.param([(OLD, BOTH)], {"build": 0, "lint": 0}, id="settled"),
        pytest.param([(FRESH, LINT), (OLD, BOTH)], {"lint": 0, "build": 1}, id="jobs with needs have not begun"),
        pytest.param([(None, LINT), (OLD, BOTH)], {"lint": 0, "build": 1}, id="no time is reported"),
        pytest.param([(FRESH, LINT)] * 4 + [(OLD, BOTH)], {"lint": 0, "build": 4}, id="many merges in a row"),
        pytest.param([(OLD, LINT), (OLD, BOTH)], {"lint": 0}, id="a job was removed"),
        pytest.param([(FRESH, {"new": GREEN}), (OLD, LINT)], {"new": 0, "lint": 1}, id="a job was renamed just now"),
        pytest.param([(OLD, {"new": GREEN}), (OLD, LINT)], {"new": 0}, id="a job was renamed"),
        pytest.param([(FRESH, {"new": RED}), (OLD, LINT)], {"lint": 1}, id="a new job was never green"),
        pytest.param([(OLD, {"lint": RED}), (OLD, BOTH)], {"build": 1, "lint": 1}, id="lint failed and nothing ran"),
        pytest.param(
            [(OLD, {**LINT, "new": PENDING}), (OLD, BOTH)], {"build": 1, "lint": 1}, id="one job is still running"
        ),
        pytest.param([(OLD, {**LINT, "build": RED})] * 5, {"build": 0, "lint": 0}, id="never green"),
        pytest.param(
            [(FRESH, LINT), (OLD, {"lint": RED, "build": GREEN}), (OLD, {"test": PENDING})],
            {"lint": 0, "build": 1, "test": 2},
            id="green only at the first job",
        ),
    ],
)
def test_a_pattern_stands_for_its_matches_down_to_the_first_settled_commit(
    places: Places, expected: dict[str, int]
) -> None:
    """The numbers are those of the commits that have the names, the newest 0."""
    commits = [
        BaseCommit(str(number), tuple(Signal(name, state, at=reported_at) for name, state in states.items()))
        for number, (reported_at, states) in enumerate(places)
    ]
    matched = stands_for("*", commits, NOW)
    assert {name: int(match.sha) for match in matched for name in match.names} == expected


def test_a_pattern_stands_for_nothing_else_and_not_for_the_bots_reports() -> None:
    """A name that it does not match does not settle a commit either."""
    signals = (Signal("cpu/pr-head", GREEN, at=OLD), Signal("docs", RED), Signal("bot/pr-head", RED, ours=True))
    matched = stands_for("*/pr-head", [BaseCommit("0", signals), BaseCommit("1", (Signal("gpu/pr-head", GREEN),))], NOW)
    assert matched == [Expected("*/pr-head", ("cpu/pr-head",), "0")]
