"""What a proposal is made of: which files are read, what stays fixed, and what is left by hand."""

from __future__ import annotations

from bot.results.store.lists.function_costs import FunctionCost, FunctionCosts, FunctionName
from handlers.slow_tests.slow_set import texts
from handlers.slow_tests.slow_set.handler import reviewers_of
from handlers.slow_tests.slow_set.proposal import MOST_BY_HAND, MOST_FILES, files_to_read, propose
from handlers.slow_tests.slow_set.source import FunctionSource

LONG, SHORT = FunctionName("a.py", "test_long"), FunctionName("a.py", "test_short")
SLOW, GTEST = FunctionName("b.py", "test_slow"), FunctionName("Gtest.Long")
COSTS = {
    LONG: FunctionCost(100.0, 100.0, {1, 2}, {1}, breaks=3),
    SHORT: FunctionCost(5.0, 5.0),
    SLOW: FunctionCost(60.0, 0.0, breaks=2),
    GTEST: FunctionCost(40.0, 40.0),
}
MEASURED = FunctionCosts(COSTS, pulls=7)
FREE = FunctionSource(is_slow=False)


def test_files_are_read_for_tests_that_take_long_or_that_pull_requests_skip() -> None:
    assert files_to_read(MEASURED, {"a.py", "b.py"}) == {"a.py": {"test_long"}, "b.py": {"test_slow"}}
    assert files_to_read(MEASURED, {"b.py"}) == {"b.py": {"test_slow"}}, "a file that the commit does not have"
    many = {FunctionName(f"{number}.py", "test_a"): FunctionCost(number, number) for number in range(10, 100)}
    paths = {function.path for function in many}
    assert list(files_to_read(FunctionCosts(many, 1), paths)) == [f"{number}.py" for number in range(99, 59, -1)]
    assert MOST_FILES == 40


def test_what_cannot_be_marked_is_fixed_and_left_by_hand() -> None:
    sources = {LONG: FREE, SLOW: FunctionSource(is_slow=True)}
    proposal = propose(MEASURED, sources, budget=110.0)
    # All take 205 seconds. Without test_long it is 105, so that test_slow, which broke main twice, fits in its place.
    assert (proposal.marked, proposal.unmarked) == ((LONG,), (SLOW,))
    assert (proposal.chosen.seconds_before, proposal.chosen.seconds_after) == (145.0, 105.0)
    assert [candidate.misses for candidate in proposal.chosen.marked] == [1], "main knew of the other failure"
    assert [(item.function, item.problem) for item in proposal.by_hand] == [(GTEST, texts.NOT_PYTHON)]
    assert [(cut_off.seconds, cut_off.tests, cut_off.saved) for cut_off in proposal.cut_offs][::3] == [
        (10, 2, 140.0),
        (40, 1, 100.0),
        (70, 1, 100.0),
        (100, 0, 0),
    ]
    nothing = propose(MEASURED, {LONG: FunctionSource(is_slow=False, problem=texts.NO_IMPORT)}, budget=50.0)
    assert [(item.function, item.problem) for item in nothing.by_hand] == [
        (LONG, texts.NO_IMPORT),
        (GTEST, texts.NOT_PYTHON),
    ]
    text = texts.proposal_text(nothing, MEASURED, 50.0, lambda _: ())
    assert texts.OVER_BUDGET in text
    assert texts.MARKED not in text
    many = {FunctionName(f"Gtest.{number}"): FunctionCost(60.0, 60.0) for number in range(99)}
    assert len(propose(FunctionCosts(many, 1), {}, 60.0).by_hand) == MOST_BY_HAND
    assert propose(MEASURED, sources, budget=1_000.0).by_hand == ()


def test_owners_whom_github_knows_are_asked_and_a_text_is_harmless() -> None:
    owners = ("@octocat", "octocat", "example-lab/kernels", "The kernel people", "a" * 40)
    assert reviewers_of([LONG, SLOW], lambda _: owners) == ("octocat", "example-lab/kernels")
    hostile = FunctionName("`|` @octocat.py", "test_<b>")
    measured = FunctionCosts({hostile: FunctionCost(100.0, 100.0)}, 1)
    text = texts.proposal_text(propose(measured, {hostile: FREE}, 10.0), measured, 10.0, lambda _: ("@hubot",))
    (row,) = (line for line in text.splitlines() if "octocat" in line)
    assert row.replace("\\|", "").count("|") == 7, "the test's name begins no cell"
    assert "@octocat" not in row, "nobody is mentioned"
    assert "<b>" not in row
    assert row.endswith("| hubot |")
