"""Which commits GitHub is asked about, and what follows from its answers."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from hypothesis import given
from hypothesis import strategies as st

from bot.results.compare.ancestors import MOST_ASKED, AncestorSearch, Candidate, Relation

Parents = Mapping[int, tuple[int, ...]]
"""The parents of each commit; a commit is older than those with a higher number."""
PAGE = "https://github.example/octocat/compiler/commit/{}"


def containing(parents: Parents, commit: int) -> set[int]:
    """Return a commit and its ancestors."""
    ancestors, waiting = {commit}, [commit]
    while waiting:
        for parent in parents[waiting.pop()]:
            if parent not in ancestors:
                ancestors.add(parent)
                waiting.append(parent)
    return ancestors


class Repository:
    """Commits, and the stored relations between them."""

    def __init__(self, parents: Parents) -> None:
        self.parents = parents
        self.known: list[Relation] = []

    def nearest(self, commit: int, *candidates: Iterable[int], most: int = 2) -> tuple[list[list[int]], int]:
        """Return the nearest ancestors for each suite, and the number of requests."""
        candidates_by_suite = {
            str(number): [Candidate(str(candidate), float(candidate)) for candidate in sorted(suite, reverse=True)]
            for number, suite in enumerate(candidates)
        }
        search, request_count = AncestorSearch(str(commit), candidates_by_suite, self.known, most), 0
        while (candidate := search.next()) is not None:
            request_count += 1
            common = containing(self.parents, commit) & containing(self.parents, int(candidate))
            if int(candidate) in common:
                search.learn(Relation(str(commit), candidate, is_ancestor=True, url=PAGE.format(candidate)))
            elif common:
                merge_base = max(common)
                relation = Relation(
                    str(commit), candidate, is_ancestor=False, url=PAGE.format(candidate), met_at=float(merge_base)
                )
                search.learn(relation, str(merge_base))
            else:
                search.fail(candidate)
        self.known += [*search.learned, *search.derived()]
        nearest = search.nearest()
        assert all(relation.url == PAGE.format(relation.other) for suite in nearest.values() for relation in suite)
        return [
            [int(relation.other) for relation in nearest.get(suite, [])] for suite in candidates_by_suite
        ], request_count


def line(length: int) -> dict[int, tuple[int, ...]]:
    return {number: (number - 1,) if number else () for number in range(length)}


def test_on_a_linear_history_each_commit_costs_one_request() -> None:
    repository = Repository(line(100))
    request_count = [repository.nearest(number, range(0, number, 7)) for number in range(7, 99, 7)]
    assert request_count == [([[number - 7, number - 14][: number // 7]], 1) for number in range(7, 99, 7)]


def test_suites_share_their_answers() -> None:
    repository = Repository(line(10))
    assert repository.nearest(9, [8, 7, 6], [8, 6], [7]) == ([[8, 7], [8, 6], [7]], 3)
    assert repository.nearest(9, [8, 7, 6], [8, 6], [7]) == ([[8, 7], [8, 6], [7]], 0)


def test_of_two_branches_only_the_commits_own_one_counts() -> None:
    # Even commits are on one branch, odd ones on another; both begin at 0.
    parents = {number: (max(number - 2, 0),) if number else () for number in range(40)}
    repository = Repository(parents)
    for number in range(4, 40):
        nearest, request_count = repository.nearest(number, range(number))
        ancestors = [commit for commit in range(number - 1, -1, -1) if commit in containing(parents, number)]
        assert nearest == [ancestors[:2]]
        assert request_count <= 3


def test_the_removed_commits_of_a_reset_branch_are_left_out() -> None:
    parents = line(50) | {50: (10,), 51: (50,)}
    repository = Repository(parents)
    for number in range(1, 50):
        repository.nearest(number, range(number))
    assert repository.nearest(50, range(50)) == ([[10, 9]], 1)
    assert repository.nearest(51, range(51)) == ([[50, 10]], 2)


def test_without_stored_relations_a_reset_branch_is_searched_from_the_merge_base() -> None:
    parents = line(50) | {50: (10,), 51: (50,)}
    nearest, request_count = Repository(parents).nearest(51, set(range(50)) - {10})
    assert (nearest, request_count <= MOST_ASKED) == ([[9, 8]], True)


def test_unrelated_commits_give_no_ancestor_after_a_limited_commit_numberof_requests() -> None:
    parents = dict.fromkeys(range(200), ())
    nearest, request_count = Repository(parents).nearest(199, range(199))
    assert (nearest, request_count <= MOST_ASKED) == ([[]], True)


@st.composite
def histories(draw: st.DrawFn) -> dict[int, tuple[int, ...]]:
    """Draw commits with one or two parents, on few branches."""
    parents: dict[int, tuple[int, ...]] = {0: ()}
    for number in range(1, draw(st.integers(2, 14))):
        drawn_parents = draw(st.lists(st.integers(max(0, number - 4), number - 1), min_size=1, max_size=2, unique=True))
        parents[number] = tuple(drawn_parents)
    return parents


@given(histories(), st.data())
def test_in_any_history_only_ancestors_are_found(parents: dict[int, tuple[int, ...]], data: st.DataObject) -> None:
    repository = Repository(parents)
    for number in data.draw(st.permutations(range(1, len(parents)))):
        candidates = data.draw(st.sets(st.integers(0, number - 1), min_size=1))
        (nearest,), request_count = repository.nearest(number, candidates)
        assert request_count <= MOST_ASKED
        assert set(nearest) <= containing(parents, number)
        if request_count < 5:
            ancestors = sorted(candidates & containing(parents, number), reverse=True)
            assert nearest == ancestors[:2]
